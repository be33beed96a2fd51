"""The ledger of a project: who may sign, what is signed, and when (spec §5).

Invariants:

1. A change of the state and its entries are one transaction (`writing`, `sweeping`); the checkpoint is signed after it,
   in a transaction of its own. A crash between the two leaves entries that the next checkpoint covers.
2. Before anything is appended or signed, the log is held against the last checkpoint in the database and the copy
   outside of it. A log that is smaller, or another one, is refused (a restored backup).
3. A checkpoint is handed out only when the copy outside vouches for it; the copy only ever moves forward.
4. The origin is set once. After a rotation the first checkpoint is the one that ends with the entry of the rotation,
   and both keys sign it; the old key signs nothing after that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError, RewoundError
from ebbtide.ledger.attachments import attach_files
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Files, KeyRotated, LedgerCreated
from ebbtide.ledger.log import Log
from ebbtide.ledger.note import Checkpoint, Note, Signer, VerifierKey, check_name, sign
from ebbtide.ledger.outside import OutsideCopy, check_continues
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.writer import StateWriter

_KEY_PREFIX = "ledger-"

WriterT = TypeVar("WriterT", bound=StateWriter)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of what is written. Entries of a simulated one are stamped (spec §2)."""

    now: Callable[[], datetime]
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a ledger keeps what must not be in its database, and what its project says about it."""

    keys: KeyFolder
    folder: Path
    """The user's state folder, for checkpoints."""
    project: str
    origin: str | None = None
    checkpoint: Path | None = None

    def copy(self, key: VerifierKey) -> OutsideCopy:
        """The copy of the last checkpoint that this key signed."""
        return OutsideCopy(self.checkpoint) if self.checkpoint else OutsideCopy.of(self.folder, key)


@dataclass(frozen=True, slots=True)
class Step(Generic[WriterT]):
    """One transaction of state and log."""

    state: WriterT
    log: Log
    simulated: bool

    def append(self, *entries: Entry) -> range:
        """Add entries to the log; gives their indexes."""
        return self.log.append([replace(entry, simulated=True) for entry in entries] if self.simulated else entries)

    def attach_files(self, files: Iterable[tuple[str, int]]) -> Files:
        """Keep a list of files beside the log, for an entry to name."""
        return attach_files(self.state.connection, files)


@dataclass(slots=True)
class Ledger:
    """The ledger of one project. `notices` is what a door must tell people once."""

    database: Database
    home: Home
    clock: Clock
    notices: list[str] = field(default_factory=list)

    @contextmanager
    def reading(self) -> Iterator[Log]:
        """The log as it is now; nothing can be appended."""
        with self.database.reader() as state:
            yield Log(state.connection)

    @contextmanager
    def writing(self) -> Iterator[Step[StateWriter]]:
        """Change the state and say so in the log; the checkpoint is signed when the block is left without an error."""
        with self.database.writer() as state:
            yield self._begin(state)
        self.sign()

    @contextmanager
    def sweeping(self, lease: Lease) -> Iterator[Step[SweepWriter]]:
        """The same for a sweeper, whose lease is proved in the same transaction."""
        with self.database.sweeper(lease) as state:
            yield self._begin(state)
        self.sign()

    def open(self) -> VerifierKey:
        """The ledger's present key. On first use this makes the ledger: origin, key and first entry."""
        with self.reading() as log:
            if log.size:
                self._check_origin(log)
                return log.trust().ledger[-1].key
        with self.writing():
            pass
        with self.reading() as log:
            return log.trust().ledger[-1].key

    def sign(self) -> Note:
        """The checkpoint of everything that is in the log; signed now unless it was before."""
        with self.database.writer() as state:
            log = Log(state.connection)
            self._check(log)
            keys = log.trust().ledger
            for old, new in pairwise(keys):
                assert old.until is not None
                if not _signed_by(log.checkpoint(old.until), old.key, new.key):
                    self._sign(log, old.until, [old.key, new.key])
            if not _signed_by(log.checkpoint(log.size), keys[-1].key):
                self._sign(log, log.size, [keys[-1].key])
        return self.publish()

    def publish(self) -> Note:
        """Bring the copies outside up to the checkpoints that the database keeps; gives the last one."""
        # Exclusive, though it writes nothing here: two processes must not overtake each other outside.
        with self.database.writer() as state:
            log = Log(state.connection)
            self._check(log)
            notes = {self.home.copy(trusted.key): log.checkpoint(trusted.until) for trusted in log.trust().ledger}
            for copy, note in notes.items():
                if note and copy.read() != note:
                    copy.write(note)
            last = log.checkpoint()
            assert last
            return last

    def rotate(self) -> VerifierKey:
        """A new key signs from now on; the entry that says so is the last that the old one signs."""
        self.open()
        with self.writing() as step:
            old = step.log.trust().ledger[-1].key
            new = self._new_signer(old.name)
            step.append(KeyRotated(at=self.clock.now(), old=old.encode(), new=new.key.encode()))
        return new.key

    def _begin(self, state: WriterT) -> Step[WriterT]:
        step = Step(state, Log(state.connection), self.clock.simulated)
        if step.log.size == 0:
            signer = self._first_signer()
            step.append(LedgerCreated(at=self.clock.now(), origin=signer.key.name, key=signer.key.encode()))
        self._check(step.log)
        # A key that cannot be read must stop the change, not only the signature after it.
        self._signer(step.log.trust().ledger[-1].key)
        return step

    def _check(self, log: Log) -> None:
        self._check_origin(log)
        if note := log.checkpoint():
            check_continues(log, note, whence="its last checkpoint")
        for copy in {self.home.copy(trusted.key) for trusted in log.trust().ledger}:
            if note := copy.read():
                check_continues(log, note, whence=f"the copy at {copy.path}")

    def _check_origin(self, log: Log) -> None:
        origin = log.trust().origin
        if self.home.origin not in (None, origin):
            raise InputError(
                f"ledger.origin is {self.home.origin}, but this ledger is {origin}",
                hint=f"an origin is set once: write `origin: {origin}` again, or begin with a new state",
            )

    def _sign(self, log: Log, size: int, keys: list[VerifierKey]) -> None:
        text = Checkpoint(keys[0].name, size, log.root(size)).text()
        log.keep_checkpoint(size, sign(text, [self._signer(key) for key in keys]))

    def _signer(self, key: VerifierKey) -> Signer:
        name = f"{_KEY_PREFIX}{key.key_hash.hex()}"
        signer = Signer.parse(self.home.keys.read(name).decode(errors="replace"))
        if signer.key != key:
            raise ProofError(f"key in {name}", expected=key.encode(), found=signer.key.encode())
        return signer

    def check_never_signed(self) -> list[Signer]:
        """The keys that lie ready for a ledger without entries; refused when one of them has signed entries before."""
        names = [name for name in self.home.keys.names() if name.startswith(_KEY_PREFIX)]
        signers = [Signer.parse(self.home.keys.read(name).decode(errors="replace")) for name in names]
        if self.home.origin is not None:
            signers = [signer for signer in signers if signer.key.name == self.home.origin]
        copies = {self.home.copy(signer.key) for signer in signers}
        if self.home.checkpoint:
            copies.add(OutsideCopy(self.home.checkpoint))
        for copy in copies:
            if note := copy.read():
                raise RewoundError(
                    f"size of the ledger, by the copy at {copy.path}",
                    expected=f"at least {Checkpoint.parse(note.text).size}",
                    found="0",
                    hint="the state is lost or another one: bring back its newest copy",
                )
        return signers

    def _first_signer(self) -> Signer:
        """The key of a ledger that has no entry yet: the one that lies there, or a new one."""
        signers = self.check_never_signed()
        if len(signers) > 1:
            raise RefusedError(
                f"{self.home.keys.path} holds {len(signers)} keys for an empty ledger",
                hint="leave the one that is to sign, and move the others away",
            )
        return signers[0] if signers else self._new_signer(self.home.origin or self._default_origin())

    def _new_signer(self, origin: str) -> Signer:
        signer = Signer.generate(check_name(origin))
        self.home.keys.store(f"{_KEY_PREFIX}{signer.key.key_hash.hex()}", signer.encode().encode())
        self.notices.append(
            f"made a key for the ledger {origin} in {self.home.keys.path}; its public half is {signer.key.encode()}"
        )
        return signer

    def _default_origin(self) -> str:
        return f"ebbtide.local/{quote(self.home.project, safe='')}/{secrets.token_hex(4)}"


def _signed_by(note: Note | None, *keys: VerifierKey) -> bool:
    if note is None:
        return False
    try:
        return {verified.key for verified in note.verify(keys)} >= set(keys)
    except EbbtideError:
        return False
