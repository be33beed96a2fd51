"""A plan in a few lines, for the child process only: what Spark does in a sweep is to plan and to join references.

It writes nothing there. All that writes and removes is the sweep itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ebbtide.acts import engine, references
from ebbtide.acts.act import ActResult, NamedFile
from ebbtide.acts.engine import Engine
from ebbtide.formats import registry
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.reasons import PROOF
from ebbtide.state.values import Mark, ObjectKey
from ebbtide.storage import remove
from ebbtide.sweep import sweep as sweeping
from ebbtide.sweep.values import ExpiringObject
from tests.faults import folder


class SmallPlan:
    """What the plan would say of the open marks."""

    def __init__(self, inventory: Inventory, marks: Iterable[Mark]) -> None:
        self.marks, self.inventory = {found.key: found for found in marks}, inventory
        self.rows = {key: self._row(key) for key in sorted(self.marks, key=str)}

    def _row(self, key: ObjectKey) -> dict[str, Any]:
        rows = self.inventory.rows("transactions", table_id=key.dataset)
        tags = {row["head"] for row in self.inventory.rows("branches", table_id=key.dataset) if row["kind"] == "tag"}
        there = {row["transaction_id"] for row in rows}
        decision = "unmarked" if key.object in tags else "sweep" if key.object in there else "wait"
        return {
            "decision": decision, "because": "old", "waits_for": [PROOF] if decision == "wait" else [],
            "waits_for_codes": ["proof"] if decision == "wait" else [],
            "drops_from": (), "policy": "p", "fingerprint": "f", "rows": 0, "bytes": 0, "cutoff": None,
        }  # fmt: skip

    def decided(self, *decisions: str) -> dict[ObjectKey, dict[str, Any]]:
        return {key: row for key, row in self.rows.items() if row["decision"] in decisions}

    def going(self) -> list[ExpiringObject]:
        """Files under the last of the versions that go and reference them."""
        rows = self.decided("sweep")
        files: dict[ObjectKey, list[NamedFile]] = {key: [] for key in rows}
        for dataset in {key.dataset for key in rows}:
            for file, by in _references(self.inventory, dataset).items():
                keys = [ObjectKey(dataset, "versions", id_) for id_ in by]
                if all(key in rows for key in keys):
                    files[keys[-1]].append(NamedFile(file, 1))
        return [ExpiringObject(key, row, self.marks[key], tuple(files[key])) for key, row in rows.items()]


def _references(inventory: Inventory, dataset: str) -> dict[str, list[str]]:
    versions = sorted(inventory.rows("transactions", table_id=dataset), key=lambda row: row["position"])
    return {
        file["path"]: [
            row["transaction_id"]
            for row in versions
            if any(run["first"] <= row["position"] <= run["last"] for run in file["versions"])
        ]
        for file in inventory.rows("files", table_id=dataset)
    }


def _still_referenced(
    inventory: Inventory, named: Iterable[tuple[str, str]], going: Mapping[str, Iterable[str]], *_: object
) -> dict[str, str]:
    needed = {}
    for dataset, path in named:
        staying = [id_ for id_ in _references(inventory, dataset).get(path, ()) if id_ not in going.get(dataset, ())]
        if staying:
            needed[path] = f"version:{staying[0]}"
    return needed


def without_spark() -> None:
    """In the child: the one-file format, a plan without a session, a writer in the middle, a file per batch."""
    registry._MODULES["folder"] = folder.__name__
    remove._BATCH = 1
    # Who is stopped after a batch must not have another thread in a transaction: its lock would stop everybody else.
    patched: Any = remove
    patched.CALLS_AT_ONCE = 1
    patched = sweeping
    patched.decided = SmallPlan.decided
    patched.going_now = lambda plan, *_: plan.going()
    patched = references
    patched.still_referenced = _still_referenced
    patched = engine
    patched.activate = lambda _: None  # there is no session here
    patched._AT_ONCE = 1
    commit = Engine.commit

    def late(self: Engine, result: ActResult) -> ActResult:
        act = result.act
        if act.dataset == "c.db.b" and act.removal is not None:
            folder.tag(Path(act.removal.found.location.removeprefix("file://")), "v2")
        return commit(self, result)

    Engine.commit = late  # type: ignore[method-assign]
