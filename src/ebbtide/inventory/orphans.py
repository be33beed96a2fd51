"""Files that nothing references (spec §2, `orphans`; formats.md, "Never an orphan").

1. The storage was listed first (`listing.py`), then references were read (`scan.py`).
2. Folders that look like tables or checkpoints are found in the listing, and every file gets its innermost owner.
3. What the owner's format never writes, and what is never an orphan, is left out.
4. One anti-join against the references of all datasets of all formats. A path counts as referenced also when it only
   differs in percent-encoding (hazard 5): that keeps more, never less. Very many files are joined in Spark tasks, by
   the same step: equal paths have equal hashes, so each task takes those of some hashes.

Ages are the plan's to judge: it knows the policy's guard, and the listing's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import Listing
from ebbtide.inventory.markers import are_views, without_taken, without_views
from ebbtide.inventory.ownership import SHAPES, Condemned, OwnedPrefix, PrefixKind, areas
from ebbtide.kernel.engine import Parquet, connection, hand_in, literal, load, save, scan, table_of
from ebbtide.kernel.engine import current as current_rows
from ebbtide.kernel.steps import run_steps
from ebbtide.kernel.tasks import Tasks, run_parts
from ebbtide.kernel.work_folder import WorkFolder
from ebbtide.model.dataset import Catalog

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS_OF_PART = 500_000
_TIME = pa.timestamp("us", tz="UTC")
_AREA = pa.schema(
    {
        "location": pa.string(), "kind": pa.string(), "format": pa.string(), "table_id": pa.string(),
        "metadata": pa.int64(), "before": _TIME,
    }
)  # fmt: skip
_FILES = pa.schema(
    {"table_id": pa.string(), "folder": pa.string(), "path": pa.string(), "bytes": pa.int64(), "modified_at": _TIME}
)


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A folder that looks like a table and that no catalog lists. `table_id` was there once, where that is known."""

    path: str
    format: str
    table_id: str | None
    files: int
    bytes: int
    newest: datetime


@dataclass(frozen=True)
class OrphanFiles:
    """`files` has `table_id, folder, path, bytes, modified_at`: candidates, whatever their age. `former` are the owners
    that are no datasets any more, with their formats.
    """

    files: pa.Table
    former: Mapping[str, str]
    folders: Sequence[Mapping[str, Any]]
    """What looks like a table, as it lies there, with a metadata file where it has one."""
    owners: Mapping[str, OwnedPrefix]
    catalogs: Mapping[str, Catalog]

    @cached_property
    def unregistered(self) -> tuple[Unregistered, ...]:
        """What looks like a table and is none that a catalog lists. For people: no plan asks."""
        named = [row["metadata"] for row in self.folders if row["metadata"] is not None]
        # What cannot be read is reported as what it looks like.
        views = {path for path, is_view in zip(named, are_views(named, self.catalogs), strict=True) if is_view}
        return tuple(
            Unregistered(
                row["location"], self.owners[row["location"]].format, self.owners[row["location"]].table_id,
                row["files"], row["bytes"], row["newest"].astimezone(UTC),
            )
            for row in sorted(self.folders, key=lambda row: str(row["location"]))
            if row["metadata"] not in views
        )  # fmt: skip


def find_orphans(
    listing: Listing,
    inventory: Inventory,
    catalogs: Mapping[str, Catalog],
    exclusive: Sequence[str],
    condemned: Sequence[Condemned] = (),
    tasks: Tasks | None = None,
) -> OrphanFiles:
    """What lies in the storage and no dataset of the inventory references, which was read after the listing.

    `exclusive` are normalised prefixes.
    """
    references = inventory.section("files")
    rows = _rows_in([listing.file, *references.files]) if isinstance(references, Parquet) else 0
    aside = tasks is not None and rows > tasks.rows
    with connection() as engine:
        failed = ", ".join(literal(root) for root in sorted(listing.failed)) or "NULL"
        engine.execute(
            r"CREATE TEMP TABLE listed AS SELECT *, regexp_extract(path, '(?s)^(.*)/[^/]*$', 1) AS folder "
            f"FROM {scan([listing.file])} WHERE NOT coalesce(root IN ({failed}), false)"
        )
        load_referenced(engine, inventory, listing.listed_at, only_seen=aside)
        current = without_taken(engine, inventory.current, catalogs)
        owners = areas(current, catalogs, exclusive, condemned, _shaped(engine))
        found = [(a.location, str(a.kind), a.format, a.table_id, a.metadata, a.before) for a in owners.values()]
        hand_in(engine, "areas", table_of(found, _AREA))
        run_steps(engine, "ebbtide.inventory", "sql/candidates")
        if tasks is not None and aside and isinstance(references, Parquet):
            parts = max(2, -(-rows // _ROWS_OF_PART))
            files = _in_tasks(engine, _References(references, _scans(inventory), listing.listed_at, parts), tasks)
        else:
            files = _unreferenced(engine)
        folders = engine.sql("SELECT * FROM unregistered").to_arrow_table().to_pylist()
    gone = {
        area.table_id: area.format
        for area in owners.values()
        if area.kind in (PrefixKind.FORMER, PrefixKind.CONDEMNED)
        and area.table_id
        and area.table_id not in current.entries
    }
    return OrphanFiles(without_views(files, catalogs), gone, folders, owners, catalogs)


def _rows_in(files: Sequence[Path | str]) -> int:
    return sum(int(pq.read_metadata(file).num_rows) for file in files)


def _unreferenced(engine: DuckDBPyConnection) -> pa.Table:
    """Those of `candidates` that are not `referenced`."""
    run_steps(engine, "ebbtide.inventory", "sql/paths", "sql/orphans")
    return engine.sql("SELECT * FROM orphans").to_arrow_table().cast(_FILES)


@dataclass(frozen=True, slots=True)
class _References:
    """The references for a task: files that it can reach, which of their rows count, and when."""

    files: Parquet
    scans: pa.Table
    moment: datetime
    parts: int


def _in_tasks(engine: DuckDBPyConnection, seen: _References, tasks: Tasks) -> pa.Table:
    with WorkFolder(tasks.folder, "orphans-") as folder:
        candidates = Path(folder, "candidates.parquet")
        save(engine, "candidates", candidates)
        found = run_parts(partial(_part, seen, candidates, tasks.memory), range(seen.parts), tasks.session())
    return pa.concat_tables([_FILES.empty_table(), *found])


def _part(seen: _References, candidates: Path, memory: str, number: int) -> pa.Table:
    """The orphans among the paths of some hashes."""
    mine = f"hash(loosely(path)) % {seen.parts} = {number}"
    with connection(threads=1, memory=memory) as engine:
        run_steps(engine, "ebbtide.inventory", "sql/paths")
        engine.execute(f"CREATE TEMP TABLE candidates AS SELECT * FROM {scan([candidates])} WHERE {mine}")
        hand_in(engine, "scans", seen.scans)
        files = f"(SELECT path, kept_until FROM {current_rows(seen.files, 'scans')} WHERE {mine})"
        _see_referenced(engine, files, seen.moment)
        run_steps(engine, "ebbtide.inventory", "sql/orphans")
        return engine.sql("SELECT * FROM orphans").to_arrow_table().cast(_FILES)


def load_referenced(
    engine: DuckDBPyConnection, inventory: Inventory, moment: datetime, *, only_seen: bool = False
) -> None:
    """`referenced`: the files that datasets reference, or that their formats keep at that moment. As a table, or where
    there are too many of them for that, `only_seen` in the inventory's files.
    """
    hand_in(engine, "scans", _scans(inventory))
    files = inventory.section("files")
    if only_seen and isinstance(files, Parquet):
        engine.execute(f"CREATE TEMP VIEW in_files AS SELECT * FROM {current_rows(files, 'scans')}")
    else:
        load(engine, "in_files", files, among="scans")
    _see_referenced(engine, "in_files", moment)


def _scans(inventory: Inventory) -> pa.Table:
    """Which scan counts of each dataset."""
    counted = [(e.table_id, e.scan_id) for e in inventory.current.entries.values() if e.segment]
    return table_of(counted, pa.schema({"table_id": pa.string(), "scan_id": pa.string()}))


def _see_referenced(engine: DuckDBPyConnection, files: str, moment: datetime) -> None:
    engine.execute(
        f"CREATE TEMP VIEW referenced AS SELECT * FROM {files} "
        f"WHERE coalesce(kept_until >= {literal(moment.isoformat())}::TIMESTAMPTZ, true)"
    )


def _shaped(engine: DuckDBPyConnection) -> dict[str, str]:
    """The folders that look like a table or a checkpoint; where one looks like two, a table's format wins."""
    found: dict[str, str] = {}
    for shape, pattern in reversed(SHAPES.items()):
        place = f"regexp_extract(path, {literal(f'(?s){pattern}')}, 1)"
        rows = engine.execute(f"SELECT DISTINCT {place} FROM listed WHERE {place} <> ''").fetchall()
        found |= {location: shape for (location,) in rows}
    return found
