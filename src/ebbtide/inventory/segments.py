"""Segments: the Parquet files in which one worker of one scan left the sections of the datasets that it read.

A segment is written once and never changed. Rows of datasets that were read again later stay in it until `compact`;
`current.py` knows which rows count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ebbtide.errors import UnreadableError
from ebbtide.inventory.schema import SECTIONS
from ebbtide.private import private_file, private_folder

if TYPE_CHECKING:
    from ebbtide.inventory.rows import Row

_FLUSH_ROWS = 50_000
_ALWAYS = "tables"


def section_file(inventory: Path, section: str, segment: str) -> Path:
    return inventory / section / f"{segment}.parquet"


def existing_file(inventory: Path, section: str, segment: str) -> Path | None:
    """The file of a section, or None where the segment has no row of it.

    A segment that is gone is an error, not an empty one: references would be missing, and what they protect would go.
    Two scans since the state was loaded are enough for that. Every segment has rows of `tables`.
    """
    path = section_file(inventory, section, segment)
    if path.exists():
        return path
    if not section_file(inventory, _ALWAYS, segment).exists():
        raise UnreadableError(
            "the inventory",
            f"its segment {segment} is gone",
            hint="another scan replaced it: run this again; if that does not help, `ebbtide scan --full`",
        )
    return None


class SegmentWriter:
    """Writes one segment, a row group at a time. Sections without a row get no file."""

    def __init__(self, inventory: Path, segment: str) -> None:
        self._inventory, self.segment = inventory, segment
        self._rows: dict[str, list[Row]] = {section: [] for section in SECTIONS}
        self._open: dict[str, pq.ParquetWriter] = {}

    def add(self, sections: Iterable[tuple[str, list[Row]]]) -> None:
        for section, rows in sections:
            self._rows[section] += rows
            if len(self._rows[section]) >= _FLUSH_ROWS:
                self._flush(section)

    def _flush(self, section: str) -> None:
        rows, self._rows[section] = self._rows[section], []
        if rows:
            schema = SECTIONS[section]
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            self.write(section, pa.Table.from_arrays(columns, schema=schema))

    def write(self, section: str, table: pa.Table) -> None:
        if section not in self._open:
            path = section_file(self._inventory, section, self.segment)
            private_folder(private_folder(self._inventory) / section, like=self._inventory)
            file = private_file(path, like=self._inventory)
            self._open[section] = pq.ParquetWriter(file, SECTIONS[section], compression="zstd")
        self._open[section].write_table(table)

    def close(self) -> None:
        for section in SECTIONS:
            self._flush(section)
        for writer in self._open.values():
            writer.close()


def read_section(
    inventory: Path, section: str, segments: Iterable[str], *, table_id: str | None = None
) -> Iterator[pa.Table]:
    """The rows of a section, segment by segment, stale ones included; only those of one dataset where it is named."""
    schema = SECTIONS[section]
    for segment in sorted(set(segments)):
        if (path := existing_file(inventory, section, segment)) is None:
            continue
        if table_id is not None:
            where = pc.field("table_id") == table_id
            yield pq.read_table(path, filters=where, schema=schema, partitioning=None)
        else:  # all of it: without pyarrow's datasets, which take longer to load than a small section to read
            rows = pa.concat_tables([schema.empty_table(), pq.ParquetFile(path).read()], promote_options="default")
            yield rows.select(schema.names)


def remove_unused(inventory: Path, used: set[str]) -> None:
    """Remove the segments that nothing names any more (and what a scan left that was killed).

    `tables` first: whoever misses another section of a segment then sees that all of it is going (`existing_file`).
    A section's folder that is a link is not ours, and nothing is removed behind it.
    """
    from ebbtide.storage.remove import remove_files  # for scans only: whoever reads removes nothing

    root = inventory.resolve()
    for section in sorted(SECTIONS, key=lambda name: name != _ALWAYS):
        unused = [path.name for path in (inventory / section).glob("*.parquet") if path.stem not in used]
        failed = remove_files([f"file://{root}/{section}/{name}" for name in unused], {}, lambda: None)
        for path, why in failed.items():
            raise UnreadableError(path, f"an old segment cannot be removed: {why}")
