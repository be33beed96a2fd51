"""One round of retention: the lease, a fresh inventory, the state and the plan made from both."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ebbtide.app.datasets import known_names
from ebbtide.app.ledger import Ledger
from ebbtide.app.orphans import list_project
from ebbtide.app.plan import PlanFile, choice_of, read_plan
from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.world import Inputs, in_doubt, needs_listing, not_read, read_inputs, read_state, some_policies
from ebbtide.config import Project
from ebbtide.config.project import Limits
from ebbtide.errors import BusyError, RefusedError
from ebbtide.inventory.doubts import names_to_wait_for
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import last_listing
from ebbtide.model.durations import add, parse_duration
from ebbtide.model.times import as_text
from ebbtide.run import RunContext
from ebbtide.state.lease import Lease
from ebbtide.sweep.declared import record_declarations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.plan.choice import Choice
    from ebbtide.plan.plan import Plan

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")
_PATIENCE = 600
"""Seconds. A round that has begun should not end because somebody looks at the lake, least of all a sweep that has
changed metadata.
"""


@dataclass(frozen=True, slots=True)
class RetentionRun:
    """What one run of `mark` or `sweep` was made from. `context` is the run's."""

    context: RunContext
    ledger: Ledger
    inputs: Inputs
    plan: Plan
    limits: Limits

    @property
    def spark(self) -> SparkSession:
        """The session that formats work in."""
        return start_session(self.inputs.project)

    @property
    def unread(self) -> tuple[str, ...]:
        """Catalogs that did not answer and datasets that could not be read: nothing of them goes."""
        return not_read(self.inputs.project, self.inputs.inventory, now=self.plan.as_of)

    def waits_for(self, inventory: Inventory) -> tuple[str, ...]:
        """Who may reference files of others unknown to anybody, as this inventory has it."""
        return names_to_wait_for(in_doubt(self.inputs.project, inventory, now=self.plan.as_of))

    @property
    def run(self) -> str:
        """The id of a run that writes."""
        assert self.context.run is not None
        return self.context.run

    def choice(self, select: Sequence[str]) -> Choice:
        """What `--select` asks for, held against the policies and tables that there are after the scan."""
        if not select:
            return choice_of(select, ())
        tables = known_names(self.inputs.project, self.inputs.inventory)
        return choice_of(select, self.plan.graces, tables)

    def declare(self, lease: Lease) -> None:
        """Before a verb writes: what the project file declares is in the ledger."""
        project, at, actor = self.inputs.project, self.ledger.clock.now(), self.context.actor
        with self.ledger.sweeping(lease) as step:
            record_declarations(step, project.catalogs, project.ignore, actor=actor, as_of=self.plan.as_of, at=at)

    def rescan(self) -> Inventory:
        """Read what changed since, and open the inventory as it is now."""
        in_turn(lambda: run_scan(self.inputs.project, now=datetime.now(UTC), context=self.context), self.context)
        return Inventory.open(self.inputs.project.inventory)


def in_turn(read: Callable[[], _T], context: RunContext) -> _T:
    """Read when a scan of somebody else is over."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return read()
        except BusyError:
            if time.monotonic() > until:
                raise
            context.step("waiting for another scan")
            time.sleep(1)


@contextmanager
def plan_round(
    project: Project,
    ledger: Ledger,
    context: RunContext,
    *,
    plan_file: Path | None = None,
    limits: Limits | None = None,
) -> Iterator[RetentionRun]:
    """Scan, read the state, plan. With a plan file: at its time, and only if the world is still what it was."""
    policies, now = some_policies(project), ledger.clock.now()
    asked = read_plan(plan_file) if plan_file is not None else None
    if asked is not None:
        now = _time_of(asked, now, project.tick)
    snapshot = read_state(project)
    # List first, read references second. A plan file was made from the listing before it, or from none.
    listing = last_listing(project.inventory) if plan_file is not None else None
    if plan_file is None and needs_listing(policies, snapshot):
        listing = in_turn(lambda: list_project(project, now=datetime.now(UTC), context=context), context)
    in_turn(lambda: run_scan(project, now=datetime.now(UTC), context=context), context)
    with ExitStack() as stack:
        context.step("planning")
        with context.cancellation.at_once():
            inputs = read_inputs(project, policies, snapshot, Inventory.open(project.inventory), listing, now=now)
            plan = stack.enter_context(inputs.plan(now=now, limits=limits))
        counts = ", ".join(f"{count} {decision}" for decision, count in plan.counts.items() if count)
        _logger.info("planned as of %s, digest %s: %s", as_text(now), plan.digest, counts, extra={"run": context.run})
        if asked is not None:
            _refuse_another(asked, plan)
        yield RetentionRun(context, ledger, inputs, plan, limits or project.limits)


def _time_of(asked: PlanFile, now: datetime, tick: str) -> datetime:
    told = f"{asked.path} is of {as_text(asked.as_of)}"
    if add(asked.as_of, parse_duration(tick, hours=True)) < now:
        raise RefusedError(f"{told}, more than one tick ({tick}) old", hint="make a new plan")
    if asked.as_of > now + timedelta(minutes=5):
        raise RefusedError(f"{told}, in the future", hint="make a new plan without --as-of")
    return asked.as_of


def _refuse_another(asked: PlanFile, plan: Plan) -> None:
    """Exactly what the file says, or nothing: neither another world nor a file that somebody changed."""
    from ebbtide.plan.plan import without_codes

    hint = "make a new plan, look at it, and use that"
    if asked.digest != plan.digest:
        raise RefusedError(
            f"the world changed since {asked.path} was made: its digest is {asked.digest}, now {plan.digest}", hint=hint
        )
    rows = (json.loads(json.dumps(row)) for row in plan.rows())
    # What `plan --json` printed is a plan, too: it has codes beside the texts, and no digest covers those.
    asked_for = (without_codes(one) if isinstance(one, dict) else one for one in asked.objects)
    if any(one != other for one, other in zip_longest(asked_for, rows)):
        raise RefusedError(f"{asked.path} was changed: its objects are not those of its digest", hint=hint)
    if asked.files is not None and any(one != other for one, other in zip_longest(asked.files, plan.paths())):
        raise RefusedError(f"{asked.path}.files was changed: they are not the files of the plan", hint=hint)


@contextmanager
def sweeper(ledger: Ledger, context: RunContext) -> Iterator[Lease]:
    """The lease of the one sweeper of this project, in this process's name. Whatever ends the work gives it back."""
    holder = f"{context.actor} on {socket.gethostname()}, process {os.getpid()}"
    with context.cancellation.at_boundaries(), Lease.acquire(ledger.database, holder=holder) as lease:
        yield lease
