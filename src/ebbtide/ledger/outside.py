"""The last signed checkpoint, kept outside the database and its folder (spec §5).

Whoever restores an old copy of the database restores an old ledger with it. The copy here is what such a ledger must
still agree with before anything more is signed. It is one file per key of a ledger, so that a project which begins
anew with a key of its own is another ledger, and a lost database under the same key is noticed.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ebbtide.errors import EbbtideError, RewoundError, StateError, UnreadableError
from ebbtide.ledger.log import Log
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
        partial = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as stream:
                stream.write(note.encode())
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(self.path)
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StateError(
                f"the checkpoint could not be kept at {self.path}: {error.strerror}",
                hint="without that copy a restored backup would go unnoticed; set `ledger.checkpoint`",
            ) from None


def check_continues(log: Log, note: Note, *, whence: str) -> Checkpoint:
    """Refuse unless the log holds everything that this checkpoint of it promised."""
    try:
        checkpoint, _ = log.trust().verify(note)
        size = log.size
        if checkpoint.size > size:
            raise RewoundError(
                f"size of the ledger, by {whence}",
                expected=f"at least {checkpoint.size}",
                found=str(size),
                hint=_AFTER_RESTORE,
            )
        root = log.root(checkpoint.size)
    except RewoundError:
        raise
    except EbbtideError as error:
        raise RewoundError(
            f"the ledger, by {whence}", expected="what was signed", found=error.message, hint=_AFTER_RESTORE
        ) from None
    if root != checkpoint.root:
        raise RewoundError(
            f"root hash of the first {checkpoint.size} entries, by {whence}",
            expected=checkpoint.root.hex(),
            found=root.hex(),
            hint=_AFTER_RESTORE,
        )
    return checkpoint
