"""The ledger of a project: who may sign, what is signed, and when (spec §5).

Invariants:

1. A change of the state and its entries are one transaction (`writing`, `sweeping`); the checkpoint is signed after it,
   in a transaction of its own. A crash between the two leaves entries that the next checkpoint covers.
2. Before anything is appended or signed, the log is held against what is known without its database: keys, origin,
   copies of the checkpoint (`vouched.py`). A log that is smaller, or another one, is refused (a restored backup).
3. Signed is what was appended, not what is found: the frontier of the appends is kept beside the keys, on disk before
   each commit (`frontier.py`). An entry that no signer appended is refused, by its index.
4. A checkpoint is handed out only when the copy outside vouches for it; the copy only ever moves forward. A ledger
   has one from before its first entry on: the checkpoint of nothing.
5. The origin is set once. After a rotation the first checkpoint is the one that ends with the entry of the rotation,
   and both keys sign it; the old key signs nothing after that.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar
from urllib.parse import quote

from ebbtide.errors import EbbtideError, InputError, NotAppendedError, RefusedError, RewoundError
from ebbtide.ledger.attachments import attach_files
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Files, KeyRotated, LedgerCreated
from ebbtide.ledger.frontier import NOTHING, Appended, Frontier
from ebbtide.ledger.home import Home as Home
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint, Note, Signer, VerifierKey, check_name, sign
from ebbtide.ledger.redaction import dataset_in_ledger, files_in_ledger
from ebbtide.ledger.request_entries import RequestBatch
from ebbtide.ledger.request_index import requests_in
from ebbtide.ledger.tree import EMPTY_ROOT, consistency_proof, verify_consistency
from ebbtide.ledger.vouched import Outside, check_appended, check_key, check_origin, check_signed, take_over
from ebbtide.run import finishing
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import Salt
from ebbtide.state.writer import StateWriter

_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

WriterT = TypeVar("WriterT", bound=StateWriter)
T = TypeVar("T")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of what is written. Entries of a simulated one are stamped (spec §2)."""

    now: Callable[[], datetime]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Step(Generic[WriterT]):
    """One transaction of state and log."""

    state: WriterT
    log: LedgerLog
    simulated: bool
    start: Frontier = NOTHING
    """What was in the log when the transaction began."""

    def append(self, *entries: Entry) -> range:
        """Add entries to the log; gives their indexes."""
        return self.log.append([replace(entry, simulated=True) for entry in entries] if self.simulated else entries)

    def append_batch(self, entries: Sequence[Entry], *, attachments: Iterable[str] = ()) -> int:
        """Add one entry for many requests: entries of one kind and time, each of one request; gives its index."""
        first = entries[0]
        requests = [named for entry in entries for named in requests_in(entry)]
        if len(requests) != len(entries) or {(entry.KIND, entry.at) for entry in entries} != {(first.KIND, first.at)}:
            raise InputError("a batch of different things", hint="one kind, one time, and one request an entry")
        leaves = [replace(entry, simulated=True).encode() if self.simulated else entry.encode() for entry in entries]
        return self.append_leaves(first.KIND, first.at, requests, leaves, attachments=attachments)

    def append_leaves(
        self,
        kind: str,
        at: datetime,
        requests: Sequence[str],
        leaves: Sequence[bytes],
        *,
        attachments: Iterable[str] = (),
    ) -> int:
        """The same for leaves that are encoded already, and stamped where the clock is simulated."""
        batch = RequestBatch(
            at=at, simulated=self.simulated, of=kind, count=len(leaves), root="", attachments=tuple(attachments)
        )
        return self.log.append_batch(batch, requests, leaves)

    def attach_files(self, salt: Salt, files: Mapping[str, int]) -> Files:
        """Keep a list of files with their sizes beside the log, for an entry to name; their paths keyed."""
        return attach_files(self.state.connection, files_in_ledger(salt, files))

    def dataset_in_ledger(self, dataset: str) -> str:
        """A dataset as an entry names it."""
        return dataset_in_ledger(self.state.condemned(), dataset)


@dataclass(slots=True)
class Ledger:
    """The ledger of one project. `notices` is what a door must tell people once."""

    database: Database
    home: Home
    clock: Clock
    notices: list[str] = field(default_factory=list)
    patience: tuple[float, ...] = _WAITS
    """Seconds to wait for the signature of another host, again and again."""

    @contextmanager
    def reading(self) -> Iterator[LedgerLog]:
        """The log as it is now; nothing can be appended."""
        with self.database.reader() as state:
            yield LedgerLog(state.connection)

    @contextmanager
    def verified(self) -> Iterator[LedgerLog]:
        """The same, after it was held against what is known outside: whatever it says now may be handed on."""
        # What is outside runs ahead of a snapshot, and behind it: before and after are both read.
        before = Outside.read(self.home)
        with self.reading() as log:
            signed = check_signed(log, before, adopting=True)
            origin = log.trust().origin
            after = Outside.read(self.home).appended[origin]
            check_appended(log, before.appended[origin], signed, also=after.frontiers())
            yield log

    @contextmanager
    def writing(self) -> Iterator[Step[StateWriter]]:
        """Change the state and say so in the log; the checkpoint is signed when the block is left without an error."""
        with finishing():
            with ExitStack() as stack:
                step = self._enter(stack, self.database.writer, self._begin)
                yield step
                self._intend(step)
            self.sign()

    @contextmanager
    def sweeping(self, lease: Lease) -> Iterator[Step[SweepWriter]]:
        """The same for a sweeper, whose lease is proved in the same transaction."""
        with finishing():
            with ExitStack() as stack:
                step = self._enter(stack, lambda: self.database.sweeper(lease), self._begin)
                yield step
                self._intend(step)
            self.sign()

    def open(self) -> VerifierKey:
        """The ledger's present key. On first use this makes the ledger: origin, key and first entry."""
        with self.reading() as log:
            if log.size:
                return self._present_key(log)
        with self.writing():
            pass
        with self.reading() as log:
            return self._present_key(log)

    def sign(self) -> Note:
        """The checkpoint of everything that was appended; signed now unless it was before."""
        with ExitStack() as stack:
            log = self._enter(stack, self.database.writer, self._vouched)
            keys, head = log.trust().ledger, log.frontier()
            file = self.home.frontier(keys[0].key.name)
            if file.read() != Appended(head):
                file.write(Appended(head))
            for old, new in pairwise(keys):
                assert old.until is not None
                if not _signed_by(log.checkpoint(old.until), old.key, new.key):
                    self._sign(log, old.until, [old.key, new.key])
            if not _signed_by(log.checkpoint(head.size), keys[-1].key):
                self._sign(log, head.size, [keys[-1].key])
                _logger.debug("checkpoint of %d entries signed", head.size)
        return self.publish()

    def adopt(self, *, up_to: int | None = None) -> Note:
        """Let this host, which has no copy of a checkpoint yet, begin with what the ledger signed last.

        Entries that no checkpoint covers and nobody here appended are taken over only up to the size that a person
        names, who has looked at them: whoever appended them is gone.
        """
        with ExitStack() as stack:
            begin = partial(self._vouched, adopting=True) if up_to is None else partial(self._taken_over, up_to=up_to)
            log = self._enter(stack, self.database.writer, begin)
            present = log.trust().ledger[-1].key
            copy = self.home.copy(present)
            if copy.read() is None:
                copy.write(log.checkpoint() or self._empty(present))
                self.notices.append(f"keeps the last checkpoint at {copy.path} from now on")
        return self.sign()

    def publish(self) -> Note:
        """Bring the copies outside up to the checkpoints that the database keeps; gives the last one."""
        # Exclusive, though it writes nothing here: two processes must not overtake each other outside.
        with self.database.writer() as state:
            log = LedgerLog(state.connection)
            # What another host appended and has not signed yet is not handed out here, and no reason to stop.
            check_signed(log, Outside.read(self.home))
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

    def _enter(
        self,
        stack: ExitStack,
        transaction: Callable[[], AbstractContextManager[WriterT]],
        begin: Callable[[WriterT], T],
    ) -> T:
        """Begin a transaction; wait outside of it while another host has committed and is about to sign."""
        # A file is one host's, whose processes share the frontier: there is nobody to wait for.
        for seconds in () if self.database.is_sqlite else self.patience:
            with ExitStack() as attempt:
                state = attempt.enter_context(transaction())
                with suppress(NotAppendedError):
                    begun = begin(state)
                    stack.push(attempt.pop_all())
                    return begun
            time.sleep(seconds)
        return begin(stack.enter_context(transaction()))

    def _begin(self, state: WriterT) -> Step[WriterT]:
        if LedgerLog(state.connection).size:
            log = self._vouched(state)
            # A key that cannot be read must stop the change, not only the signature after it.
            self.home.signer(log.trust().ledger[-1].key)
            return Step(state, log, self.clock.simulated, log.frontier())
        signer = self._first_signer()
        # The copy comes first: whoever finds entries without one is on another host, or the copy is lost.
        copy = self.home.copy(signer.key)
        if copy.read() is None:
            copy.write(self._empty(signer.key))
        step = Step(state, LedgerLog(state.connection), self.clock.simulated)
        step.append(LedgerCreated(at=self.clock.now(), origin=signer.key.name, key=signer.key.encode()))
        check_signed(step.log, Outside.read(self.home))
        return step

    def _intend(self, step: Step[WriterT]) -> None:
        """Keep on disk what the transaction will lead to, before it commits."""
        grown = step.log.frontier()
        if grown != step.start:
            self.home.frontier(step.log.trust().origin).write(Appended(step.start, grown))

    def _vouched(self, state: StateWriter, *, adopting: bool = False) -> LedgerLog:
        """The log, held against everything that is known without it."""
        log = LedgerLog(state.connection)
        outside = Outside.read(self.home)
        signed = check_signed(log, outside, adopting=adopting)
        check_appended(log, outside.appended[log.trust().origin], signed)
        return log

    def _taken_over(self, state: StateWriter, *, up_to: int) -> LedgerLog:
        """The log, with entries of somebody else's for which a person gives her word."""
        log = LedgerLog(state.connection)
        outside = Outside.read(self.home)
        signed, origin = check_signed(log, outside, adopting=True), log.trust().origin
        known, grown = take_over(log, outside.appended[origin], signed, up_to)
        self.home.frontier(origin).write(Appended(grown))
        self.notices.append(f"took over {up_to - known} entries from index {known} on that nobody had signed")
        return log

    def _present_key(self, log: LedgerLog) -> VerifierKey:
        trust = log.trust()
        check_origin(trust.origin, self.home)
        present = trust.ledger[-1].key
        check_key(present, Outside.read(self.home))
        return present

    def _sign(self, log: LedgerLog, size: int, keys: list[VerifierKey]) -> None:
        head = log.frontier()
        root = head.root if size == head.size else log.root(size)
        verify_consistency(size, root, head.size, head.root, consistency_proof(size, head.size, log.get))
        text = Checkpoint(keys[0].name, size, root).text()
        log.keep_checkpoint(size, sign(text, [self.home.signer(key) for key in keys]))

    def _empty(self, key: VerifierKey) -> Note:
        return sign(Checkpoint(key.name, 0, EMPTY_ROOT).text(), [self.home.signer(key)])

    def check_never_signed(self) -> list[Signer]:
        """The keys that lie ready for a ledger without entries; refused when one of them has signed entries before."""
        signers = self.home.signers()
        copies = {copy: copy.read() for copy in self.home.copies(signer.key for signer in signers)}
        sizes = {f"the copy at {copy.path}": Checkpoint.parse(note.text).size for copy, note in copies.items() if note}
        for origin in {signer.key.name for signer in signers}:
            sizes[f"what was appended here to {origin}"] = self.home.frontier(origin).read().certain.size
        for whence, size in sizes.items():
            if size:
                raise RewoundError(
                    f"size of the ledger, by {whence}",
                    expected=f"at least {size}",
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
        self.home.store(signer)
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
