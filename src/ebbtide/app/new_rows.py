"""`incremental`: the rows that came since a transaction, as a DataFrame; never a gap in silence (spec §8).

The line of a branch is walked from its head back to `since`, past its fork into the line that it came from. What cannot
be read as "new rows" stops it: transactions that retention removed between, that are marked, or that did more than add
rows. Compactions and metadata change no row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from ebbtide.formats.base import Depth, Format, supports
from ebbtide.formats.registry import load_format, load_new_rows
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import Ref, RefKind, Transaction, TransactionKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_NEW_ROWS = (TransactionKind.REWRITE, TransactionKind.METADATA)


def incremental(
    spark: SparkSession,
    found: TableHandle,
    catalog: Catalog,
    *,
    since: str | None,
    marked: Collection[str],
    branch: str = "main",
    allow_retention: bool = False,
    allow_marked: bool = False,
) -> DataFrame:
    """The rows that a branch gained after `since` (from the beginning where None), up to its head.

    `marked` are the ids of transactions with an open mark.
    """
    adapter = load_format(catalog.format)
    new_rows = load_new_rows(adapter)
    reading = adapter.read(found, catalog, Depth.HISTORY, spark)
    line, whole = _line(reading, _branch(reading, adapter, branch), since)
    left = new_rows.retained(found, catalog, branch, line)
    if not (whole and len(left) == len(line)) and not allow_retention:
        raise FullReadNeededError(
            f"{found.id}: retention removed transactions after {since or 'the beginning'}",
            hint="read the whole table once, or pass allow_retention=True to go on from the oldest that is left",
        )
    # Who goes on after retention does not mind rows that were deleted: what is new is new.
    passed = (*_NO_NEW_ROWS, TransactionKind.DELETE) if allow_retention else _NO_NEW_ROWS
    new = [transaction for transaction in left if _kind(transaction) not in passed]
    if refused := [t.id for t in new if t.id in marked and not allow_marked]:
        raise MarkedError(
            f"{found.id}: transaction {refused[0]} is scheduled for deletion",
            hint="unmark it, or pass allow_marked=True to read it as long as it is there",
        )
    if other := [t for t in new if _kind(t) is not TransactionKind.APPEND]:
        raise FullReadNeededError(
            f"{found.id}: transaction {other[0].id} is {_kind(other[0])}: it changed rows that were read before",
            hint=f"read the whole table, then go on from {line[-1].id}",
        )
    return new_rows.rows(found, catalog, spark, reading, branch, new)


def _kind(transaction: Transaction) -> TransactionKind:
    return transaction.rows_kind or transaction.kind


def _branch(reading: Reading, adapter: Format, name: str) -> Ref | None:
    """The branch of that name; None for main where the table has no commit yet and does not list it."""
    branches = {ref.name: ref for ref in reading.refs if ref.kind is RefKind.BRANCH}
    if name in branches or name == "main":
        return branches.get(name)
    if not (can := supports(adapter, Capability.BRANCHES)):
        raise InputError(f"{reading.id} has no branch {name!r}: {can.reason}", hint="read its only branch, main")
    raise InputError(f"{reading.id} has no branch {name!r}", hint=f"one of {', '.join(sorted(branches))}")


def _line(reading: Reading, branch: Ref | None, since: str | None) -> tuple[list[Transaction], bool]:
    """The transactions of the branch after `since`, oldest first, and whether none between is missing."""
    by_id = {t.id: t for t in reading.transactions}
    name, at = ("main", None) if branch is None else (branch.name, branch.head)
    line: list[Transaction] = []
    while at is not None and at != since and at in by_id and not by_id[at].expired:
        line.append(by_id[at])
        at = by_id[at].parent_id
    line.reverse()
    if since is None or at == since:
        return line, at == since
    # A transaction that is younger than the oldest one left of the line is not among those that it lost.
    beside = since in by_id and bool(line) and by_id[since].committed_at > line[0].committed_at
    if beside or (at is None and since in by_id):
        raise FullReadNeededError(
            f"{reading.id}: {since} is not on {name}'s line: it was rolled back or replaced, or another branch has it",
            hint=f"read the whole branch once, then go on from {name}'s head",
        )
    if at is None:
        raise InputError(
            f"{reading.id}: {since} is no transaction of {name}",
            hint="`ebbtide history` shows them; where it was one before a rollback, read the whole table once",
        )
    return line, False
