"""Files that nothing references (spec §2, `orphans`; formats.md, "Never an orphan").

1. The storage was listed first (`listing.py`), then references were read (`scan.py`).
2. Folders that look like tables or checkpoints are found in the listing, and every file gets its innermost owner.
3. What the owner's format never writes, and what is never an orphan, is left out.
4. One anti-join against the references of all datasets of all formats. A path counts as referenced also when it only
   differs in percent-encoding (hazard 5): that keeps more, never less.

Ages are the plan's to judge: it knows the policy's guard, and the listing's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ebbtide.inventory.areas import SHAPES, Area, Condemned, Kind, areas
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import Listing
from ebbtide.inventory.markers import are_views, without_taken, without_views
from ebbtide.kernel.engine import connection, hand_in, literal, load, scan, table_of
from ebbtide.kernel.steps import run_steps
from ebbtide.model.dataset import Catalog

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
class Orphans:
    """`files` has `table_id, folder, path, bytes, modified_at`: candidates, whatever their age. `former` are the owners
    that are no datasets any more, with their formats.
    """

    files: pa.Table
    former: Mapping[str, str]
    folders: Sequence[Mapping[str, Any]]
    """What looks like a table, as it lies there, with a metadata file where it has one."""
    owners: Mapping[str, Area]
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
) -> Orphans:
    """What lies in the storage and no dataset of the inventory references, which was read after the listing.

    `exclusive` are normalised prefixes.
    """
    with connection() as engine:
        failed = ", ".join(literal(root) for root in sorted(listing.failed)) or "NULL"
        engine.execute(
            r"CREATE TEMP TABLE listed AS SELECT *, regexp_extract(path, '(?s)^(.*)/[^/]*$', 1) AS folder "
            f"FROM {scan([listing.file])} WHERE NOT coalesce(root IN ({failed}), false)"
        )
        load_referenced(engine, inventory, listing.listed_at)
        current = without_taken(engine, inventory.current, catalogs)
        owners = areas(current, catalogs, exclusive, condemned, _shaped(engine))
        rows = [(a.location, str(a.kind), a.format, a.table_id, a.metadata, a.before) for a in owners.values()]
        hand_in(engine, "areas", table_of(rows, _AREA))
        run_steps(engine, "ebbtide.inventory", "sql/orphans")
        files = engine.sql("SELECT * FROM orphans").to_arrow_table().cast(_FILES)
        folders = engine.sql("SELECT * FROM unregistered").to_arrow_table().to_pylist()
    gone = {
        area.table_id: area.format
        for area in owners.values()
        if area.kind in (Kind.FORMER, Kind.CONDEMNED) and area.table_id and area.table_id not in current.entries
    }
    return Orphans(without_views(files, catalogs), gone, folders, owners, catalogs)


def load_referenced(engine: DuckDBPyConnection, inventory: Inventory, moment: datetime) -> None:
    """`referenced`: the files that datasets reference, or that their formats keep at that moment."""
    counted = [(e.table_id, e.scan_id) for e in inventory.current.entries.values() if e.segment]
    hand_in(engine, "scans", table_of(counted, pa.schema({"table_id": pa.string(), "scan_id": pa.string()})))
    load(engine, "in_files", inventory.section("files"), among="scans")
    engine.execute(
        "CREATE TEMP VIEW referenced AS SELECT * FROM in_files "
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
