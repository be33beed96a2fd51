"""Marks on partitions that an erasure rewrites (spec §1): they are of what is there now, with an entry that says so.

Without this an erasure every week would send every mark back, and retention would never end. A mark is bound anew only
where nobody else changed the partition: what left it was named by the act, what came into it is of its commit, or a new
file of a version that was there before, which nobody but the act can have written anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.acts.act import ActResult
from ebbtide.app.world import read_inputs, read_state
from ebbtide.config import Project
from ebbtide.config.policies import load_policies
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.entries import MarkRebound, salted
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Role
from ebbtide.state.lease import Lease
from ebbtide.state.values import Mark, MarkState, ObjectKey

_CLOSED = (MarkState.SWEEPING,)


@dataclass(frozen=True, slots=True)
class MarkedPartitions:
    """Partitions with an open mark that is still of what is there, with their live data files; and by dataset all paths
    and transactions that were known.
    """

    marks: Mapping[ObjectKey, Mark] = field(default_factory=dict)
    files: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    paths: Mapping[str, frozenset[str]] = field(default_factory=dict)
    transactions: Mapping[str, frozenset[str]] = field(default_factory=dict)


def marked_partitions(
    project: Project, ledger: Ledger, inventory: Inventory, datasets: Collection[str]
) -> MarkedPartitions:
    """Those of these datasets, before anything of them is rewritten."""
    snapshot = read_state(project)
    marks = {
        mark.key: mark
        for mark in snapshot.marks
        if mark.key.dataset in datasets and mark.key.target == "partitions" and mark.state not in _CLOSED
    }
    if not marks:
        return MarkedPartitions()
    seen = _fingerprints(project, ledger, inventory, marks)
    marks = {key: mark for key, mark in marks.items() if seen.get(key) == mark.fingerprint}
    names = {key.dataset for key in marks}
    return MarkedPartitions(
        marks, {key: frozenset(_live(inventory, key)) for key in marks},
        {name: _column(inventory, name, "files", "path") for name in names},
        {name: _column(inventory, name, "transactions", "transaction_id") for name in names},
    )  # fmt: skip


def _column(inventory: Inventory, dataset: str, section: str, column: str) -> frozenset[str]:
    return frozenset(inventory.table(section, table_id=dataset)[column].to_pylist())


def rebind(
    project: Project, ledger: Ledger, lease: Lease, run: str, before: MarkedPartitions, results: Iterable[ActResult]
) -> int:
    """Bind the marks anew whose partitions these acts rewrote, and nobody else changed."""
    acts = {result.act.dataset: result for result in results if result.committed.version is not None}
    keys = {key: mark for key, mark in before.marks.items() if key.dataset in acts}
    if not keys:
        return 0
    inventory = Inventory.open(project.inventory)
    seen = _fingerprints(project, ledger, inventory, keys)
    changed = {
        key: seen[key]
        for key, mark in keys.items()
        if key in seen and seen[key] != mark.fingerprint and _is_ours(inventory, key, before, acts)
    }
    if not changed:
        return 0
    with ledger.sweeping(lease) as step:
        still_open = {mark.id: mark for mark in step.state.marks(datasets={key.dataset for key in changed})}
        for key, fingerprint in sorted(changed.items(), key=lambda one: (one[0].dataset, one[0].object)):
            mark = keys[key]
            if mark.id not in still_open or still_open[mark.id].fingerprint != mark.fingerprint:
                continue
            step.state.rebind(mark.id, fingerprint=fingerprint)
            said = salted(mark.salt, fingerprint)
            act = acts[key.dataset].act.id
            step.append(MarkRebound(at=ledger.clock.now(), mark=mark.id, run=run, act=act, fingerprint=said))
    return len(changed)


def _fingerprints(
    project: Project, ledger: Ledger, inventory: Inventory, keys: Collection[ObjectKey]
) -> dict[ObjectKey, str]:
    """What a plan sees of these partitions."""
    now = ledger.clock.now()
    inputs = read_inputs(
        project, load_policies(project.root, unsafe=True), read_state(project), inventory, None, now=now
    )
    with inputs.plan(now=now) as plan:
        found = {ObjectKey(row["dataset"], row["target"], row["object"]): row["fingerprint"] for row in plan.rows()}
    return {key: found[key] for key in keys if key in found}


def _live(inventory: Inventory, key: ObjectKey) -> dict[str, str | None]:
    """The live data files of a partition, with the transaction that added each."""
    files = inventory.table("files", table_id=key.dataset).select(
        ["path", "role", "live", "partition", "first_transaction"]
    )
    chosen = files.filter(
        pc.and_(
            pc.and_(pc.equal(files["partition"], pa.scalar(key.object)), files["live"]),
            pc.equal(files["role"], str(Role.DATA)),
        )
    )
    return {row["path"]: row["first_transaction"] for row in chosen.to_pylist()}


def _is_ours(inventory: Inventory, key: ObjectKey, before: MarkedPartitions, acts: Mapping[str, ActResult]) -> bool:
    """Whether all that changed in a partition was changed by the act on its dataset."""
    result, after, there = acts[key.dataset], _live(inventory, key), before.files[key]
    came = {path: first for path, first in after.items() if path not in there}
    known, versions = before.paths[key.dataset], before.transactions[key.dataset]
    return there - after.keys() <= result.act.paths.keys() and all(
        first == result.committed.version or (path not in known and first in versions) for path, first in came.items()
    )
