"""What follows from the entries alone: the tree, and every other row of the ledger (see `audit.py`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from sqlalchemy import func, select

from ebbtide.errors import EbbtideError
from ebbtide.ledger import tree
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import (
    BodiesPruned,
    Indexes,
    Intent,
    KeyRotated,
    LedgerCreated,
    Outcome,
    attachments_of,
    parse_entry,
)
from ebbtide.ledger.log import STORED_HEIGHT, LedgerLog
from ebbtide.ledger.request_entries import CertificateKey, RequestBatch
from ebbtide.ledger.request_index import requests_in
from ebbtide.state.reader import StateReader
from ebbtide.state.tables import ledger_entries


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One row, or one set of rows, that is not what it must be."""

    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}"


@dataclass(slots=True)
class Recomputed:
    """What follows from the entries alone."""

    peaks: list[tuple[int, bytes]] = field(default_factory=list)
    nodes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    roots: dict[int, bytes] = field(default_factory=dict)
    keys: list[tuple[int, str]] = field(default_factory=list)
    acts: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    attached: set[str] = field(default_factory=set)
    named: dict[tuple[int, int], str] = field(default_factory=dict)
    """The requests that entries name, by the entry's index and the place in it."""
    batches: dict[int, RequestBatch] = field(default_factory=dict)
    certificate_keys: dict[int, str] = field(default_factory=dict)
    pruned_batches: set[int] = field(default_factory=set)
    missing: list[int] = field(default_factory=list)
    pruned: list[Indexes] = field(default_factory=list)
    end: int | None = None
    """Where the first gap begins: no hash over it can be told. None while there is none."""

    def add_leaf(self, index: int, leaf_hash: bytes, sizes: set[int]) -> None:
        """Grow the tree by one leaf, keeping only the roots of its complete subtrees."""
        if self.end is not None:
            return
        level, node = 0, leaf_hash
        while self.peaks and self.peaks[-1][0] == level:
            node = tree.node_hash(self.peaks.pop()[1], node)
            level += 1
            if level % STORED_HEIGHT == 0:
                self.nodes[level, index >> level] = node
        self.peaks.append((level, node))
        if index + 1 in sizes:
            self.roots[index + 1] = self.root()

    def root(self) -> bytes:
        """The root of the leaves so far."""
        node: bytes | None = None
        for _, peak in reversed(self.peaks):
            node = peak if node is None else tree.node_hash(peak, node)
        return tree.EMPTY_ROOT if node is None else node

    def add_entry(self, index: int, entry: Entry) -> None:
        """Take in what an entry means for the other rows."""
        self.attached |= attachments_of(entry)
        self.named |= {(index, place): request for place, request in enumerate(requests_in(entry))}
        match entry:
            case LedgerCreated(key=key) | KeyRotated(new=key):
                self.keys.append((index, key))
            case Intent(act=act):
                self.acts[act] = (index, None)
            case Outcome(act=act):
                self.acts[act] = (self.acts.get(act, (None, None))[0], index)
            case RequestBatch():
                self.batches[index] = entry
            case CertificateKey(key=key):
                self.certificate_keys[index] = key
            case BodiesPruned(ranges=ranges, batches=batches):
                self.pruned += ranges
                self.pruned_batches.update(batches)


def read_entries(state: StateReader, log: LedgerLog, truth: Recomputed, sizes: set[int]) -> Iterator[Mismatch]:
    """Hash every leaf again and take in what it says; `sizes` are those whose roots are wanted."""
    below = state.connection.execute(select(func.min(ledger_entries.c.idx))).scalar_one()
    if below is not None and below < 0:
        yield Mismatch(f"entry {below}", "no entry before 0", "a row")
    following = 0
    for index, leaf_hash, body in log.rows(0):
        if index != following:
            yield Mismatch(span(following, index - 1), "a row", "none")
            truth.end = following if truth.end is None else truth.end
        following = index + 1
        if not isinstance(leaf_hash, bytes) or len(leaf_hash) != tree.HASH_BYTES:
            yield Mismatch(f"leaf hash of entry {index}", f"{tree.HASH_BYTES} bytes", "something else")
            leaf_hash = bytes(tree.HASH_BYTES)
        if body is None:
            truth.missing.append(index)
        elif not isinstance(body, bytes):
            yield Mismatch(f"body of entry {index}", "bytes", type(body).__name__)
        else:
            if (found := tree.leaf_hash(body)) != leaf_hash:
                yield Mismatch(f"body of entry {index}", f"leaf hash {leaf_hash.hex()}", found.hex())
            try:
                truth.add_entry(index, parse_entry(body))
            except EbbtideError as error:
                yield Mismatch(f"body of entry {index}", "an entry", error.message)
        truth.add_leaf(index, leaf_hash, sizes)


def uncovered(missing: Iterable[int], ranges: Iterable[Indexes]) -> Iterator[int]:
    """Those of the missing bodies that no range covers. By ranges, not index by index: one may claim any width."""
    ordered = sorted(ranges, key=lambda item: item.first)
    reach = list(accumulate((item.last for item in ordered), max))
    for index in missing:
        before = bisect_right(ordered, index, key=lambda item: item.first)
        if not before or reach[before - 1] < index:
            yield index


def span(first: int, last: int) -> str:
    """Entries in words."""
    return f"entry {first}" if first == last else f"entries {first} to {last}"
