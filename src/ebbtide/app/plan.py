"""`ebbtide plan`: what would be marked and swept, and why. Writes nothing but the file that it is asked for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.app.hot_chunks import when_seen
from ebbtide.app.world import listing_before, needs_listing, not_read, read_inputs, read_state, some_policies
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.times import as_text, parse_time
from ebbtide.private import private_file, writing

if TYPE_CHECKING:
    from ebbtide.app.results.plan import SavedPlan
    from ebbtide.plan.choice import Choice
    from ebbtide.plan.plan import Plan


def make_plan(project: Project, *, now: datetime) -> Plan:
    """Plan the whole project on its last inventory, at `now`."""
    policies, snapshot = some_policies(project, hot=True), read_state(project)
    inventory = Inventory.open(project.inventory)
    listing = listing_before(project, inventory)
    made = read_inputs(project, policies, snapshot, inventory, listing, now=now).plan(now=now)
    unlisted = listing is None and needs_listing(policies, snapshot)
    return replace(made, warnings=(*made.warnings, UNLISTED)) if unlisted else made


UNLISTED = "the storage was not listed before the last scan, so this plan has no orphans: run `ebbtide orphans list`"


def inventory_age(project: Project, *, now: datetime) -> tuple[str, tuple[str, ...]]:
    """How old the inventory is that a plan is made from, and what could not be read then (invariant 8)."""
    inventory = Inventory.open(project.inventory)
    scanned_at = inventory.current.scanned_at or now
    age = max(0, int((now - scanned_at).total_seconds()))
    hours, minutes = age // 3600, age // 60
    since = f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{minutes} min"
    told = [f"as scanned at {as_text(scanned_at)}, {since} ago", when_seen(project)]
    return "; ".join(filter(None, told)), not_read(project, inventory, now=now)


def choice_of(select: Sequence[str], policies: Iterable[str], tables: Collection[str] | None = None) -> Choice:
    """What `--select` asks for, held against the policies that there are, and the tables where they are known."""
    from ebbtide.plan.choice import Choice

    return Choice.parse(select, policies=policies, tables=tables)


def as_json(plan: Plan, choice: Choice | None = None) -> dict[str, Any]:
    """The plan in the shape of design.md, with the codes of its reasons and a summary, or what a choice takes of it."""
    from ebbtide.plan.choice import EVERYTHING
    from ebbtide.plan.summary import line_as_json, summarise

    choice = choice or EVERYTHING
    summary = [line_as_json(line) for line in summarise(plan, choice)]
    return {**plan.head(), "summary": summary, "objects": list(filter(choice.takes(), plan.rows(codes=True)))}


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan file: what a person looked at and may ask for."""

    path: Path
    as_of: datetime
    digest: str
    objects: list[Any]
    files: list[str] | None
    """The lines of `FILE.files`; None where only the plan itself was handed over."""


def read_plan(path: Path) -> PlanFile:
    names = path.with_name(path.name + ".files")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        as_of = parse_time(found["as_of"])
        files = names.read_text(encoding="utf-8").split("\n")[:-1] if names.exists() else None
        return PlanFile(path, as_of, str(found["digest"]), list(found["objects"]), files)
    except OSError as error:
        raise InputError(f"the plan {path} cannot be read: {error.strerror}", hint=_MAKE_ONE) from None
    except (InputError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{path} is not a plan", hint=_MAKE_ONE) from None


def shown_plan(path: Path, select: Sequence[str]) -> SavedPlan:
    """A saved plan as people look at it."""
    from ebbtide.app.results.plan import PlanLine, SavedPlan
    from ebbtide.app.results.shown import ResultRows
    from ebbtide.plan.summary import lines_of

    asked = read_plan(path)
    try:
        policies = {row["policy"] for row in asked.objects if row["policy"]}
        tables = {row["dataset"] for row in asked.objects}
        rows = list(filter(choice_of(select, policies, tables).takes(), asked.objects))
        lines = lines_of(rows)
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is not a plan", hint=_MAKE_ONE) from None
    shown = ResultRows(PlanLine(*(getattr(line, name) for name in PlanLine.__slots__)) for line in lines)
    return SavedPlan(asked.as_of, asked.digest, shown, tuple(rows))


_MAKE_ONE = "make one with `ebbtide plan -o FILE`"


def write_plan(plan: Plan, path: Path) -> None:
    """Write the plan to `path`, and the files that it names, sorted, a file a line, to `path.files`.

    Object by object, because a plan can be larger than memory. Both are for their owner only, where they are new.
    """
    refuse_no_folder(path)
    with writing(path, hint="name a file that can be written", asked=True):
        names = path.with_name(path.name + ".files")
        with private_file(names).open("w", encoding="utf-8") as out:
            out.writelines(f"{name}\n" for name in plan.paths())
        with private_file(path).open("w", encoding="utf-8") as out:
            out.writelines(_lines(plan))


def refuse_no_folder(path: Path) -> None:
    """A folder that is not there is a mistyped one: none is made for a file that somebody asked for."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: {path.parent} is no folder", hint="make it first, or name another")


def _lines(plan: Plan) -> Iterator[str]:
    head = json.dumps(plan.head(), indent=1, ensure_ascii=False)
    yield head.removesuffix("\n}") + ',\n "objects": ['
    for number, row in enumerate(plan.rows()):
        yield ("," if number else "") + "\n  " + json.dumps(row, ensure_ascii=False)
    yield "\n ]\n}\n"
