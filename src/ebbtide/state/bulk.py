"""Inserting many rows at the driver's speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows that have every column, in the table's order and as the driver takes them.

    SQLAlchemy's own way costs more than the database does when a row is a number and a hash.
    """
    if not rows:
        return
    columns = [column.name for column in table.columns]
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"  # noqa: S608
    connection.exec_driver_sql(statement, list(rows))
