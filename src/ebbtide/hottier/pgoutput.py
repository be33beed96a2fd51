"""The messages of `pgoutput` (protocol 1, binary), many at once: what kind each is, and where its values lie.

A batch is whole transactions, one message after the other in one buffer. Changes of leaves with the same columns are
looked at together; only relations, messages of our own and truncations are few enough for a loop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ebbtide.hottier.values import Bytes, CannotFollowError, Field, Ints, integers

_B, _C, _D, _I, _M, _R, _T, _U = b"BCDIMRTU"
_KEY, _NEW, _OLD = b"KNO"
_NULL, _UNCHANGED = b"nu"
_AGAIN = "run `ebbtide tier resync TABLE`"


@dataclass(frozen=True, slots=True)
class Relation:
    """A leaf as a transaction wrote into it: its columns in its own order."""

    oid: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A message of ours in the log: DDL that a trigger saw, or the marker of a seal."""

    prefix: str
    content: str
    at: int
    """The end of its transaction."""


@dataclass(frozen=True, slots=True)
class Truncated:
    oids: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Losses:
    """How many rows transactions put into one leaf and took from it, in the log's order; `ends` are their ends."""

    oid: int
    ends: Ints
    inserted: Ints
    deleted: Ints


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Changes of one kind on leaves with the same columns. `order` is their place in the log."""

    relation: Relation
    oids: Ints
    order: Ints
    new: tuple[Field, ...] | None
    old: tuple[Field, ...] | None


@dataclass(frozen=True)
class ChangeBatch:
    """Whole transactions of the log."""

    buffer: Bytes
    starts: Ints
    lengths: Ints
    more: bool = False
    """Whether there may be more of the log behind it."""

    @cached_property
    def kinds(self) -> Bytes:
        return self.buffer[self.starts]

    @cached_property
    def commits(self) -> tuple[Ints, Ints]:
        """Where the commits are among the messages, and the end of each transaction in the log."""
        at = np.flatnonzero(self.kinds == _C)
        return at, integers(self.buffer, self.starts[at] + 10, 8)

    @property
    def end(self) -> int | None:
        ends = self.commits[1]
        return int(ends[-1]) if len(ends) else None

    def commit_of(self, order: Ints) -> Ints:
        """The end of the transaction that each of these messages belongs to."""
        at, ends = self.commits
        return ends[np.searchsorted(at, order)]

    def until(self, end: int) -> ChangeBatch:
        """The transactions that end before this position; whole ones only."""
        at, ends = self.commits
        kept = at[ends < end]
        count = int(kept[-1]) + 1 if len(kept) else 0
        return ChangeBatch(self.buffer, self.starts[:count], self.lengths[:count])

    def after(self, position: int) -> ChangeBatch:
        """The transactions that end behind this position: after a crash the server may tell older ones again.

        With what older ones described: a relation is told once.
        """
        at, ends = self.commits
        old = at[ends <= position]
        first = int(old[-1]) + 1 if len(old) else 0
        kept = (np.arange(len(self.starts)) >= first) | (self.kinds == _R)
        return ChangeBatch(self.buffer, self.starts[kept], self.lengths[kept])

    def split(self) -> tuple[ChangeBatch, bytes, bytes]:
        """The whole transactions; and the messages, with their lengths, that whoever reads on begins with: what was
        described last of each partition, and the transaction that has not ended.
        """
        at, _ = self.commits
        count = int(at[-1]) + 1 if len(at) else 0
        described = {relation.oid: n for n, relation in self.relations if n < count}
        kept = np.array([*sorted(described.values()), *range(count, len(self.starts))], np.int64)
        messages = b"".join([self._raw(int(n)) for n in kept[: len(described)]])
        if count < len(self.starts):
            messages += self.buffer[int(self.starts[count]) :].tobytes()
        whole = ChangeBatch(self.buffer, self.starts[:count], self.lengths[:count], self.more)
        return whole, messages, self.lengths[kept].astype(">i4").tobytes()

    @property
    def committed_at(self) -> int:
        """When the last transaction was committed, in microseconds since 2000."""
        at, _ = self.commits
        return int(integers(self.buffer, self.starts[at[-1:]] + 18, 8)[0])

    def told(self, prefix: str) -> Iterator[LogMessage]:
        """Messages whose prefix begins like that, in the order of the log. Those of others are passed by."""
        # One that is not transactional says nothing: it survives a transaction that is undone.
        last = self.commits[0][-1] if len(self.commits[0]) else -1
        for n in np.flatnonzero((self.kinds == _M) & (self.buffer[self.starts + 1] == 1)):
            if n > last:
                break
            name, _, rest = self._raw(int(n))[10:].partition(b"\0")
            if name.startswith(prefix.encode()):
                at = int(self.commit_of(np.array([n]))[0])
                yield LogMessage(name.decode(), rest[4:].decode(), at)

    def truncated(self) -> Iterator[Truncated]:
        for n in np.flatnonzero(self.kinds == _T):
            raw = self._raw(int(n))
            (count,) = struct.unpack_from("!i", raw, 1)
            oids = struct.unpack_from(f"!{count}I", raw, 6)
            yield Truncated(oids, int(self.commit_of(np.array([n]))[0]))

    def losses(self) -> Iterator[Losses]:
        """Of each leaf that loses rows, what every transaction does to the number of them."""
        places = np.flatnonzero((self.kinds == _I) | (self.kinds == _D))
        places = places[: np.searchsorted(places, self.commits[0][-1:].max(initial=-1))]
        oids, lost = self._oids(places), self.kinds[places] == _D
        for oid in np.unique(oids[lost]):
            mine = oids == oid
            ends, which = np.unique(self.commit_of(places[mine]), return_inverse=True)
            deleted = np.bincount(which, lost[mine], len(ends)).astype(np.int64)
            yield Losses(int(oid), ends, np.bincount(which, minlength=len(ends)) - deleted, deleted)

    def _oids(self, places: Ints) -> Ints:
        return integers(self.buffer, self.starts[places] + 1, 4) & 0xFFFFFFFF

    @cached_property
    def relations(self) -> tuple[tuple[int, Relation], ...]:
        """Each relation message with its place: a leaf whose columns change has several."""
        return tuple((int(n), _relation(self._raw(int(n)))) for n in np.flatnonzero(self.kinds == _R))

    def _raw(self, n: int) -> bytes:
        start = int(self.starts[n])
        return self.buffer[start : start + int(self.lengths[n])].tobytes()

    def changes(self) -> Iterator[RowChanges]:
        """All row changes, grouped by the columns of their leaves and by which images they carry."""
        places = np.flatnonzero(np.isin(self.kinds, (_I, _U, _D)))
        if not len(places):
            return
        oids = self._oids(places)
        for relation, rows in self._by_relation(places, oids):
            order, first = places[rows], self.buffer[self.starts[places[rows]] + 5]
            kinds = self.kinds[order]
            for kind, image in ((_I, _NEW), (_U, _NEW), (_U, _KEY), (_U, _OLD), (_D, _KEY), (_D, _OLD)):
                chosen = (kinds == kind) & (first == image)
                if chosen.any():
                    yield self._fields(relation, oids[rows][chosen], order[chosen], kind, image)

    def _fields(self, relation: Relation, oids: Ints, order: Ints, kind: int, image: int) -> RowChanges:
        at, old, new = self.starts[order] + 6, None, None
        if image != _NEW:
            old, at = fields(self.buffer, at, len(relation.columns))
            at = at + 1  # the letter before the new row
        if kind != _D:
            new, _ = fields(self.buffer, at, len(relation.columns))
        return RowChanges(relation, oids, order, new, old)

    def _by_relation(self, places: Ints, oids: Ints) -> Iterator[tuple[Relation, NDArray[np.int64]]]:
        by_columns: dict[tuple[str, ...], list[NDArray[np.int64]]] = {}
        for oid in np.unique(oids):
            rows = np.flatnonzero(oids == oid)
            known = [(n, relation) for n, relation in self.relations if relation.oid == oid]
            which = np.searchsorted(np.array([n for n, _ in known], np.int64), places[rows]) - 1
            if which.min() < 0:
                raise CannotFollowError("the log changes rows of a partition that it did not describe", hint=_AGAIN)
            for k, (_, relation) in enumerate(known):
                if (mine := rows[which == k]).size:
                    by_columns.setdefault(relation.columns, []).append(mine)
        for columns, parts in by_columns.items():
            yield Relation(0, columns), np.sort(np.concatenate(parts))


def _relation(raw: bytes) -> Relation:
    (oid,) = struct.unpack_from("!I", raw, 1)
    at = raw.index(b"\0", raw.index(b"\0", 5) + 1) + 2  # behind schema, name and the kind of its identity
    (count,) = struct.unpack_from("!h", raw, at)
    at += 2
    columns = []
    for _ in range(count):
        end = raw.index(b"\0", at + 1)
        columns.append(raw[at + 1 : end].decode())
        at = end + 9
    return Relation(oid, tuple(columns))


def fields(buffer: Bytes, at: Ints, count: int, *, copied: bool = False) -> tuple[tuple[Field, ...], Ints]:
    """The fields of rows that begin at these places, and where each row ends.

    `copied`: as COPY writes them, a length of -1 for NULL and no letter before it.
    """
    at = at + 2  # how many columns
    found = []
    for _ in range(count):
        if copied:
            length = integers(buffer, at, 4)
            there = length >= 0
            kept = np.zeros(len(at), np.bool_)
            length, step = np.where(there, length, 0), 4
            start = at + 4
            at = at + step + length
        else:
            letter = buffer[np.clip(at, 0, len(buffer) - 1)]
            kept = letter == _UNCHANGED
            there = (letter != _NULL) & ~kept
            length = np.where(there, integers(buffer, at + 1, 4), 0)
            start = at + 5
            at = at + 1 + np.where(there, 4 + length, 0)
        found.append(Field(start, length, there, kept))
    return tuple(found), at


def joined(messages: bytes, lengths: bytes, *, more: bool = False) -> ChangeBatch:
    """A batch from messages back to back, and their lengths as the server packed them."""
    sizes = np.frombuffer(lengths, ">i4").astype(np.int64)
    ends = np.cumsum(sizes)
    return ChangeBatch(np.frombuffer(messages, np.uint8), ends - sizes, sizes, more)
