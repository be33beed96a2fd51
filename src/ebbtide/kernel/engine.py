"""The embedded engine, with every setting that matters in one place.

A connection is in memory, spills into a private folder, fetches nothing and loads nothing: what it computes depends on
what it is handed, never on the machine or on names of folders.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_MEMORY = "2GiB"
_PATTERN = "*?["


@dataclass(frozen=True, slots=True)
class Parquet:
    """Rows that lie in Parquet files, of which there is one or more."""

    files: tuple[str, ...]


@contextmanager
def connection(*, memory: str = _MEMORY, threads: int | None = None) -> Iterator[DuckDBPyConnection]:
    """A connection of its own, which is gone with everything that it holds when the block ends."""
    import duckdb

    # 0700, as `mkdtemp` makes it: what is spilled are people's names.
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as spill:
        made = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "memory_limit": memory,
                "preserve_insertion_order": False,
                "temp_directory": spill,
                "threads": threads or os.cpu_count() or 1,
            },
        )
        try:
            made.execute("SET TimeZone = 'UTC'")
            yield made
        finally:
            made.close()


@contextmanager
def beside(engine: DuckDBPyConnection) -> Iterator[DuckDBPyConnection]:
    """Another connection to the same engine, with tables of its own. To start an engine costs as much as many steps."""
    made = engine.cursor()
    try:
        made.execute("SET TimeZone = 'UTC'")
        yield made
    finally:
        made.close()


def table_of(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.Table:
    """Rows of plain values, in the order of the columns."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


def hand_in(engine: DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """A table of the engine's own, so that no step reads through Python."""
    engine.register("handed_in", rows)
    engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM handed_in")
    engine.unregister("handed_in")


def load(engine: DuckDBPyConnection, name: str, rows: pa.Table | Parquet, *, among: str) -> None:
    """A table with those rows that count: of the datasets in the table `among`, and in files, where rows of older scans
    lie beside them, only those of the scan that it names for each.
    """
    if isinstance(rows, Parquet):
        engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * EXCLUDE (scan_id) FROM {current(rows, among)}")
        return
    engine.register("handed_in", rows)
    engine.execute(
        f"CREATE TEMP TABLE {name} AS SELECT * FROM handed_in WHERE table_id IN (SELECT table_id FROM {among})"
    )
    engine.unregister("handed_in")


def current(rows: Parquet, among: str) -> str:
    """The SQL that reads those rows of the files whose scan is the one that the table `among` names for the dataset."""
    which = "t.table_id = s.table_id AND t.scan_id = s.scan_id"
    return f"(SELECT s.* FROM {scan(rows.files)} s SEMI JOIN {among} t ON {which})"


def scan(files: Sequence[str | Path]) -> str:
    """The SQL that reads these files, whatever their folders are called.

    A folder `table_id=zz` would give every row that name, and `[a]` would be a pattern.
    """
    names = ", ".join(literal("".join(f"[{c}]" if c in _PATTERN else c for c in str(file))) for file in files)
    return f"read_parquet([{names}], hive_partitioning = false, union_by_name = true)"


def save(engine: DuckDBPyConnection, name: str, file: Path) -> None:
    """Write a table of the engine into a new Parquet file."""
    engine.execute(f"COPY {name} TO {literal(str(file))} (FORMAT parquet, COMPRESSION lz4_raw)")


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
