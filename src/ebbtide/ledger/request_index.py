"""Which entries a request is made of, without reading the log: rows beside it, kept by every append.

The rows follow from the entries, and the audit compares them. Of a batch they also hold its leaves, which stand in the
log by their root only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from ebbtide.errors import ProofError, RefusedError
from ebbtide.ledger.batch import Tree
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.leaf import Batched
from ebbtide.ledger.request_entries import CertificateKey
from ebbtide.state.bulk import insert_rows
from ebbtide.state.tables import ledger_certificate_keys, ledger_requests


class BatchLeaf(NamedTuple):
    """A leaf of a batch as it is kept. A pruned one has its hash only."""

    place: int
    request: str
    leaf_hash: bytes
    leaf: bytes | None


def keep(connection: Connection, indexes: Iterable[int], entries: Iterable[Entry]) -> None:
    """Index entries that were appended."""
    rows: list[tuple[int, int, str, None, None]] = []
    keys: list[dict[str, object]] = []
    for index, entry in zip(indexes, entries, strict=True):
        rows += [(index, place, request, None, None) for place, request in enumerate(requests_in(entry))]
        if isinstance(entry, CertificateKey):
            keys.append({"entry": index, "key": entry.key})
    insert_rows(connection, ledger_requests, rows)
    if keys:
        connection.execute(insert(ledger_certificate_keys), keys)


def keep_batch(
    connection: Connection, entry: int, requests: Sequence[str], hashes: Sequence[bytes], leaves: Sequence[bytes]
) -> None:
    """Keep the leaves of a batch, in its order."""
    places = range(len(leaves))
    insert_rows(
        connection, ledger_requests, list(zip([entry] * len(leaves), places, requests, hashes, leaves, strict=True))
    )


def requests_in(entry: Entry) -> tuple[str, ...]:
    """The requests that an entry names, whatever its kind."""
    one: str | None = getattr(entry, "request", None)
    several: tuple[str, ...] = getattr(entry, "requests", ())
    return (one,) if one is not None else several


def entries_of(connection: Connection, request: str) -> list[tuple[int, Batched | None]]:
    """The entries of a request by their indexes; of a batch with the request's leaf and its path."""
    table = ledger_requests.c
    query = select(table.entry, table.place, table.leaf_hash, table.leaf).where(table.request == request)
    found: dict[int, Batched | None] = {}
    for row in connection.execute(query.order_by(table.entry, table.place)).all():
        found[row.entry] = None if row.leaf_hash is None else _batched(connection, row.entry, row.place, row.leaf)
    return sorted(found.items())


def named_since(connection: Connection, entry: int) -> set[str]:
    """The requests that entries name from this index on."""
    query = select(ledger_requests.c.request).where(ledger_requests.c.entry >= entry).distinct()
    return set(connection.execute(query).scalars())


def leaves_of(connection: Connection, entry: int) -> Iterator[BatchLeaf]:
    """The leaves of a batch, in their order."""
    table = ledger_requests.c
    query = select(table.place, table.request, table.leaf_hash, table.leaf).where(table.entry == entry)
    for row in connection.execute(query.order_by(table.place)):
        yield BatchLeaf(*row)


def certificate_key(connection: Connection) -> tuple[int, str] | None:
    """The key that signs certificates now, and the index of its entry."""
    query = (
        select(ledger_certificate_keys.c.entry, ledger_certificate_keys.c.key)
        .order_by(ledger_certificate_keys.c.entry.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.entry, row.key)


def _batched(connection: Connection, entry: int, place: int, leaf: bytes | None) -> Batched:
    if leaf is None:
        raise RefusedError(
            f"leaf {place} of the batch in entry {entry} is past the ledger's retention",
            hint="the certificate that was written out is what is left of the request",
        )
    leaves = list(leaves_of(connection, entry))
    if [one.place for one in leaves] != list(range(len(leaves))):
        raise ProofError(f"leaves of entry {entry}", expected="one after the other", found="a gap")
    return Batched(place, leaf, Tree([one.leaf_hash for one in leaves]).path(place))
