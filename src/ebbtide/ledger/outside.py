"""The last signed checkpoint, kept outside the database and its folder (spec §5).

Whoever restores an old copy of the database restores an old ledger with it. The copy here is what such a ledger must
still agree with before anything more is signed. It is one file per key of a ledger, so that a project which begins
anew with a key of its own is another ledger, and a lost database under the same key is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ebbtide.errors import EbbtideError, RewoundError, StateError, UnreadableError
from ebbtide.ledger.durable import replace_file
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint, Note, VerifierKey

_AFTER_RESTORE = (
    "the state was restored from a backup, replaced or changed: bring back its newest copy. "
    "What was signed and is lost cannot be signed again differently"
)


@dataclass(frozen=True, slots=True)
class OutsideCopy:
    """The file that outlives the database."""

    path: Path

    @classmethod
    def of(cls, folder: Path, key: VerifierKey) -> OutsideCopy:
        """The copy for one key in the user's state folder."""
        return cls(folder / f"{quote(key.name, safe='')}+{key.key_hash.hex()}.checkpoint")

    def read(self) -> Note | None:
        """The copy; None when there is none. One that cannot be read is an error."""
        try:
            return Note.parse(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError(str(self.path), error.strerror or "cannot be read") from None
        except EbbtideError as error:
            raise UnreadableError(
                str(self.path), f"not a checkpoint: {error.message}", hint="compare it with `ebbtide ledger checkpoint`"
            ) from None

    def write(self, note: Note) -> None:
        """Replace the copy; it is on disk when this returns, the old one or the new one at every moment."""
        try:
            replace_file(self.path, note.encode())
        except OSError as error:
            raise StateError(
                f"the checkpoint could not be kept at {self.path}: {error.strerror}",
                hint="without that copy a restored backup would go unnoticed; set `ledger.checkpoint`",
            ) from None


def check_continues(log: LedgerLog, note: Note, trust: Trust, *, whence: str) -> Checkpoint:
    """Refuse unless the log holds everything that this checkpoint of it promised."""
    try:
        checkpoint, _ = trust.verify(note)
    except EbbtideError as error:
        raise RewoundError(
            f"the ledger, by {whence}", expected="what was signed", found=error.message, hint=_AFTER_RESTORE
        ) from None
    check_root(log, checkpoint.size, checkpoint.root, whence=whence)
    return checkpoint


def check_root(log: LedgerLog, size: int, root: bytes, *, whence: str) -> None:
    """Refuse unless the first entries of the log are those that this root was made of."""
    if size > log.size:
        raise RewoundError(
            f"size of the ledger, by {whence}", expected=f"at least {size}", found=str(log.size), hint=_AFTER_RESTORE
        )
    try:
        found = log.root(size)
    except EbbtideError as error:
        raise RewoundError(
            f"the ledger, by {whence}", expected="what was signed", found=error.message, hint=_AFTER_RESTORE
        ) from None
    if found != root:
        raise RewoundError(
            f"root hash of the first {size} entries, by {whence}",
            expected=root.hex(),
            found=found.hex(),
            hint=_AFTER_RESTORE,
        )
