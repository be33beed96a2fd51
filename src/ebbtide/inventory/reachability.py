"""Which of some files anything still references, over all datasets of all formats (design.md, invariant 1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.orphans import load_referenced
from ebbtide.kernel.engine import connection, hand_in, load, table_of
from ebbtide.kernel.steps import run_steps
from ebbtide.model.dataset import BESIDE
from ebbtide.model.reasons import CHANGELOG


def still_referenced(
    inventory: Inventory,
    named: Iterable[tuple[str, str]],
    going: Mapping[str, Iterable[str]],
    dropped: Collection[str] = (),
) -> dict[str, str]:
    """Of files that were named with their dataset, those that must stay, and who needs them.

    A file may go when no other dataset references it, and its own dataset only through versions that are `going`; a
    dataset that is `dropped` as a whole needs none of its own files (`sql/reachability`).
    """
    assert inventory.current.scanned_at is not None
    with connection() as engine:
        load_referenced(engine, inventory, inventory.current.scanned_at)
        load(engine, "in_transactions", inventory.section("transactions"), among="scans")
        leaving = [(table_id, id_) for table_id, ids in going.items() for id_ in sorted(ids)]
        hand_in(engine, "asked", _texts(sorted(set(named)), "owner", "path"))
        hand_in(engine, "going", _texts(leaving, "table_id", "transaction_id"))
        hand_in(engine, "beside", pa.table({"position": [BESIDE], "name": [CHANGELOG]}))
        hand_in(engine, "dropped", _texts([(name,) for name in sorted(dropped)], "table_id"))
        run_steps(engine, "ebbtide.inventory", "sql/reachability")
        return dict(engine.execute("SELECT path, who FROM needed").fetchall())


def _texts(rows: Iterable[tuple[str, ...]], *names: str) -> pa.Table:
    return table_of(rows, pa.schema([(name, pa.string()) for name in names]))
