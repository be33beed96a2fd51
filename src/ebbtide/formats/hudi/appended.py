"""What transactions of a Hudi table brought, by Hudi's own incremental query.

A row keeps the instant that brought it through compaction and clustering, so what the cleaner took or the timeline
archived is no gap: the newest files have the rows, and the archive the instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebbtide.errors import FullReadNeededError
from ebbtide.formats.base import NewRows
from ebbtide.formats.hudi.timeline import Timeline, read_timeline
from ebbtide.formats.warehouse import place_of
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import Transaction, TransactionKind
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INSTANT = "_hoodie_commit_time"
_INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
_BEGIN, _END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


def _rows(
    found: TableHandle,
    catalog: Catalog,
    spark: SparkSession,
    reading: Reading,
    branch: str,  # noqa: ARG001 there is only main
    transactions: Sequence[Transaction],
) -> DataFrame:
    place = place_of(found.id, catalog)
    whole = spark.read.format("hudi").load(place)
    # Hudi's readers do not agree on where partition columns stand: they stand here as in the whole table.
    columns = [quote(name) for name in whole.columns if not name.startswith("_hoodie_")]
    if not transactions:
        return whole.select(*columns).limit(0)
    timeline = read_timeline(found, spark)
    if timeline.properties.get("hoodie.populate.meta.fields", "true").lower() != "true":
        raise FullReadNeededError(
            f"{found.id}: its rows do not say which commit brought them (hoodie.populate.meta.fields=false)",
            hint="read the whole table",
        )
    if transactions[0].parent_id is None:
        # Everything since the beginning is the table itself, without what came after its history was read.
        known = {t.id for t in reading.transactions}
        later = [commit.id for commit in timeline.commits if commit.id not in known]
        return whole.where(~whole[_INSTANT].isin(later)).select(*columns)
    begin, end = (_time_of(timeline, id_) for id_ in (transactions[0].parent_id, transactions[-1].id))
    new = spark.read.format("hudi").options(**_INCREMENTAL, **{_BEGIN: begin, _END: end}).load(place)
    since = transactions[0].committed_at
    rewrites = [t.id for t in reading.transactions if t.kind is TransactionKind.REWRITE and t.committed_at > since]
    # Before Hudi 1 a clustering could be told to take the rows for its own.
    if rewrites and not whole.where(whole[_INSTANT].isin(rewrites)).isEmpty():
        raise FullReadNeededError(
            f"{found.id}: a compaction did not keep which commit brought the rows that it rewrote",
            hint="read the whole table once",
        )
    return new.where(new[_INSTANT].isin([t.id for t in transactions])).select(*columns)


def _time_of(timeline: Timeline, id_: str) -> str:
    """What Hudi's query goes by: since Hudi 1 the time of completion, before that the instant itself. The begin is
    not part of it, the end is.
    """
    commit = next(commit for commit in timeline.commits if commit.id == id_)
    return commit.completed if timeline.logs_named_by_commit else commit.id


NEW_ROWS = NewRows(_rows)
