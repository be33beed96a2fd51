"""One round of retention: the lease, a fresh inventory, the state and the plan made from both."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.app.actor import actor
from ebbtide.app.ledger import Ledger, open_ledger
from ebbtide.app.orphans import list_project
from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.world import Inputs, needs_listing, read_inputs, read_state, some_policies
from ebbtide.config import Project
from ebbtide.config.project import Limits
from ebbtide.errors import InputError, RefusedError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import last_listing
from ebbtide.model.durations import add, parse_duration
from ebbtide.state.lease import Lease

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.plan.plan import Plan

_PATIENCE = 600
"""Seconds: a sweep has changed metadata when it reads again, and should not stop there."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one run of `mark` or `sweep` was made from."""

    ledger: Ledger
    spark: SparkSession
    inputs: Inputs
    plan: Plan

    def rescan(self) -> Inventory:
        """Read what changed since, and open the inventory as it is now. A scan of somebody else is waited for."""
        for left in reversed(range(_PATIENCE)):
            try:
                run_scan(self.inputs.project, now=datetime.now(UTC))
                break
            except RefusedError:
                if not left:
                    raise
                time.sleep(1)
        return Inventory.open(self.inputs.project.inventory)


@contextmanager
def plan_round(
    project: Project,
    ledger: Ledger,
    *,
    now: datetime,
    plan_file: Path | None = None,
    limits: Limits | None = None,
) -> Iterator[Round]:
    """Scan, read the state, plan. With a plan file: at its time, and only if the world is still what it was."""
    policies = some_policies(project)
    asked = _read(plan_file) if plan_file is not None else None
    if asked is not None:
        now = _time_of(asked, plan_file, now, project.tick)
    spark, snapshot = start_session(project), read_state(project)
    # List first, read references second. A plan file was made from the listing before it, and is held against that.
    listing = last_listing(project.inventory) if plan_file is not None else None
    if listing is None and needs_listing(policies, snapshot):
        listing = list_project(project, now=datetime.now(UTC))
    run_scan(project, now=datetime.now(UTC))
    inputs = read_inputs(project, policies, snapshot, Inventory.open(project.inventory), listing)
    with inputs.plan(now=now, limits=limits) as plan:
        if asked is not None and asked["digest"] != plan.digest:
            raise RefusedError(
                f"the world changed since {plan_file} was made: its digest is {asked['digest']}, now {plan.digest}",
                hint="make a new plan, look at it, and use that",
            )
        yield Round(ledger, spark, inputs, plan)


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"as_of": found["as_of"], "digest": found["digest"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a plan", hint="make one with `ebbtide plan -o FILE`") from None


def _time_of(asked: dict[str, str], path: Path | None, now: datetime, tick: str) -> datetime:
    as_of = datetime.fromisoformat(asked["as_of"]).astimezone(UTC)
    if add(as_of, parse_duration(tick, hours=True)) < now:
        raise RefusedError(f"{path} is of {asked['as_of']}, more than one tick ({tick}) old", hint="make a new plan")
    if as_of > now + timedelta(minutes=5):
        raise RefusedError(f"{path} is of {asked['as_of']}, in the future", hint="make a new plan without --as-of")
    return as_of


def open_for_writing(project: Project, as_of: datetime | None) -> tuple[Ledger, datetime]:
    """The ledger, and the time that counts: the real one, or `--as-of` where the project's clock is simulated."""
    ledger = open_ledger(project, as_of=as_of)
    return ledger, ledger.clock.now()


def sweeper(ledger: Ledger) -> Lease:
    """The lease of the one sweeper of this project, in this process's name."""
    return Lease.acquire(ledger.database, holder=f"{actor()} on {socket.gethostname()}, process {os.getpid()}")
