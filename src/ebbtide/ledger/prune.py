"""The ledger's own retention: bodies go, hashes stay, proofs still work (spec §5).

What stays whatever its age: the entries that name keys and prunings, intents that wait for their outcome, intents
whose outcome is younger, and everything about a request that is still open. Of a batch that has an open request only
the leaves of the closed ones go. What was removed is said in an entry, in the same transaction, so an audit knows a
pruned body from a lost one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select, update

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.attachments import detach, kept
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import BodiesPruned, Indexes, attachments_of, parse_entry
from ebbtide.ledger.leaf import read_body, requests_of
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.recompute import uncovered
from ebbtide.state.reader import StateReader
from ebbtide.state.tables import acts, ledger_acts, ledger_entries, ledger_requests, requests

_RANGES_PER_ENTRY = 1000


@dataclass(frozen=True, slots=True)
class Pruning:
    """What goes: entries by index, and attachments that no entry names afterwards."""

    ranges: tuple[Indexes, ...]
    attachments: tuple[str, ...]
    batches: tuple[int, ...] = ()
    """Batches that stay, and the leaves of whose closed requests go."""

    @property
    def bodies(self) -> int:
        """How many bodies go."""
        return sum(item.last - item.first + 1 for item in self.ranges)


def plan_pruning(ledger: Ledger, *, before: datetime) -> Pruning:
    """What `prune` would remove now."""
    _check(ledger, before)
    with ledger.database.reader() as state:
        return _plan(state, LedgerLog(state.connection), before)


def prune(ledger: Ledger, *, before: datetime) -> Pruning:
    """Remove the bodies of entries from before a time, and what only they attached."""
    _check(ledger, before)
    with ledger.writing() as step:
        pruning = _plan(step.state, step.log, before)
        connection = step.state.connection
        for item in pruning.ranges:
            span = ledger_entries.c.idx.between(item.first, item.last)
            connection.execute(update(ledger_entries).where(span).values(body=None))
            gone = ledger_acts.c.intent.between(item.first, item.last)
            # The salts of what they held in keyed forms go along: nobody can hold a guess against a hash any more.
            connection.execute(delete(acts).where(acts.c.id.in_(select(ledger_acts.c.act).where(gone))))
            connection.execute(delete(ledger_acts).where(gone))
            connection.execute(delete(ledger_requests).where(ledger_requests.c.entry.between(item.first, item.last)))
        closed = select(requests.c.id).where(requests.c.closed_at.is_not(None))
        for batch in pruning.batches:
            leaves = (ledger_requests.c.entry == batch) & ledger_requests.c.request.in_(closed)
            connection.execute(update(ledger_requests).where(leaves).values(leaf=None))
        detach(connection, pruning.attachments)
        for start in range(0, max(len(pruning.ranges), len(pruning.batches)), _RANGES_PER_ENTRY):
            some = slice(start, start + _RANGES_PER_ENTRY)
            ranges, batches = pruning.ranges[some], pruning.batches[some]
            step.append(BodiesPruned(at=ledger.clock.now(), before=before, ranges=ranges, batches=batches))
    ledger.database.scrub()
    return pruning


def served_bodies(log: LedgerLog, size: int) -> Iterator[bytes | None]:
    """The bodies of the first entries, None where one was pruned. One that is gone and was not ends it with an error.

    The entries that tell of prunings are never pruned themselves.
    """
    missing: list[int] = []
    ranges: list[Indexes] = []
    for index, _, body in log.rows(0, size):
        if body is None:
            missing.append(index)
        elif BodiesPruned.KIND.encode() in body and isinstance(entry := parse_entry(body), BodiesPruned):
            ranges += entry.ranges
        yield body
    for index in uncovered(missing, ranges):
        raise ProofError(
            f"body of entry {index}", expected="a body, for no entry says that it was pruned", found="none"
        )


def _check(ledger: Ledger, before: datetime) -> None:
    if before > ledger.clock.now():
        raise InputError("bodies of the future cannot be pruned", hint="give a time that is past")


def _plan(state: StateReader, log: LedgerLog, before: datetime) -> Pruning:
    still_open = {request.id for request in state.requests(only_open=True)}
    needed, partly = _batches(state)
    known = state.connection.execute(select(ledger_acts)).all()
    # An act that a mark waits for is not over: its salt and its head are needed, and of old ones the intent itself.
    waited_for = {mark.act for mark in state.marks() if mark.act is not None}
    old = {index for index, entry, body in _bodies(log) if _is_old(entry, body, before, still_open)}
    batches, old = sorted(old & needed & partly), old - needed
    # An outcome goes with its intent, so that neither is ever read alone.
    for row in known:
        if row.act in waited_for or row.intent not in old or row.outcome not in old:
            old -= {row.intent, row.outcome}
    named = {mark.files for mark in state.marks() if mark.files}
    named = named.union(*(attachments_of(entry) for index, entry, _ in _bodies(log) if index not in old))
    attachments = tuple(sorted(kept(state.connection) - named)) if old else ()
    return Pruning(_ranges(sorted(old)), attachments, tuple(batches))


def _batches(state: StateReader) -> tuple[set[int], set[int]]:
    """Batches that have an open request, and those that still have the leaf of a closed one."""
    leaves = select(ledger_requests.c.entry).join(requests, requests.c.id == ledger_requests.c.request)
    leaves = leaves.where(ledger_requests.c.leaf.is_not(None)).distinct()
    is_open = requests.c.closed_at.is_(None)
    needed, partly = (set(state.connection.execute(leaves.where(one)).scalars()) for one in (is_open, ~is_open))
    return needed, partly


def _is_old(entry: Entry, requests_named: tuple[str, ...], before: datetime, still_open: set[str]) -> bool:
    return entry.at < before and not entry.LASTING and still_open.isdisjoint(requests_named)


def _bodies(log: LedgerLog) -> Iterator[tuple[int, Entry, tuple[str, ...]]]:
    for index, _, body in log.rows(0):
        if body is not None:
            yield index, parse_entry(body), requests_of(read_body(body)) or ()


def _ranges(indexes: Sequence[int]) -> tuple[Indexes, ...]:
    found: list[Indexes] = []
    for index in indexes:
        if found and found[-1].last == index - 1:
            found[-1] = Indexes(first=found[-1].first, last=index)
        else:
            found.append(Indexes(first=index, last=index))
    return tuple(found)
