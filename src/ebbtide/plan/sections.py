"""The information schema and the orders as tables of the engine: what every step reads."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.kernel.engine import connection, hand_in, load
from ebbtide.kernel.steps import run_steps
from ebbtide.plan.bind import bind_branches, bind_moment, bind_policies, bind_selections, bind_words
from ebbtide.plan.world import ORPHANS, SECTIONS, Orders, World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LISTS = pa.list_(pa.string())
_SETTINGS = {
    "scan_id": pa.string(), "covers": pa.string(), "scan_error": pa.string(), "date_column": pa.string(),
    "date_by": pa.string(), "date_doubt": pa.string(), "identity": pa.string(), "locked_by": _LISTS,
    "own_labels": _LISTS, "partitioned": pa.bool_(),
}  # fmt: skip
"""Columns of `tables` that only some who hand it in have."""


def load_facts(
    engine: DuckDBPyConnection,
    policies: PolicySet,
    world: World,
    orders: Orders,
    *,
    now: datetime,
    limits: Limits | None = None,
) -> None:
    """Everything that is known of the datasets of `world.tables`, and what all who ask share of it (`sql/facts`)."""
    load_tables(engine, world)
    for name in SECTIONS:
        load(engine, f"in_{name}", getattr(world, name), among="in_tables")
    if world.declared_days.num_rows:
        hand_in(engine, "declared_days", world.declared_days)
        engine.execute(_DECLARED)
    hand_in(engine, "in_orphans", ORPHANS.empty_table() if world.orphans is None else world.orphans)
    hand_in(engine, "in_chunks", world.chunks)
    for name in ("marks", "unmarks", "holds", "marked_days"):
        hand_in(engine, f"in_{name}", getattr(orders, name))
    bind_words(engine)
    bind_policies(engine, policies, now, world.listed_at)
    bind_moment(engine, now, world.unread, world.errors, limits or Limits())
    bind_selections(engine, policies)
    bind_branches(engine, policies)
    run_steps(engine, "ebbtide.plan", "sql/words", "sql/facts")


def load_tables(engine: DuckDBPyConnection, world: World) -> None:
    """`in_tables`: the datasets, and the owners of files that are none any more."""
    tables = _with_settings(world.tables, former=False)
    if world.former is not None:
        known = set(tables["table_id"].to_pylist())
        gone = world.former.filter(
            pa.array([name not in known for name in world.former["table_id"].to_pylist()], pa.bool_())
        )
        tables = pa.concat_tables([tables, _with_settings(gone, former=True)], promote_options="permissive")
    hand_in(engine, "in_tables", tables)


def _with_settings(tables: pa.Table, *, former: bool) -> pa.Table:
    for name, type_ in _SETTINGS.items():
        if name not in tables.column_names:
            tables = tables.append_column(name, pa.nulls(tables.num_rows, type_))
    return tables.append_column("former", pa.array([former] * tables.num_rows, pa.bool_()))


_DECLARED = """
UPDATE in_partitions p SET _date = s.first_day, first_day = s.first_day, last_day = s.last_day
FROM declared_days s WHERE s.table_id = p.table_id AND s.partition = p.partition
"""


def selected_by(
    kind: Literal["policies", "floors", "promises"], policies: PolicySet, world: World
) -> set[tuple[str, int]]:
    """Which dataset is selected by which policy, floor or promise, by its number."""
    with connection() as engine:
        load_tables(engine, world)
        bind_selections(engine, policies)
        table = "selected" if kind == "policies" else f"selected_{kind}"
        return set(engine.execute(f"SELECT table_id, number FROM {table}").fetchall())
