"""`incremental`: the rows that came since a transaction, as a DataFrame; never a gap in silence (spec §8).

The line of main is walked from its head back to `since`. What cannot be read as "new rows" stops it: transactions that
retention removed between, that are marked, or that did more than append. Compactions and metadata change no row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_appended, load_format
from ebbtide.model.dataset import Catalog, Found, Reading
from ebbtide.model.history import Kind, Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_NEW_ROWS = (Kind.REWRITE, Kind.METADATA)


def incremental(
    spark: SparkSession,
    found: Found,
    catalog: Catalog,
    *,
    since: str | None,
    marked: Collection[str],
    allow_retention: bool = False,
    allow_marked: bool = False,
) -> DataFrame:
    """The rows that main gained after `since` (from the beginning where None), up to its head.

    `marked` are the ids of transactions with an open mark.
    """
    adapter = load_format(catalog.format)
    reading = adapter.read(found, catalog, Depth.HISTORY, spark)
    line, whole = _line(reading, since)
    if not whole and not allow_retention:
        raise FullReadNeededError(
            f"{found.id}: retention removed transactions after {since or 'the beginning'}",
            hint="read the whole table once, or pass allow_retention=True to go on from the oldest that is left",
        )
    # Who goes on after retention does not mind rows that were deleted: what is new is new.
    passed = (*_NO_NEW_ROWS, Kind.DELETE) if allow_retention else _NO_NEW_ROWS
    new = [transaction for transaction in line if transaction.kind not in passed]
    if refused := [t.id for t in new if t.id in marked and not allow_marked]:
        raise MarkedError(
            f"{found.id}: transaction {refused[0]} is scheduled for deletion",
            hint="unmark it, or pass allow_marked=True to read it as long as it is there",
        )
    if other := [t for t in new if t.kind is not Kind.APPEND]:
        raise FullReadNeededError(
            f"{found.id}: transaction {other[0].id} is {other[0].kind}: it changed rows that were read before",
            hint=f"read the whole table, then go on from {line[-1].id}",
        )
    return load_appended(catalog.format)(found, catalog, spark, reading.columns, new)


def _line(reading: Reading, since: str | None) -> tuple[list[Transaction], bool]:
    """The transactions of main after `since`, oldest first, and whether none between is missing."""
    by_id = {t.id: t for t in reading.transactions}
    main = next((ref for ref in reading.refs if ref.main), None)
    at = None if main is None else main.head
    line: list[Transaction] = []
    while at is not None and at != since and at in by_id and not by_id[at].expired:
        line.append(by_id[at])
        at = by_id[at].parent_id
    if since is not None and at is None and since in by_id:
        raise FullReadNeededError(
            f"{reading.id}: {since} is not on main's line: main was rolled back or replaced, or a branch has it",
            hint="read the whole table once, then go on from main's head",
        )
    if since is not None and at is None:
        raise InputError(
            f"{reading.id}: {since} is no transaction of main",
            hint="`ebbtide history` shows them",
        )
    line.reverse()
    return line, at == since
