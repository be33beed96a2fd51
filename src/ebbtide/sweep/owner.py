"""Retention as an owner of acts: what is marked, past its grace and still wanted goes; marks close by what was seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.acts.act import Act, ActResult, CommitRemoval, Phase
from ebbtide.acts.recovery import head_of
from ebbtide.config.policies import Rows
from ebbtide.config.project import Limits
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Step
from ebbtide.model.dataset import OF_CHANGELOG
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import HoldScope, Mark, MarkState, ObjectKey, Proposal, Snapshot
from ebbtide.sweep.act_planning import act_of
from ebbtide.sweep.carried import Added, added_by, with_carried
from ebbtide.sweep.mark import close_unswept, entry_of
from ebbtide.sweep.outcomes import DatasetState, results_of
from ebbtide.sweep.rows import most_rows, rows_proved
from ebbtide.sweep.values import ExpiringObject, ObjectBatch, ObjectOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the objects of one act."""

    run: str
    results: tuple[ObjectOutcome, ...]
    marks: Mapping[ObjectKey, Mark]

    @property
    def failed(self) -> bool:
        return any(result.state == "failed" for result in self.results)

    @property
    def finished(self) -> bool:
        return {result.state for result in self.results} == {"swept"}

    def write(self, step: Step[SweepWriter], at: datetime) -> None:
        """Close or keep each mark by what was seen of its object."""
        sweeping = _sweeping(step, self.marks)
        for result in self.results:
            mark = self.marks.get(result.key)
            if mark is None or mark.id not in sweeping:
                continue
            if result.acted_at is not None or result.again:
                step.state.acted(mark.id, at=result.acted_at)
            if result.state == "swept":
                step.state.sweep(mark.id, because=result.because, at=at, carried_into=result.carried_into)
            elif result.state == "unmarked":
                close_unswept(step, mark, self.run, result.because, at)
            else:
                step.state.wait(mark.id, waits_for=(result.because,))


@dataclass(slots=True)
class Retention:
    """The marks of one sweep. `snapshot` is the state that its plan read, `asked` the policies' rows targets."""

    run: str
    snapshot: Snapshot
    asked: Mapping[str, Rows]
    limits: Limits
    session: Callable[[], SparkSession]
    batches: dict[str, ObjectBatch] = field(default_factory=dict)
    """By act, as they are still wanted."""
    results: list[ObjectOutcome] = field(default_factory=list)
    verb: str = "sweep"
    _planned: dict[str, DatasetState] = field(default_factory=dict)
    _added: dict[str, Added] = field(default_factory=dict)

    def plan(self, batches: Iterable[ObjectBatch], inventory: Inventory) -> list[Act]:
        """What goes, as acts. What the inventory has of it is kept: later scans drop what an older one was made of."""
        acts = []
        for batch in batches:
            self.batches[batch.id] = batch
            acts.append(act_of(batch, self.asked, most_rows(inventory, batch, self.limits)))
            self._added[batch.id] = added_by(batch, inventory)
            if batch.dataset not in self._planned:
                self._planned[batch.dataset] = DatasetState(batch.dataset, inventory)
        return acts

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
        """Without what a person held or rescued since. What goes along gets its mark now."""
        batch = self.batches[act.id]
        batch = replace(batch, objects=tuple(_still_going(step, batch, self.snapshot)))
        batch = _marked_along(step, batch, self.run, at)
        if not batch.objects:
            return None
        batch = replace(batch, objects=tuple(_rows_that_went(step, batch, object_) for object_ in batch.objects))
        self.batches[act.id] = batch
        stage = act.stage(Phase.METADATA)
        most = stage.most_rows if isinstance(stage, CommitRemoval) else None
        wanted = act_of(batch, self.asked, most)
        step.state.begin(wanted.marks, act=act.id)
        return wanted

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:
        """Its marks wait again: people can rescue what they are on."""
        sweeping = _sweeping(step, (object_.key for object_ in self.batches[act.id].objects))
        for mark in sweeping.intersection(act.marks):
            step.state.wait(mark, waits_for=("the next run: one was asked to stop before it",))

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:
        """No stage of retention waits for a later run."""

    def settle(self, result: ActResult, after: Inventory) -> Settled:
        """What became of each object, by what the inventory and the listing show after the act."""
        batch, planned = self.batches[result.act.id], self._planned[result.act.dataset]
        results = [
            rows_proved(batch, result, each, self.asked, self.session)
            for each in results_of(batch, result, after, planned)
        ]
        results = with_carried(results, result, self._added[result.act.id], after)
        self.results += results
        marks = {object_.key: object_.mark for object_ in batch.objects if object_.mark}
        return Settled(self.run, tuple(results), marks)


def _sweeping(step: Step[SweepWriter], keys: Iterable[ObjectKey]) -> set[str]:
    """The marks on these objects that acts have taken up."""
    marks = step.state.marks(datasets={key.dataset for key in keys})
    return {mark.id for mark in marks if mark.state is MarkState.SWEEPING}


def _still_going(step: Step[SweepWriter], batch: ObjectBatch, snapshot: Snapshot) -> list[ExpiringObject]:
    """Without what was unmarked, or lies in a dataset that was held, since the plan read the state."""
    known = {hold.id for hold in snapshot.holds}
    names = (batch.dataset, *batch.called_before)
    now = step.state.snapshot(datasets=names)
    # What a plan knew of a hold on a person is in its decisions; one that came since may be on anything.
    new = [hold for hold in now.holds if hold.id not in known]
    if any(hold.dataset in names or hold.scope is HoldScope.SUBJECT for hold in new):
        return []
    open_marks = {mark.id for mark in now.marks}
    known_pins = {pin.id for pin in snapshot.unmarks if pin.released_at is None}
    pinned = {pin.object for pin in now.unmarks if pin.released_at is None and pin.id not in known_pins}
    return [
        object_
        for object_ in batch.objects
        # A table does not go while anything of it is pinned.
        if not (pinned if object_.key.target == "tables" else pinned & _names_of(object_.key.object))
        and (object_.mark is None or object_.mark.id in open_marks)
    ]


def _names_of(object_: str) -> set[str]:
    """An object's native id, and for a changelog that of the snapshot which it was."""
    return {object_, re.sub(OF_CHANGELOG, r"/\1", object_)}


def _marked_along(step: Step[SweepWriter], batch: ObjectBatch, run: str, at: datetime) -> ObjectBatch:
    """Versions that go under a partition's or a row target's mark get one of their own now, without a second grace."""
    bare = {object_.key: object_ for object_ in batch.objects if object_.mark is None}
    proposals = [
        Proposal(
            key=key, policy=o.row["policy"], because=o.row["because"], fingerprint=o.row["fingerprint"],
            grace_until=at, rows=o.row["rows"] or 0, bytes=o.row["bytes"] or 0, facts=o.facts,
        )
        for key, o in bare.items()
    ]  # fmt: skip
    made, condemned = {}, step.state.condemned()
    for answer in step.state.mark(proposals, run=run, at=at) if proposals else ():
        if answer.mark is not None:
            made[answer.proposal.key] = answer.mark
            step.append(entry_of(answer, at, condemned))
    objects = (
        object_ if object_.mark else object_.with_mark(made[object_.key])
        for object_ in batch.objects
        if object_.mark or object_.key in made
    )
    return replace(batch, objects=tuple(objects))


def _rows_that_went(step: Step[SweepWriter], batch: ObjectBatch, rows: ExpiringObject) -> ExpiringObject:
    """A row object that an earlier act was begun for and that did not say what became of it: main may have moved by it.

    Without this the delete is made again, matches nothing, and looks as if no version had ever held the rows.
    """
    mark = rows.mark
    if mark is None or mark.act is None or mark.acted_at is not None or rows.key.target != "rows" or batch.head is None:
        return rows
    before = head_of(step, mark.act)
    return rows if before is None or before == batch.head[0] else replace(rows, tried_at=(before, batch.head[1]))
