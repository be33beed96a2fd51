"""`classify --suggest`: columns that look like identifiers of people, by a sample of their values (issue 6).

Values are tested where Spark reads them; only counts leave the executors. A few tables share a job, and each gives at
most `ROWS` rows to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.config.classifiers import PII, Classifiers
from ebbtide.governance.patterns import load_tests
from ebbtide.governance.reading import UnreadPlace, column_name, fault_of, rows_of, together

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.model.dataset import Catalog

ROWS = 1_000
"""Most rows that are looked at per table."""

LEAST_SHARE = 0.2
"""A column is proposed from here on: by chance about a tenth of all numbers has a right checksum."""

_TABLES_PER_JOB = 50
_COUNTS = "table_id string, column string, kind string, values long"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class LabelSuggestion:
    """A label for a column: `share` of the `sampled` values (those that are not NULL) look like a `kind`."""

    table_id: str
    column: str
    label: str
    kind: str
    share: float
    sampled: int


def suggest(
    spark: SparkSession,
    catalogs: Mapping[str, Catalog],
    columns: Mapping[str, Sequence[str]],
    classifiers: Classifiers,
) -> tuple[list[LabelSuggestion], list[UnreadPlace]]:
    """Propose labels for the given columns of each table, the likeliest kind of each column."""
    kinds = tuple(load_tests())
    counts: dict[tuple[str, str], dict[str, int]] = {}
    unread: list[UnreadPlace] = []
    for some in _batches(sorted(columns)):
        parts, faults = _samples(spark, catalogs, {table_id: columns[table_id] for table_id in some})
        rows, broken = together(parts, lambda frame: _counted(frame).collect())
        unread += [*faults, *broken]
        for row in rows or []:
            counts.setdefault((row["table_id"], row["column"]), {})[row["kind"]] = row["values"]
    found = []
    for (table_id, column), seen in sorted(counts.items()):
        sampled = seen[_ANY]
        # Of two kinds with the same share the one that stands first is the narrower one.
        kind = max(kinds, key=lambda name: (seen.get(name, 0), -kinds.index(name)))
        if seen.get(kind, 0) >= LEAST_SHARE * sampled:
            share = round(seen[kind] / sampled, 4)
            found.append(LabelSuggestion(table_id, column, label_for(kind, classifiers), kind, share, sampled))
    return found, unread


def label_for(kind: str, classifiers: Classifiers) -> str:
    """The PII label of the kind's name where the project has one, else `tag`, else its first PII label."""
    known = classifiers.by_name[PII].labels if PII in classifiers.by_name else ("tag",)
    return f"{PII}.{next((name for name in (kind, 'tag') if name in known), known[0])}"


def _batches(tables: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(tables[n : n + _TABLES_PER_JOB]) for n in range(0, len(tables), _TABLES_PER_JOB))


def _samples(
    spark: SparkSession, catalogs: Mapping[str, Catalog], columns: Mapping[str, Sequence[str]]
) -> tuple[dict[str, DataFrame], list[UnreadPlace]]:
    """A row per sampled value and column of each table that can be opened."""
    parts, unread = {}, []
    for table_id, names in columns.items():
        try:
            frame = _values(rows_of(spark, catalogs, table_id), table_id, names)
        except Exception as error:
            unread.append(UnreadPlace(table_id, fault_of(error)))
            continue
        if frame is not None:
            parts[table_id] = frame
    return parts, unread


def _values(rows: DataFrame, table_id: str, names: Sequence[str]) -> DataFrame | None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType, IntegralType, StringType

    texts = []
    for name in names:
        column = F.col(column_name(rows, name))
        type_ = rows.select(column).schema.fields[0].dataType
        is_number = isinstance(type_, IntegralType) or (isinstance(type_, DecimalType) and type_.scale == 0)
        if isinstance(type_, StringType) or is_number:
            texts.append(F.struct(F.lit(name).alias("column"), column.cast("string").alias("value")))
    if not texts:
        return None
    # One partition, so that reading stops with the last row that is wanted, and no value goes through a shuffle.
    few = rows.coalesce(1).limit(ROWS)
    each = few.select(F.lit(table_id).alias("table_id"), F.explode(F.array(*texts)).alias("one"))
    return each.select("table_id", "one.column", "one.value").where("value IS NOT NULL")


def _counted(values: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    counted = values.mapInArrow(_count, _COUNTS)
    return counted.groupBy("table_id", "column", "kind").agg(F.sum("values").alias("values"))


def _count(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """In the executor: how many values of each column are of which kind."""
    import pyarrow as pa

    tests = load_tests()
    counts: dict[tuple[str, str, str], int] = {}
    for batch in batches:
        for table_id, column, value in zip(*(part.to_pylist() for part in batch.columns), strict=True):
            text = value.strip()
            for kind in (_ANY, *(kind for kind, test in tests.items() if test(text))):
                counts[table_id, column, kind] = counts.get((table_id, column, kind), 0) + 1
    rows: list[dict[str, Any]] = [
        {"table_id": table_id, "column": column, "kind": kind, "values": count}
        for (table_id, column, kind), count in counts.items()
    ]
    schema = pa.schema(
        [("table_id", pa.string()), ("column", pa.string()), ("kind", pa.string()), ("values", pa.int64())]
    )
    yield pa.RecordBatch.from_pylist(rows, schema)
