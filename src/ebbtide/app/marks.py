"""`ebbtide marks` and `unmarks`, and rescues by pattern: what a person does who marked too much."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ebbtide.app.datasets import known_names, parse_object
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.state import open_state
from ebbtide.app.unmark import entry_of
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.entries import UnmarkReleased
from ebbtide.model.durations import Duration, add
from ebbtide.model.ids import object_name
from ebbtide.model.times import as_text
from ebbtide.plan.select import some_table, table_pattern
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.state.values import Mark, Unmark


def list_marks(
    project: Project, *, select: Sequence[str] = (), due: Duration | None = None, now: datetime
) -> list[dict[str, Any]]:
    """Every open mark; those of some tables, or those whose grace ends within `due`. The next to go comes first."""
    with open_state(project).reader() as state:
        marks = sorted(state.marks(), key=lambda mark: (mark.grace_until, mark.key.dataset, mark.key.object))
    until = None if due is None else add(now, due)
    chosen = _tables(project, select) if select else None
    return [
        _told(mark, now)
        for mark in marks
        if (until is None or mark.grace_until <= until) and (chosen is None or chosen.match(mark.key.dataset))
    ]


def _tables(project: Project, select: Sequence[str]) -> re.Pattern[str]:
    """What is selected, each pattern of which must match a table, or one that is gone."""
    known = known_names(project, Inventory.open(project.inventory, outdated=True))
    for name in select:
        some_table(name, known)
    return table_pattern(select)


def list_unmarks(project: Project, *, now: datetime) -> list[dict[str, Any]]:
    """Every object that a person rescued and nobody released."""
    with open_state(project).reader() as state:
        return [
            {
                "dataset": pin.dataset, "object": pin.object, "until": _text(pin.until), "reason": pin.reason or None,
                "actor": state.actor_name(pin.actor), "created_at": as_text(pin.created_at),
            }
            for pin in state.unmarks()
            if pin.active(now)
        ]  # fmt: skip


def unmark_marked(
    project: Project,
    names: Sequence[str],
    *,
    reason: str = "",
    until: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Rescue every marked object that one of the names or patterns is: one act, and an entry of the ledger for each.

    Objects whose removal has begun are left, and named under `begun`.
    """
    context = quiet(context)
    ledger, now = open_for_writing(project, context)
    if until is not None and until <= now:
        raise InputError("an unmark that has expired already", hint="give a later --until, or none")
    with ledger.database.reader() as state:
        chosen = _chosen(names, state.marks())
        if dry_run:
            return _answer(until, [(mark.key.dataset, mark.key.object, [mark]) for mark in chosen], [])
    with ledger.writing() as step:
        who = step.state.actor(context.actor)
        # What was marked meanwhile is rescued, too: the names are looked up in the transaction that rescues.
        objects = list(dict.fromkeys((m.key.dataset, m.key.object) for m in _chosen(names, step.state.marks())))
        pins, begun = step.state.unmark_all(objects, actor=who, reason=reason, until=until, at=now)
        condemned = step.state.condemned()
        for pin, closed in pins:
            step.append(entry_of(pin, closed, who, condemned, at=now))
    return _answer(until, [(pin.dataset, pin.object, closed) for pin, closed in pins], begun)


def release_unmarked(
    project: Project, names: Sequence[str], *, dry_run: bool = False, context: RunContext | None = None
) -> dict[str, Any]:
    """Let policies act again on every rescued object that one of the names or patterns is."""
    context = quiet(context)
    ledger, now = open_for_writing(project, context)
    with ledger.database.reader() as state:
        pins = _chosen_pins(names, (pin for pin in state.unmarks() if pin.active(now)))
    if not dry_run:
        with ledger.writing() as step:
            who = step.state.actor(context.actor)
            for dataset, object_id in dict.fromkeys((pin.dataset, pin.object) for pin in pins):
                for pin in step.state.release_unmark(dataset, object_id, actor=who, at=now):
                    step.append(UnmarkReleased(at=now, unmark=pin.id, actor=who))
    return {"objects": [{"dataset": pin.dataset, "object": pin.object, "released": True} for pin in pins]}


def is_pattern(name: str) -> bool:
    """Whether somebody named several objects by one text."""
    return "*" in name


def _chosen(names: Sequence[str], marks: Iterable[Mark]) -> list[Mark]:
    found = list(marks)
    chosen: dict[str, Mark] = {}
    for name in names:
        matching = _matching(name)
        taken = [m for m in found if matching.match(object_name(m.key.dataset, m.key.target, m.key.object))]
        if not taken:
            raise InputError(f"nothing is marked that {name!r} names", hint="`ebbtide marks` lists what is")
        chosen |= {mark.id: mark for mark in taken}
    return sorted(chosen.values(), key=lambda mark: (mark.key.dataset, mark.key.object, mark.key.target))


def _chosen_pins(names: Sequence[str], pins: Iterable[Unmark]) -> list[Unmark]:
    found = sorted(pins, key=lambda pin: (pin.dataset, pin.object))
    chosen: dict[str, Unmark] = {}
    for name in names:
        # An unmark pins the native id for every target: whatever target was written matches.
        dataset, _, rest = name.partition("#")
        if not is_pattern(name):
            parse_object(name)
        matching = _matching(f"{dataset}#*:{rest.partition(':')[2] or '*'}")
        taken = [pin for pin in found if matching.match(object_name(pin.dataset, "any", pin.object))]
        if not taken:
            raise InputError(f"nothing is unmarked that {name!r} names", hint="`ebbtide unmarks` lists what is")
        chosen |= {pin.id: pin for pin in taken}
    return list(chosen.values())


def _matching(name: str) -> re.Pattern[str]:
    """A table's pattern, as everywhere; behind `#` a star stands for anything, and without it everything is meant.

    What is no pattern names one object: a table alone might be meant as one, and is refused.
    """
    if not is_pattern(name):
        parse_object(name)
    dataset, hash_, rest = name.partition("#")
    objects = ".*".join(map(re.escape, rest.split("*"))) if hash_ else ".*"
    return re.compile(table_pattern([dataset]).pattern.removesuffix(r"\Z") + "#" + objects + r"\Z", re.DOTALL)


def _told(mark: Mark, now: datetime) -> dict[str, Any]:
    return {
        "dataset": mark.key.dataset, "target": mark.key.target, "object": mark.key.object, "policy": mark.policy,
        "because": mark.because, "rows": mark.rows, "bytes": mark.bytes, "marked_at": as_text(mark.marked_at),
        "grace_until": as_text(mark.grace_until), "past_grace": mark.grace_until <= now,
        "waits_for": list(mark.waits_for),
    }  # fmt: skip


def _answer(
    until: datetime | None, objects: Iterable[tuple[str, str, Iterable[Mark]]], begun: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "until": _text(until),
        "objects": [
            {"dataset": dataset, "object": object_id, "closed_marks": sorted(mark.key.target for mark in marks)}
            for dataset, object_id, marks in objects
        ],
        "begun": [{"dataset": dataset, "object": object_id} for dataset, object_id in begun],
    }


def _text(time: datetime | None) -> str | None:
    return None if time is None else as_text(time)
