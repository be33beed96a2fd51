"""What transactions of a Paimon table appended, by Paimon's own incremental read.

A branch's folder holds its snapshots since the one that it was made from; what main had before is read from main's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ebbtide.errors import FullReadNeededError
from ebbtide.formats.base import NewRows
from ebbtide.formats.paimon.java import open_library
from ebbtide.formats.paimon.lines import MAIN
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import Transaction
from ebbtide.spark.session import quote
from ebbtide.storage.files import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SNAPSHOT = re.compile(r"snapshot-(\d+)")
# What a changelog says beside is of no use here: only files that came are looked at.
_MODE = {"incremental-between-scan-mode": "delta"}


def _rows(
    found: TableHandle,
    catalog: Catalog,
    spark: SparkSession,
    reading: Reading,  # noqa: ARG001 the session has the branch's own schema
    branch: str,
    transactions: Sequence[Transaction],
) -> DataFrame:
    """Paimon's read leaves out what it does not call an append, in silence: such a transaction is refused here."""
    if not transactions:
        return read_branch(found, spark, branch).limit(0)
    if other := [t for t in transactions if t.operation != "APPEND"]:
        raise FullReadNeededError(
            f"{found.id}: transaction {other[0].id} added files by {other[0].operation}, which Paimon does not read as"
            " new",
            hint="read the whole table once",
        )
    first, last = transactions[0], transactions[-1]
    holders = _holders(found, catalog, branch, [t.id for t in transactions])
    if gone := [t.id for t in transactions if t.id not in holders]:
        raise FullReadNeededError(f"{found.id}: snapshot {gone[0]} expired just now", hint="try again")
    if first.parent_id is None:
        # Everything since the beginning is the version itself.
        return _version(found, spark, holders[last.id], last.id)
    new: DataFrame | None = None
    for holder, part in groupby(transactions, lambda t: holders[t.id]):
        ids = [t.id for t in part]
        between = {"incremental-between": f"{_number(ids[0]) - 1},{_number(ids[-1])}"}
        rows = read_branch(found, spark, holder, _MODE | between)
        if new is not None and new.dtypes != rows.dtypes:
            raise FullReadNeededError(
                f"{found.id}: {branch} no longer has the columns of the branch that it was made from",
                hint=f"read the whole branch once, then go on from {last.id}",
            )
        new = rows if new is None else new.unionByName(rows)
    assert new is not None  # there are transactions
    if keys := json.loads(open_library(found, catalog, spark).history()["schema"])["primaryKeys"]:
        before = _holders(found, catalog, branch, [first.parent_id]).get(first.parent_id)
        _check_keys(
            found, new, None if before is None else _version(found, spark, before, first.parent_id), transactions, keys
        )
    return new


def _check_keys(
    found: TableHandle, new: DataFrame, before: DataFrame | None, transactions: Sequence[Transaction], keys: list[str]
) -> None:
    """With a primary key an append may change rows, and no metadata tells: only the keys do. Rows that the read merges
    or leaves out (deletion vectors, `first-row`) are missing in its count.
    """
    if before is None:
        reason = f"the version before {transactions[0].id} is gone, and only it tells"
    elif new.count() != sum(t.rows_added or 0 for t in transactions):
        reason = "keys came twice, or Paimon reads their rows only once they are compacted"
    elif not before.join(new, keys, "left_semi").isEmpty():
        reason = "keys came that were there before"
    else:
        return
    raise FullReadNeededError(
        f"{found.id}: it has a primary key, and new rows cannot be told from changed ones: {reason}",
        hint=f"read the whole table, then go on from {transactions[-1].id}",
    )


def _retained(found: TableHandle, catalog: Catalog, branch: str, line: Sequence[Transaction]) -> Sequence[Transaction]:
    """A tag keeps a version that can be read whole; what is new in it is read from snapshots only."""
    holders = _holders(found, catalog, branch, [t.id for t in line])
    lost = [number for number, t in enumerate(line, start=1) if t.id not in holders]
    return line[max(lost, default=0) :]


def _holders(found: TableHandle, catalog: Catalog, branch: str, ids: Sequence[str]) -> dict[str, str]:
    """The branch whose folder has each snapshot: the branch itself, or the one where it was made."""
    store = open_store(found.location, catalog.options)
    there: dict[str, set[int]] = {}
    for name in {branch, *(_owner(id_) for id_ in ids)}:
        place = found.location if name == MAIN else f"{found.location}/branch/branch-{name}"
        names = (_SNAPSHOT.fullmatch(entry.name) for entry in store.list(f"{place}/snapshot"))
        there[name] = {int(match[1]) for match in names if match}
    return {id_: name for id_ in ids for name in (_owner(id_), branch) if _number(id_) in there[name]}


def _owner(id_: str) -> str:
    return id_.rpartition("/")[0]


def _number(id_: str) -> int:
    return int(id_.rpartition("/")[2])


def _version(found: TableHandle, spark: SparkSession, holder: str, id_: str) -> DataFrame:
    return read_branch(found, spark, holder, {"scan.snapshot-id": str(_number(id_))})


def read_branch(
    found: TableHandle, spark: SparkSession, branch: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows of a branch at its head, or as the options say."""
    id_ = found.id
    name = quote(id_.catalog, *id_.namespace, id_.table if branch == MAIN else f"{id_.table}$branch_{branch}")
    spark.catalog.refreshTable(name)  # the session may remember the schema from before other processes changed it
    return spark.read.options(**(options or {})).table(name)


NEW_ROWS = NewRows(_rows, _retained)
