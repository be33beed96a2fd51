"""Deleting rows by SQL: which rows a `RowDelete` means, and the statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from ebbtide.model.removal import RowDelete
from ebbtide.model.times import parse_time
from ebbtide.spark.session import quote


def delete_rows(spark: SparkSession, name: str, rows: RowDelete) -> str | None:
    """Delete the rows from the table of this (quoted) name; gives the reason where they cannot be told."""
    matching = rows_of(rows, spark.table(name))
    if isinstance(matching, str):
        return matching
    # A delete of nothing may still commit, and a run that is repeated changes nothing.
    if matching.frame.limit(1).count():
        spark.sql(f"DELETE FROM {name} WHERE {matching.predicate}")  # noqa: S608 quoted, typed, or a policy's own words
    return None


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows that a delete means, and the predicate that tells them."""

    frame: DataFrame
    predicate: str


def rows_of(rows: RowDelete, table: DataFrame) -> Matching | str:
    """What is to be deleted from the table; or, as text, why that cannot be told."""
    predicate = predicate_of(rows, table.schema)
    if predicate is None:
        return f"the table has no date or timestamp column {rows.column}"
    try:
        return Matching(table.where(predicate), predicate)
    except AnalysisException as error:
        return f"the predicate does not fit the table ({error.getErrorClass()})"


def predicate_of(rows: RowDelete, schema: StructType) -> str | None:
    """The predicate; None where the table has no such column of a type that a cutoff can be compared with.

    A cutoff is a typed literal, so that neither the session's zone nor a comparison of texts has a say, and the column
    is asked to be not NULL in so many words: Iceberg drops the NULL partition with `d < x` once a table has files of
    two partition specs. For the same reason a person's own predicate is given twice, the second time in a form that no
    format can turn into a drop of whole files: every row is looked at.
    """
    if rows.where is not None:
        return f"({rows.where}) AND COALESCE(({rows.where}), FALSE)"
    if rows.column is None or rows.cutoff is None:
        return None
    found = _field(schema, rows.column)
    literal = _literal(rows.cutoff, found[1]) if found else None
    if found is None or literal is None:
        return None
    return f"{found[0]} IS NOT NULL AND {found[0]} < {literal}"


def _field(schema: StructType, name: str) -> tuple[str, DataType] | None:
    """A column as SQL names it, and its type; `parent.child` is a field of a struct unless a column is called so."""
    if name in schema.fieldNames():
        return quote(name), schema[name].dataType
    top, _, rest = name.partition(".")
    if not rest or top not in schema.fieldNames() or not isinstance(inner := schema[top].dataType, StructType):
        return None
    found = _field(inner, rest)
    return (f"{quote(top)}.{found[0]}", found[1]) if found else None


def _literal(cutoff: str, type_: DataType) -> str | None:
    if isinstance(type_, DateType):
        return f"DATE '{date.fromisoformat(cutoff).isoformat()}'"
    if not isinstance(type_, TimestampType | TimestampNTZType):
        return None
    text = parse_time(cutoff).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    return f"TIMESTAMP '{text}Z'" if isinstance(type_, TimestampType) else f"TIMESTAMP_NTZ '{text}'"
