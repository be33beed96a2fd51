"""Which rows leave: the condition of a `DELETE`, as all formats that take one by SQL write it."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from ebbtide.errors import InputError
from ebbtide.model.removal import RowDelete
from ebbtide.spark.session import quote


def row_condition(rows: RowDelete, schema: StructType) -> str:
    """A condition that NULL never meets. A column that holds neither dates nor instants has no age: `InputError`."""
    if rows.column is None or rows.cutoff is None:
        if not rows.where:
            raise InputError("a row delete names neither a column with a cutoff nor a predicate")
        return f"({rows.where})"
    if rows.column not in schema.names:
        raise InputError(f"there is no column {rows.column}")
    column = quote(rows.column)
    return f"{column} IS NOT NULL AND {column} < {_literal(rows.cutoff, schema[rows.column].dataType)}"


def _literal(cutoff: str, type_: DataType) -> str:
    moment = datetime.fromisoformat(cutoff)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(type_, DateType):
        return f"DATE '{moment.date().isoformat()}'"
    if isinstance(type_, TimestampType):
        return f"TIMESTAMP '{moment.isoformat()}'"
    if isinstance(type_, TimestampNTZType):
        return f"TIMESTAMP_NTZ '{moment.replace(tzinfo=None).isoformat()}'"
    raise InputError(f"a {type_.simpleString()} is no date")
