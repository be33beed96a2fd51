"""`sweep`: what the plan says is past its grace goes, by acts that retention owns (spec §2).

Acts that died are closed first; what they left is gathered again. A dry run walks the same batches and stages
(`foresee`), and carries none of them out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Carried, Engine, Lake
from ebbtide.acts.recovery import close_unfinished
from ebbtide.acts.remove import Remover
from ebbtide.config.policies import PolicySet, Rows
from ebbtide.config.project import Limits
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.plan.choice import EVERYTHING, Choice
from ebbtide.plan.plan import Plan
from ebbtide.run import RunContext
from ebbtide.state.lease import Lease
from ebbtide.state.values import Mark, ObjectKey, Snapshot
from ebbtide.sweep.act_planning import batches_of, decided, going_now
from ebbtide.sweep.leftover import leftovers, sort_out
from ebbtide.sweep.mark import send_back
from ebbtide.sweep.owner import Retention
from ebbtide.sweep.values import ObjectBatch, ObjectOutcome, SweepReport, freed_by

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Todo:
    """What a plan asks of a sweep: batches that go, and marked objects that wait."""

    batches: tuple[ObjectBatch, ...]
    waiting: Mapping[ObjectKey, tuple[str, ...]]


def todo(
    plan: Plan,
    inventory: Inventory,
    marks: Sequence[Mark],
    catalogs: Mapping[str, Catalog],
    ledger: Ledger,
    choice: Choice = EVERYTHING,
) -> Todo:
    """Sort out what is there to do, and what an earlier sweep left; nothing is written. Of the tables that somebody
    chose, where somebody did: each of them whole, and what others still reference waits as ever.
    """
    takes = choice.only_tables("sweep").takes()
    marks = [mark for mark in marks if takes({"dataset": mark.key.dataset})]
    waits = {key: row for key, row in decided(plan, "wait").items() if takes(row)}
    going = [one for one in going_now(plan, {mark.key: mark for mark in marks}) if takes(one.row)]
    sorted_out = sort_out(going, marks, waits, catalogs)
    left = {mark.key for mark in sorted_out.left}
    waiting = {key: tuple(str(name) for name in row["waits_for"]) for key, row in waits.items() if key not in left}
    waiting |= {key: (why,) for key, why in sorted_out.waiting.items()}
    batches = (
        *batches_of(sorted_out.fresh, catalogs, inventory),
        *leftovers(ledger, sorted_out.left, catalogs, inventory),
    )
    return Todo(batches, waiting)


def rows_targets(policies: PolicySet) -> dict[str, Rows]:
    """The policies' rows targets, by policy."""
    return {policy.name: policy.rows for policy in policies.policies if policy.rows is not None}


@dataclass(frozen=True, slots=True)
class Sweeper:
    """One sweep under one lease."""

    catalogs: Mapping[str, Catalog]
    lake: Lake
    ledger: Ledger
    lease: Lease
    context: RunContext
    limits: Limits
    choice: Choice = EVERYTHING

    def sweep(self, plan: Plan, inventory: Inventory, policies: PolicySet, snapshot: Snapshot) -> SweepReport:
        """Do what the plan says; `inventory` is what it was made from, `snapshot` the state that it read."""
        run = self.context.run
        session = self.lake.session
        assert run is not None, "a sweep is a run that the state knows"
        assert session is not None, "formats remove by one"
        close_unfinished(self.ledger, self.lease)
        back = send_back(self.ledger, self.lease, run, snapshot, decided(plan, "unmarked", "held"))
        asked = todo(plan, inventory, snapshot.marks, self.catalogs, self.ledger, self.choice)
        _logger.info(
            "%d objects in %d batches are due, %d wait", sum(len(batch.objects) for batch in asked.batches),
            len(asked.batches), len(asked.waiting), extra={"run": run},
        )  # fmt: skip
        before = [*back, *self._wait(snapshot.marks, asked.waiting)]
        owner = Retention(run, snapshot, rows_targets(policies), self.limits, session)
        executors = {"remove": Remover(session, self._check)}
        engine = Engine(self.lake, self.ledger, self.lease, self.context, executors)
        carried = engine.carry_out(owner, owner.plan(asked.batches, inventory))
        refused = [
            ObjectOutcome(object_.key, "failed", f"failed: {result.error}")
            for result in carried.refused
            for object_ in owner.batches[result.act.id].objects
        ]
        return _report(run, (*before, *refused, *owner.results), carried)

    def _check(self) -> None:
        self.lease.check()
        self.context.cancellation.check()

    def _wait(self, marks: Sequence[Mark], waiting: Mapping[ObjectKey, tuple[str, ...]]) -> list[ObjectOutcome]:
        """Say in the state what each marked object waits for."""
        results, by_key = [], {mark.key: mark for mark in marks}
        with self.ledger.sweeping(self.lease) as step:
            still_open = {mark.id for mark in step.state.marks()}
            for key, waits_for in waiting.items():
                mark = by_key.get(key)
                if mark is not None and mark.id in still_open and waits_for:
                    step.state.wait(mark.id, waits_for=waits_for)
                    results.append(ObjectOutcome(key, "waiting", ", ".join(waits_for)))
        return results


def _report(run: str, results: tuple[ObjectOutcome, ...], carried: Carried) -> SweepReport:
    ended = (*carried.results, *carried.refused)
    removed = {path: size for result in carried.results for path, size in result.removed.items()}
    errors = [f"{result.act.dataset}: {result.error}" for result in ended if result.error and not result.over]
    return SweepReport(
        run, results, len(removed), sum(removed.values()), (*errors, *_failures(carried.results)),
        over=tuple(f"{result.act.dataset}: {result.error}" for result in carried.results if result.over),
        findings=tuple(f"{dataset}: {said}" for dataset, proof in carried.proofs.items() for said in proof),
        freed=freed_by(carried.results),
    )  # fmt: skip


def _failures(results: Sequence[ActResult]) -> list[str]:
    return [
        f"{result.act.dataset}: {path.rpartition('/')[2]}: {why}"
        for result in results
        for path, why in sorted(result.deletion.failed.items())
    ]
