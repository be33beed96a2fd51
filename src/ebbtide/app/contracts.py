"""`ebbtide contract create|check|repair`, and what a scan does about contracts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.state import open_state
from ebbtide.app.world import followed, world_of
from ebbtide.config import Project
from ebbtide.config.policies import load_policies
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.governance.contracts import DriftRepair, contracts, create, drift, refuse_existing, repair
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.model.contract import Aspect, ContractDrift
from ebbtide.model.ids import DatasetId


def create_tables(project: Project, tables: Sequence[str] = (), *, dry_run: bool = False) -> list[str]:
    """Make the named tables, or all that have a contract with columns and are not there."""
    inventory = Inventory.open(project.inventory)
    known = contracts(label_inventory(project, inventory), inventory)
    missing = {table_id for table_id in known if table_id not in inventory.current.entries}
    wanted = _named(tables, list(known)) or missing
    refuse_existing(sorted(wanted), inventory)
    spark = None if dry_run or not wanted else start_session(project)
    return create([known[table_id] for table_id in sorted(wanted)], project.catalogs, spark)


def check_contracts(project: Project) -> list[dict[str, Any]]:
    """A row per drift of the last scan."""
    inventory = Inventory.open(project.inventory)
    return [drift_row(one) for one in drift(label_inventory(project, inventory), inventory)]


def repair_tables(project: Project, tables: Sequence[str] = (), *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Repair the named tables, or those with `enforce: true`; what was repaired is scanned again."""
    inventory = Inventory.open(project.inventory)
    labelled = label_inventory(project, inventory)
    known = contracts(labelled, inventory)
    named = _named(tables, list(known))
    wanted = named or {table_id for table_id, contract in known.items() if contract.enforce}
    drifts = [one for one in drift(labelled, inventory) if one.table_id in wanted and one.aspect is not Aspect.TABLE]
    if not drifts:
        return []
    spark = None if dry_run or not any(one.fix for one in drifts) else start_session(project)
    with open_state(project).reader() as state:
        holds = list(followed(state.holds(), inventory))
    floored = _floored(project, labelled, inventory) if any(one.shortens for one in drifts) else frozenset()
    done = repair(drifts, project.catalogs, spark, inventory=inventory, holds=holds, floored=floored)
    if spark is not None and any(one.done for one in done):
        run_scan(project, now=datetime.now(UTC))
    return [_repair_row(one) for one in done]


def _floored(project: Project, labelled: Labelled, inventory: Inventory) -> frozenset[str]:
    """The tables that a floor selects."""
    from ebbtide.plan.sections import selected_by

    policies = load_policies(project.root, unsafe=True)
    if not policies.floors:
        return frozenset()
    return frozenset(table_id for table_id, _ in selected_by("floors", policies, world_of(labelled, inventory)))


def after_scan(project: Project) -> dict[str, Any]:
    """What a scan says of contracts, once tables with `enforce: true` are repaired (spec §3), and of labels that are on
    no table.
    """
    if not (project.root / "tables").is_dir():
        return {"drift": [], "repaired": [], "mislabelled": []}
    repaired = repair_tables(project)
    inventory = Inventory.open(project.inventory)
    labelled = label_inventory(project, inventory)
    return {
        "drift": [drift_row(one) for one in drift(labelled, inventory)],
        "repaired": [one for one in repaired if one["done"]],
        "mislabelled": labelled.mislabelled(inventory),
    }


def _named(tables: Sequence[str], known: list[str]) -> set[str]:
    found = {str(DatasetId.parse(table)) for table in tables}
    for table_id in sorted(found - set(known)):
        raise InputError(f"{table_id} has no contract", hint=nearest(table_id, known))
    return found


def drift_row(one: ContractDrift) -> dict[str, Any]:
    """A drift as JSON shows it."""
    return {
        "table_id": one.table_id, "aspect": one.aspect.value, "found": one.found, "wanted": one.wanted,
        "fix": dict(one.fix),
    }  # fmt: skip


def _repair_row(one: DriftRepair) -> dict[str, Any]:
    return {**drift_row(one.drift), "done": one.done, "because": one.because}
