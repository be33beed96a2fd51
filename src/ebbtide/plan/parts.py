"""A lake in parts that are planned by themselves: all sections of some datasets each, none of them too large.

What needs the whole lake is asked before: files that several datasets share, and which of the orphans are referenced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ebbtide.kernel.engine import Parquet, beside, current, hand_in, scan
from ebbtide.plan.world import ORPHANS, Orders, Section, World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LARGE = ("transactions", "files", "partitions")
ROWS_OF_PART = 500_000
"""What one part takes of memory is some hundred MiB then, whatever the lake is."""
_SHARED = pa.schema({"path": pa.string(), "datasets": pa.list_(pa.string())})


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Some datasets with everything that decides on them. `shared` are paths that more than one dataset references."""

    number: int
    world: World
    orders: Orders
    shared: pa.Table


def rows_in(world: World) -> int:
    """How many rows the large sections have, by their files' footers."""
    return sum(_count(getattr(world, name)) for name in _LARGE)


def _count(rows: Section) -> int:
    if isinstance(rows, pa.Table):
        return int(rows.num_rows)
    return sum(int(pq.read_metadata(file).num_rows) for file in rows.files)


def whole(engine: DuckDBPyConnection, world: World, orders: Orders) -> PlanPart:
    """The lake as one part."""
    with beside(engine) as mine:
        _see_files(mine, world)
        return PlanPart(0, replace(world, orphans=_unreferenced(mine, world)), orders, _shared(mine))


def one_dataset(engine: DuckDBPyConnection, world: World, orders: Orders, table_id: str) -> PlanPart:
    """One dataset, with the references of all others."""
    every = whole(engine, world, orders)
    return replace(every, world=every.world.only([table_id]), orders=every.orders.only([table_id]))


def split(engine: DuckDBPyConnection, world: World, orders: Orders, *, rows: int = ROWS_OF_PART) -> Iterator[PlanPart]:
    """Parts of about so many rows. A large dataset is one by itself; what names no dataset is in the last one."""
    with beside(engine) as mine:
        _see_files(mine, world)
        shared, orphans, sizes = _shared(mine), _unreferenced(mine, world), _sizes(mine, world)
    world = replace(world, orphans=orphans)
    groups: list[list[str]] = [[]]
    size = 0
    for table_id in sorted(world.tables["table_id"].to_pylist()):
        if groups[-1] and size + sizes.get(table_id, 0) > rows:
            groups.append([])
            size = 0
        groups[-1].append(table_id)
        size += sizes.get(table_id, 0)
    known = {table_id for group in groups for table_id in group}
    named = [t["table_id"] for t in (orders.marks, world.chunks)]
    named += [t["table_id"] for t in (orphans, world.former) if t is not None]
    groups.append(sorted({name for column in named for name in column.to_pylist()} - known))
    for number, group in enumerate(groups):
        ids = pa.array(group, pa.string())
        mine = pc.list_parent_indices(shared["datasets"].combine_chunks())
        has = pc.is_in(pc.list_flatten(shared["datasets"].combine_chunks()), ids)
        theirs = shared.take(pc.unique(mine.filter(has))) if shared.num_rows else shared
        yield PlanPart(number, world.only(group), orders.only(group), theirs)


def _shared(engine: DuckDBPyConnection) -> pa.Table:
    """Paths that more than one dataset references, with those datasets (hazard 18).

    Equal paths have equal hashes, so a pass over hashes leaves few suspects, and only their paths are compared.
    """
    found: pa.Table = engine.sql(
        """
        SELECT path, list(DISTINCT table_id ORDER BY table_id) AS datasets FROM every_file
        WHERE hash(path) IN (SELECT hash(path) FROM every_file
                             GROUP BY hash(path) HAVING min(table_id) <> max(table_id))
        GROUP BY path HAVING min(table_id) <> max(table_id)
        """
    ).to_arrow_table()
    return found.cast(_SHARED)


def _unreferenced(engine: DuckDBPyConnection, world: World) -> pa.Table | None:
    """The orphans without those that a dataset references, or that its format keeps at the time of the listing."""
    if world.orphans is None or world.listed_at is None:
        return None
    hand_in(engine, "found_orphans", world.orphans)
    found: pa.Table = engine.sql(
        "SELECT * FROM found_orphans WHERE path NOT IN "
        "(SELECT path FROM every_file WHERE coalesce(kept_until >= $listed_at, true))",
        params={"listed_at": world.listed_at},
    ).to_arrow_table()
    return found.cast(ORPHANS)


def _sizes(engine: DuckDBPyConnection, world: World) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name in _LARGE:
        source = _source(engine, f"every_{name}", getattr(world, name))
        for table_id, count in engine.execute(f"SELECT table_id, count(*) FROM {source} GROUP BY 1").fetchall():
            sizes[table_id] = sizes.get(table_id, 0) + count
    return sizes


def _see_files(engine: DuckDBPyConnection, world: World) -> None:
    """`every_file`: the files of all datasets, those of their last scan alone."""
    if isinstance(world.files, Parquet):
        hand_in(engine, "scans", world.tables.select(["table_id", "scan_id"]))
        source = current(world.files, "scans")
    else:
        source = _source(engine, "file_rows", world.files)
    engine.execute(f"CREATE TEMP VIEW every_file AS SELECT table_id, path, kept_until FROM {source}")


def _source(engine: DuckDBPyConnection, name: str, rows: Section) -> str:
    if isinstance(rows, Parquet):
        return scan(rows.files)
    engine.register(name, rows)
    return name
