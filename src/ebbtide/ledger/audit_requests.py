"""What the ledger keeps of requests beside its entries, against the entries: the index, and the leaves of batches.

A batch stands in the log by its root. So its leaves, of which certificates are made, must hash to that root, and say
what a leaf of that batch says; one that is missing must have been pruned.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import or_, select

from ebbtide.errors import EbbtideError
from ebbtide.ledger import tree
from ebbtide.ledger.batch import MAX_BATCH, Tree
from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.recompute import Mismatch, Recomputed
from ebbtide.ledger.request_entries import RequestBatch
from ebbtide.ledger.request_index import BatchLeaf, leaves_of, requests_in
from ebbtide.state.reader import StateReader
from ebbtide.state.tables import ledger_certificate_keys, ledger_requests


def request_findings(state: StateReader, truth: Recomputed) -> Iterator[Mismatch]:
    """Every row of the index against the entries, both ways; every leaf against its batch."""
    table = ledger_requests.c
    query = select(table.entry, table.place, table.request).where(table.leaf_hash.is_(None))
    stored = {(row.entry, row.place): row.request for row in state.connection.execute(query)}
    for place in sorted(truth.named.keys() | stored.keys()):
        expected, found = truth.named.get(place), stored.get(place)
        if expected != found:
            yield Mismatch(f"index of entry {place[0]}, place {place[1]}", expected or "no row", found or "no row")
    batches = select(table.entry).where(or_(table.leaf_hash.is_not(None), table.leaf.is_not(None))).distinct()
    for index in sorted(set(state.connection.execute(batches).scalars()) - truth.batches.keys()):
        yield Mismatch(f"leaves of entry {index}", "none, for it is no batch", "some")
    for index, batch in truth.batches.items():
        yield from _batch(index, batch, list(leaves_of(state.connection, index)), index in truth.pruned_batches)
    keys = {row.entry: row.key for row in state.connection.execute(select(ledger_certificate_keys))}
    for index in sorted(keys.keys() | truth.certificate_keys.keys()):
        if keys.get(index) != truth.certificate_keys.get(index):
            expected, found = truth.certificate_keys.get(index), keys.get(index)
            yield Mismatch(f"certificates' key of entry {index}", expected or "no row", found or "no row")


def _batch(index: int, batch: RequestBatch, leaves: list[BatchLeaf], was_pruned: bool) -> Iterator[Mismatch]:
    where = f"leaves of entry {index}"
    if [leaf.place for leaf in leaves] != list(range(batch.count)):
        yield Mismatch(where, f"{batch.count}, one after the other", f"{len(leaves)}")
        return
    hashes = [leaf.leaf_hash for leaf in leaves]
    whole = all(isinstance(one, bytes) and len(one) == tree.HASH_BYTES for one in hashes)
    if not whole or not 0 < len(leaves) <= MAX_BATCH:
        yield Mismatch(where, f"1 to {MAX_BATCH}, each with a hash", "something else")
        return
    if (root := Tree(hashes).root.hex()) != batch.root:
        yield Mismatch(where, f"root {batch.root}", root)
    for leaf in leaves:
        wrong = _leaf(batch, leaf, was_pruned)
        if wrong is not None:
            yield Mismatch(f"leaf {leaf.place} of entry {index}", *wrong)


def _leaf(batch: RequestBatch, leaf: BatchLeaf, was_pruned: bool) -> tuple[str, str] | None:
    if leaf.leaf is None:
        return None if was_pruned else ("a leaf, for no entry says that it was pruned", "none")
    if not isinstance(leaf.leaf, bytes):
        return "bytes", type(leaf.leaf).__name__
    if (found := tree.leaf_hash(leaf.leaf)) != leaf.leaf_hash:
        return f"leaf hash {leaf.leaf_hash.hex()}", found.hex()
    try:
        entry = parse_entry(leaf.leaf)
    except EbbtideError as error:
        return "an entry", error.message
    said = (entry.KIND, entry.at, entry.simulated, requests_in(entry))
    if said != (batch.of, batch.at, batch.simulated, (leaf.request,)):
        return f"{batch.of} of request {leaf.request}, of the batch's time and clock", "something else"
    return None
