"""The information schema for those who ask it: as Spark DataFrames for sets, as rows for one dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.errors import InputError
from ebbtide.inventory import current as currents
from ebbtide.inventory.compact import current_rows
from ebbtide.inventory.current import Current
from ebbtide.inventory.schema import SECTIONS
from ebbtide.inventory.segments import existing_file, read_section
from ebbtide.kernel.engine import Parquet
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SMALL = 50_000
"""Up to this many rows a query costs more to prepare than to run."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory as the last scan left it."""

    folder: Path
    current: Current

    @classmethod
    def open(cls, folder: Path, *, outdated: bool = False) -> Inventory:
        """The last scan's. One of an older layout is good for names alone, and opened only for who asks for that."""
        current = currents.load(folder)
        if current is None:
            raise InputError("there is no inventory yet", hint="run `ebbtide scan`")
        if current.outdated and not outdated:
            raise InputError(
                "the inventory was written by an older version of Ebbtide",
                hint="run `ebbtide scan`: it reads every table again, and keeps what is known of those that are gone",
            )
        return cls(folder, current)

    def table(self, section: str, *, table_id: str | None = None) -> pa.Table:
        """The rows of a section, of one dataset or of all, without Spark."""
        segments = self.current.segments
        if table_id is not None:
            entry = self.current.entries.get(table_id)
            segments = {entry.segment} if entry and entry.segment else set()
        found = [
            current_rows(rows, self.current) for rows in read_section(self.folder, section, segments, table_id=table_id)
        ]
        return pa.concat_tables([SECTIONS[section].empty_table(), *found]).drop_columns(["scan_id"])

    def rows(self, section: str, *, table_id: str | None = None) -> list[dict[str, Any]]:
        """The same as plain values."""
        rows: list[dict[str, Any]] = self.table(section, table_id=table_id).to_pylist(maps_as_pydicts="lossy")
        return rows

    @property
    def former_names(self) -> frozenset[str]:
        """Names that stood for a dataset once, and stand for none."""
        return frozenset(each.table_id for each in self.current.former) - self.current.entries.keys()

    def found(self, table_id: str) -> TableHandle | None:
        """What opens a dataset as the scan saw it; None where no catalog lists it."""
        if (entry := self.current.entries.get(table_id)) is None:
            return None
        return TableHandle(DatasetId.parse(table_id), entry.location, entry.token, entry.handle, entry.identity)

    def errors(self) -> Iterator[dict[str, Any]]:
        """The rows of `scan_errors`: catalogs that did not answer, then datasets that could not be read."""
        for failed in self.current.catalog_errors:
            yield {"catalog": failed.catalog, "table_id": None, "error": failed.error, "hint": failed.hint}
        for entry in sorted(self.current.entries.values(), key=lambda e: e.table_id):
            if entry.error is not None:
                yield {
                    "catalog": entry.catalog,
                    "table_id": entry.table_id,
                    "error": entry.error,
                    "hint": entry.hint,
                }

    def section(self, name: str) -> pa.Table | Parquet:
        """A section for the kernel: its files, stale rows among them. The scan of each entry says which rows count."""
        paths = (existing_file(self.folder, name, segment) for segment in sorted(self.current.segments))
        files = tuple(str(path) for path in paths if path is not None)
        return Parquet(files) if files else SECTIONS[name].empty_table()

    def frame(self, spark: SparkSession, section: str) -> DataFrame:
        """A section as a DataFrame that reads its Parquet files when it is asked."""
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_schema

        from ebbtide.spark.frames import own_parquet, small_frame

        schema = from_arrow_schema(SECTIONS[section])
        paths = [existing_file(self.folder, section, segment) for segment in sorted(self.current.segments)]
        present = [path for path in paths if path is not None]
        if not present:
            return small_frame(spark, [], schema).drop("scan_id")
        rows = own_parquet(spark, *present, schema=schema)
        frame = rows.join(F.broadcast(self._scans(spark)), ["table_id", "scan_id"], "left_semi").drop("scan_id")
        if section == "tables":
            frame = frame.join(F.broadcast(self._locks(spark)), "table_id")
        return frame

    @property
    def is_small(self) -> bool:
        """Whether its rows are so few that a query costs more to prepare than to run; asked of Parquet's footers."""
        rows = 0
        for segment in self.current.segments:
            for section in ("files", "transactions", "partitions"):
                path = existing_file(self.folder, section, segment)
                rows += 0 if path is None else _values(pq.read_metadata(path))
            if rows > _SMALL:
                return False
        # A plan looks at every reference of a dataset with each of its versions.
        refs = Counter(self.table("branches").column("table_id").to_pylist())
        versions = Counter(self.table("transactions").column("table_id").to_pylist())
        return sum(count * refs[table_id] for table_id, count in versions.items()) <= 10 * _SMALL

    def errors_frame(self, spark: SparkSession) -> DataFrame:
        from ebbtide.spark.frames import small_frame

        rows = [tuple(row.values()) for row in self.errors()]
        return small_frame(spark, rows, "catalog string, table_id string, error string, hint string")

    def register(self, spark: SparkSession) -> None:
        """Make every section a temporary view, for SQL."""
        for section in SECTIONS:
            self.frame(spark, section).createOrReplaceTempView(section)
        self.errors_frame(spark).createOrReplaceTempView("scan_errors")

    def _scans(self, spark: SparkSession) -> DataFrame:
        from ebbtide.spark.frames import small_frame

        rows = [(e.table_id, e.scan_id) for e in self.current.entries.values() if e.segment]
        return small_frame(spark, rows, "table_id string, scan_id string")

    def _locks(self, spark: SparkSession) -> DataFrame:
        from ebbtide.spark.frames import small_frame

        rows = [(e.table_id, list(e.locked_by), e.error) for e in self.current.entries.values()]
        return small_frame(spark, rows, "table_id string, locked_by array<string>, scan_error string")


def _values(file: pq.FileMetaData) -> int:
    """How many rows, or elements of the list that has the most: a file may be in very many runs of versions."""
    groups = [file.row_group(n) for n in range(file.num_row_groups)]
    return sum(max(group.column(n).num_values for n in range(group.num_columns)) for group in groups)
