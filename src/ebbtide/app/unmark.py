"""`ebbtide unmark OBJECT`: rescue an object from every target, or release it again (spec §1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ebbtide.app.datasets import known_object, known_owner, parse_object
from ebbtide.app.ledger import open_for_writing
from ebbtide.config import Project
from ebbtide.config.policies import CHUNKS
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.entries import Unmarked, UnmarkReleased, salted
from ebbtide.ledger.redaction import dataset_in_ledger
from ebbtide.model.times import as_text
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.state.values import Condemnation, Mark, Unmark


def unmark_object(
    project: Project,
    text: str,
    *,
    reason: str = "",
    until: datetime | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Pin the object's native id: no policy removes it, as whatever target, until it is released or `until` comes."""
    context = quiet(context, as_of=as_of)
    dataset, target, object_id = _markable(text)
    inventory = Inventory.open(project.inventory, outdated=True)
    known_owner(project, inventory, dataset)
    ledger, now = open_for_writing(project, context)
    if until is not None and until <= now:
        raise InputError("an unmark that has expired already", hint="give a later --until, or none")
    with ledger.database.reader() as state:
        marked = {mark.key.object for mark in state.marks(datasets=[dataset], only_open=False)}
    if object_id not in marked:
        known_object(inventory, dataset, target, object_id)
    if dry_run:
        with ledger.database.reader() as state:
            marks = [m for m in state.marks(datasets=[dataset]) if m.key.object == object_id]
        return _told(dataset, target, object_id, until, [m.key.target for m in marks])
    with ledger.writing() as step:
        who = step.state.actor(context.actor)
        pin, closed = step.state.unmark(dataset, object_id, actor=who, reason=reason, until=until, at=now)
        step.append(entry_of(pin, closed, who, step.state.condemned(), at=now))
    return _told(dataset, target, object_id, until, [mark.key.target for mark in closed])


def _markable(text: str) -> tuple[str, str, str]:
    dataset, target, object_id = parse_object(text)
    if target == CHUNKS:
        raise InputError(f"{text} has no mark: chunks go without", hint=f"`ebbtide hold add {dataset}` keeps them")
    return dataset, target, object_id


def release_object(
    project: Project,
    text: str,
    *,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Let policies act on the object again."""
    context = quiet(context, as_of=as_of)
    dataset, target, object_id = parse_object(text)
    ledger, now = open_for_writing(project, context)
    if dry_run:
        with ledger.database.reader() as state:
            pins = [p for p in state.unmarks([dataset]) if p.object == object_id and p.active(now)]
        if not pins:
            raise InputError("the object is not unmarked", hint="`history` shows the state of each transaction")
    else:
        with ledger.writing() as step:
            who = step.state.actor(context.actor)
            for pin in step.state.release_unmark(dataset, object_id, actor=who, at=now):
                step.append(UnmarkReleased(at=now, unmark=pin.id, actor=who))
    return {"dataset": dataset, "target": target, "object": object_id, "released": True}


def entry_of(
    pin: Unmark, closed: Iterable[Mark], who: str, condemned: Collection[Condemnation], *, at: datetime
) -> Unmarked:
    """What the ledger says of it. What a person rescues may be a partition of a person: it holds the salted hash."""
    return Unmarked(
        at=at, unmark=pin.id, dataset=dataset_in_ledger(condemned, pin.dataset), object=salted(pin.salt, pin.object),
        actor=who, reason=salted(pin.salt, pin.reason), until=pin.until, marks=tuple(mark.id for mark in closed),
    )  # fmt: skip


def _told(dataset: str, target: str, object_id: str, until: datetime | None, closed: list[str]) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "target": target,
        "object": object_id,
        "until": None if until is None else as_text(until),
        "closed_marks": sorted(closed),
    }
