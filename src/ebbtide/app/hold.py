"""`ebbtide hold add|release|list`: a litigation hold on a dataset, a range of its partitions, or a person (spec §3)."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ebbtide.app.datasets import known_owner
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.ledger.entries import HoldPlaced, HoldReleased, salted
from ebbtide.model.ids import written
from ebbtide.model.times import as_text
from ebbtide.run import RunContext, quiet
from ebbtide.state.values import Hold, HoldScope

if TYPE_CHECKING:
    from ebbtide.app.erase_request import Values


def add_hold(
    project: Project,
    dataset: str,
    *,
    owner: str,
    reason: str,
    first_day: date | None = None,
    last_day: date | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Nothing inside it goes by any verb until it is released. It never waits for a sweep."""
    table_id = _held(project, dataset)
    _check_said(owner, reason)
    ledger, now = open_for_writing(project, quiet(context, as_of=as_of))
    if dry_run:
        scope = HoldScope.DATASET if first_day is None and last_day is None else HoldScope.PARTITIONS
        return _row(scope, owner, reason, dataset=table_id, first_day=first_day, last_day=last_day)
    with ledger.writing() as step:
        who = step.state.actor(owner)
        if first_day is None and last_day is None:
            hold = step.state.hold_dataset(table_id, owner=who, reason=reason, at=now)
        else:
            hold = step.state.hold_partitions(table_id, first_day, last_day, owner=who, reason=reason, at=now)
        step.append(
            HoldPlaced(
                at=now, hold=hold.id, scope=str(hold.scope), owner=who,
                reason=salted(hold.salt, reason), dataset=step.dataset_in_ledger(table_id),
                first_day=first_day, last_day=last_day,
            )
        )  # fmt: skip
    return _told(hold, owner)


def hold_subject(
    project: Project,
    values: Values,
    *,
    owner: str,
    reason: str,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Nothing that shows this person goes by any verb until the hold is released. Nobody can read here who it is."""
    from ebbtide.app.erase_request import declared_in, one_person
    from ebbtide.erasure.held_people import hold_person

    *_, declared = declared_in(project)
    person = one_person(values, declared)
    _check_said(owner, reason)
    ledger, now = open_for_writing(project, quiet(context, as_of=as_of))
    if dry_run:
        return _row(HoldScope.SUBJECT, owner, reason)
    return _told(hold_person(ledger, person, owner=owner, reason=reason, now=now), owner)


def _check_said(owner: str, reason: str) -> None:
    if not owner.strip() or not reason.strip():
        raise InputError("a hold needs an owner and a reason", hint="say them with --owner and --reason")


def _held(project: Project, dataset: str) -> str:
    """The dataset that a hold is on. One on a hot table is on its cold one: it keeps both."""
    from ebbtide.config.hottier import load_hot_tables

    if (project.root / "hottier").is_dir():
        for table in load_hot_tables(project.root, None).values():
            if written(dataset) in (table.id, table.cold):
                return table.cold or table.id
    from ebbtide.inventory.information_schema import Inventory  # with pyarrow, which the other verbs do without

    return known_owner(project, Inventory.open(project.inventory, outdated=True), dataset)


def release_hold(
    project: Project,
    hold_id: str,
    *,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """End a hold; policies act on what it covered again."""
    context = quiet(context, as_of=as_of)
    ledger, now = open_for_writing(project, context)
    if dry_run:
        with ledger.database.reader() as state:
            hold = state.get_hold(hold_id)
            return _told(hold, state.actor_name(hold.owner))
    with ledger.writing() as step:
        who = step.state.actor(context.actor)
        hold = step.state.release_hold(hold_id, actor=who, at=now)
        step.append(HoldReleased(at=now, hold=hold.id, actor=who))
        told = _told(hold, step.state.actor_name(hold.owner))
    if hold.scope is HoldScope.SUBJECT:
        from ebbtide.erasure.held_people import destroy_released

        destroy_released(ledger)
    return told


def list_holds(project: Project) -> list[dict[str, Any]]:
    """Every active hold."""
    with open_state(project).reader() as state:
        return [_told(hold, state.actor_name(hold.owner)) for hold in state.holds()]


def _told(hold: Hold, owner: str) -> dict[str, Any]:
    placed = _row(
        hold.scope, owner, hold.reason, dataset=hold.dataset, first_day=hold.first_day, last_day=hold.last_day
    )  # fmt: skip
    released = None if hold.released_at is None else as_text(hold.released_at)
    return placed | {"id": hold.id, "created_at": as_text(hold.created_at), "released_at": released}


def _row(
    scope: HoldScope,
    owner: str,
    reason: str,
    *,
    dataset: str | None = None,
    first_day: date | None = None,
    last_day: date | None = None,
) -> dict[str, Any]:
    """A hold as it is shown before it is placed."""
    return {
        "id": None,
        "scope": str(scope),
        "dataset": dataset,
        "first_day": None if first_day is None else str(first_day),
        "last_day": None if last_day is None else str(last_day),
        "owner": owner,
        "reason": reason,
        "created_at": None,
        "released_at": None,
    }
