"""The verbs of retention, as methods of `Ebbtide`: plan, explain, mark, sweep, run, rescues and holds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.app.opened import OpenedProject
from ebbtide.app.verb import time_asked, verb
from ebbtide.errors import InputError
from ebbtide.model.times import in_utc

if TYPE_CHECKING:
    from ebbtide.app.erase_verbs import Subject
    from ebbtide.app.results.plan import Explanation, Explanations, PlanResult, SavedPlan
    from ebbtide.app.results.retention import (
        HoldRow,
        MarkResult,
        OpenMark,
        OpenUnmark,
        Release,
        RunResult,
        SweepResult,
        UnmarkResult,
    )
    from ebbtide.app.results.shown import ResultRows
    from ebbtide.config.project import Limits
    from ebbtide.run import RunContext


class RetentionVerbs:
    """What schedules for deletion, removes, and keeps from both."""

    project: OpenedProject

    @verb
    def plan(self, *, as_of: datetime | None = None) -> PlanResult:
        """What would be marked and swept, and why, by the last scan. Close it, or use it in a `with`."""
        from ebbtide.app.datasets import known_names
        from ebbtide.app.plan import inventory_age, make_plan
        from ebbtide.app.results.plan import PlanResult
        from ebbtide.inventory.information_schema import Inventory

        made = make_plan(self.project, now=time_asked(as_of))
        scanned, unread = inventory_age(self.project, now=datetime.now(UTC))
        return PlanResult.of(
            made, scanned, unread, cache(lambda: known_names(self.project, Inventory.open(self.project.inventory)))
        )

    @staticmethod
    def show(file: str | Path, *select: str) -> SavedPlan:
        """A saved plan, all of it or what is selected. It needs no project."""
        from ebbtide.app.plan import shown_plan

        return shown_plan(Path(file), select)

    @verb
    def explain(self, object_: str, *, as_of: datetime | None = None) -> Explanation:
        """Every policy, every protection and the decision for one object, written `dataset#target:id`."""
        from ebbtide.app.explain import explain_object
        from ebbtide.app.results.built import built
        from ebbtide.app.results.plan import Explanation

        found = explain_object(self.project, object_, now=time_asked(as_of))
        return built(Explanation, found)

    @verb
    def explain_selected(self, *select: str, as_of: datetime | None = None) -> Explanations:
        """The same for the first objects that `--select` takes, and how many more it does."""
        from ebbtide.app.explain import explain_selected
        from ebbtide.app.results.built import built
        from ebbtide.app.results.plan import Explanation, Explanations

        found, more = explain_selected(self.project, select, now=time_asked(as_of))
        return Explanations(tuple(built(Explanation, one) for one in found), more)

    @verb
    def mark(
        self,
        *,
        plan_file: str | Path | None = None,
        limits: Limits | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> MarkResult:
        """Schedule for deletion what the plan wants gone. Nothing is removed.

        With a plan file: exactly that plan, or a `RefusedError` because the world changed.
        """
        from ebbtide.app.mark import run_mark
        from ebbtide.app.results.retention import MarkResult

        file = None if plan_file is None else Path(plan_file)
        return MarkResult.of(
            run_mark(self.project, as_of=as_of, plan_file=file, limits=limits, dry_run=dry_run, context=context)
        )

    @verb
    def sweep(
        self,
        *,
        plan_file: str | Path | None = None,
        limits: Limits | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> SweepResult:
        """Remove what is marked, past its grace and proved again. Nobody is asked: look with `dry_run` first."""
        from ebbtide.app.results.retention import SweepResult
        from ebbtide.app.sweep import run_sweep

        file = None if plan_file is None else Path(plan_file)
        return SweepResult.of(
            run_sweep(self.project, as_of=as_of, plan_file=file, limits=limits, dry_run=dry_run, context=context)
        )

    @verb
    def run(
        self,
        *,
        limits: Limits | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> RunResult:
        """Tier what `hottier/` declares, then scan, plan, mark and sweep. What stopped it is in the result."""
        from ebbtide.app.results.retention import RunResult
        from ebbtide.app.run import run_once

        return RunResult.of(run_once(self.project, as_of=as_of, limits=limits, dry_run=dry_run, context=context))

    @verb
    def marks(self, *select: str, due: str | None = None) -> ResultRows[OpenMark]:
        """What is marked, the next to go first: all of it, or that of some tables, or whose grace ends within `due`."""
        from ebbtide.app.marks import list_marks
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.retention import OpenMark
        from ebbtide.model.durations import parse_duration

        within = None if due is None else parse_duration(due, hours=True)
        return built_rows(OpenMark, list_marks(self.project, select=select, due=within, now=datetime.now(UTC)))

    @verb
    def unmarks(self) -> ResultRows[OpenUnmark]:
        """What people rescued and nobody released."""
        from ebbtide.app.marks import list_unmarks
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.retention import OpenUnmark

        return built_rows(OpenUnmark, list_unmarks(self.project, now=datetime.now(UTC)))

    @verb
    def unmark(
        self,
        object_: str,
        *,
        reason: str = "",
        until: datetime | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> UnmarkResult:
        """Rescue an object, written `dataset#target:id`, from every target until it is released, or until a time."""
        from ebbtide.app.results.retention import UnmarkResult
        from ebbtide.app.unmark import unmark_object

        found = unmark_object(
            self.project,
            object_,
            reason=reason,
            until=until and in_utc(until),
            as_of=as_of,
            dry_run=dry_run,
            context=context,
        )
        return UnmarkResult(**{**found, "closed_marks": tuple(found["closed_marks"])})

    @verb
    def release(
        self,
        object_: str,
        *,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> Release:
        """Let policies act on an unmarked object again."""
        from ebbtide.app.results.retention import Release
        from ebbtide.app.unmark import release_object

        return Release(**release_object(self.project, object_, as_of=as_of, dry_run=dry_run, context=context))

    @verb
    def hold(
        self,
        dataset: str | None = None,
        *,
        owner: str,
        reason: str,
        subject: Subject | None = None,
        first_day: date | None = None,
        last_day: date | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> HoldRow:
        """A litigation hold on a dataset, on a range of its partitions, or on a person: nothing inside goes by any
        verb. Who a person is stands in no result.
        """
        from ebbtide.app.hold import add_hold, hold_subject
        from ebbtide.app.results.retention import HoldRow

        if (dataset is None) == (subject is None) or (subject is not None and (first_day or last_day)):
            raise InputError(
                "a hold is on a dataset, with or without days, or on a person",
                hint="name a dataset, or one person with `--subject @FILE`",
            )
        if dataset is None:
            assert subject is not None
            person = hold_subject(
                self.project, subject, owner=owner, reason=reason, as_of=as_of, dry_run=dry_run, context=context
            )
            return HoldRow(**person)
        found = add_hold(
            self.project, dataset, owner=owner, reason=reason, first_day=first_day, last_day=last_day, as_of=as_of,
            dry_run=dry_run, context=context,
        )  # fmt: skip
        return HoldRow(**found)

    @verb
    def release_hold(
        self,
        hold_id: str,
        *,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> HoldRow:
        """End a hold; policies act on what it covered again."""
        from ebbtide.app.hold import release_hold
        from ebbtide.app.results.retention import HoldRow

        return HoldRow(**release_hold(self.project, hold_id, as_of=as_of, dry_run=dry_run, context=context))

    @verb
    def holds(self) -> ResultRows[HoldRow]:
        """Every active hold."""
        from ebbtide.app.hold import list_holds
        from ebbtide.app.results.retention import HoldRow
        from ebbtide.app.results.shown import ResultRows

        return ResultRows(HoldRow(**row) for row in list_holds(self.project))
