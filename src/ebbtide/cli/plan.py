"""`plan` and `explain`: parse, call `app`, render."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import JsonOption, ProjectOption, SelectOption, UnsafeOption, open_project, time_or_now
from ebbtide.cli.render import escape
from ebbtide.errors import InputError
from ebbtide.model.ids import object_name
from ebbtide.model.times import as_text

if TYPE_CHECKING:
    from ebbtide.app.results.plan import Explanation, PlanChange, PlanLine

_AsOf = Annotated[str | None, typer.Option("--as-of", help="Plan as if it were then: a date or an instant, UTC.")]
_All = Annotated[bool, typer.Option("--all", help="Every object, also those that stay as they are.")]
_MOST_CHANGES = 50
_GOING_ON = ("mark", "sweep")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(plan)
    app.command()(show)
    app.command()(explain)


def plan(
    ctx: typer.Context,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the plan here, and its files to FILE.files.")
    ] = None,
    select: SelectOption = None,
    every: _All = False,
    diff: Annotated[Path | None, typer.Option("--diff", help="What is decided otherwise than in this plan.")] = None,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 10 where there is something to mark or to sweep.")
    ] = False,
    unsafe: UnsafeOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Show what would be marked and swept, and why. Exit 3 past a limit, 4 where something could not be read.

    With -o, what is decided otherwise than in the plan that FILE held before is told, too.
    """
    if output is not None and select:
        raise InputError("a plan file is the whole plan", hint="leave out --select, or -o")
    if output is not None:
        from ebbtide.app.plan import refuse_no_folder

        refuse_no_folder(output)  # before a large lake is planned
    chosen, before = tuple(select or ()), diff or (output if output is not None and output.exists() else None)
    tide, at = open_project(ctx, project, unsafe=unsafe), time_or_now(as_of)
    with running.shown("planning"):
        made = tide.plan(as_of=at)
    with made as planned:
        changed = None if before is None else planned.since(before)
        if output is not None:
            planned.write(output)
            render.note(f"wrote {output} and {output}.files")
        if json:
            render.write_json(planned.to_dict(*chosen))
        elif output is None:
            _show(planned.summary(*chosen), _looked_at(planned.rows(*chosen), every))
        if changed is not None and not json:
            _show_changes(changed, before)
        _tell_age(planned.scanned, planned.unread)
        _tell(planned.plan, "of the whole plan: " if chosen else "")
        if planned.unread or planned.plan.over:
            raise typer.Exit(4 if planned.unread else 3)
        if detailed and any(line.counts.get(verb) for line in planned.summary(*chosen) for verb in _GOING_ON):
            raise typer.Exit(10)


def show(
    file: Annotated[Path, typer.Argument(help="A plan, as `plan -o` wrote it.")],
    select: SelectOption = None,
    every: _All = False,
    json: JsonOption = False,
) -> None:
    """Show a saved plan. It needs no project."""
    from ebbtide.app.plan import shown_plan

    saved = shown_plan(file, select or ())
    if json:
        render.write_json(saved.to_dict())
        return
    _show(saved.summary, _looked_at(iter(saved.objects), every))
    render.note(f"{file} is of {as_text(saved.as_of)}; {saved.digest}")


def _looked_at(rows: Iterable[Mapping[str, Any]], every: bool) -> Iterator[Mapping[str, Any]]:
    """What changes: what is marked or goes now, and marks that are sent back. Not what stays as it is."""
    for row in rows:
        is_sent_back = row["decision"] in ("held", "unmarked") and row.get("grace_until") is not None
        if every or row["decision"] in _GOING_ON or is_sent_back:
            yield row


def _show(lines: Iterable[PlanLine], rows: Iterable[Mapping[str, Any]]) -> None:
    console = render.out()
    shown = render.table(
        "policy", "table", "what", "objects", ">~rows leave", ">frees", "~kept by", "~oldest", "~first can go (UTC)"
    )
    for line in lines:
        counts = ", ".join(f"{line.counts[name]} {name}" for name in _ORDER if line.counts.get(name))
        kept = ", ".join(f"{name}: {render.size(size)}" for name, size in line.kept_by.items())
        shown.add_row(
            escape(line.policy or "-"), escape(line.dataset), line.target, counts,
            "?" if line.rows is None else str(line.rows), render.size(line.bytes), escape(kept),
            _moment(line.oldest), _moment(line.first_sweep),
        )  # fmt: skip
    if shown.rows:
        console.print(shown)
    objects = render.table(
        "object", "decision", "~policy", "~because", "~protected by", "~leaves", ">frees", "~kept by"
    )
    for row in rows:
        objects.add_row(
            escape(object_name(row["dataset"], row["target"], row["object"])), row["decision"],
            escape(row["policy"] or ""), escape(_why(row)), escape(", ".join(row["protected_by"])),
            escape(", ".join(_leaves(row)) or "?"), render.size(row["bytes"]), escape(", ".join(_kept_by(row))),
        )  # fmt: skip
    if objects.rows:
        console.print()
        console.print(objects)


_ORDER = ("sweep", "mark", "marked", "wait", "held", "unmarked", "keep")


def _moment(text: str | None) -> str:
    return (text or "")[:16].replace("T", " ")


def _show_changes(changed: Sequence[PlanChange], before: Path | None) -> None:
    render.note(f"{len(changed)} objects are decided otherwise than in {before}")
    shown = render.table("object", "was", "is")
    for change in changed[:_MOST_CHANGES]:
        shown.add_row(escape(change.name), change.before or "not there", change.after or "gone")
    if shown.rows:
        render.err().print(shown)
    if len(changed) > _MOST_CHANGES:
        render.note(f"and {len(changed) - _MOST_CHANGES} more")


def _why(row: Mapping[str, Any]) -> str:
    waits = f" (waits for {', '.join(row['waits_for'])})" if row["waits_for"] else ""
    return f"{row['because']}{waits}"


def _leaves(row: Mapping[str, Any]) -> list[str]:
    """What nobody reads any more, head by head; nothing where only the sweep will count it."""
    if row["leaves"] is None:
        return []
    return [
        f"{branch}: {'?' if left['rows'] is None else left['rows']} rows, {render.size(left['bytes'])}"
        for branch, left in row["leaves"].items()
    ] or ["no head"]


def _kept_by(row: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {render.size(kept)}" for name, kept in (row["kept_by"] or {}).items()]


def _tell_age(age: str, unread: Iterable[str]) -> None:
    """What a plan is worth depends on when the lake was last read, and on what could not be."""
    from ebbtide.app.world import WAY_OUT

    render.note(age)
    for text in unread:
        render.complain(f"not read: {text}", WAY_OUT)


def _tell(made: Any, of: str) -> None:
    render.warn(made.warnings)
    for over in made.over:
        render.complain(f"{over.dataset or 'the lake'}: {over.text}", "look at the plan; raise limits in ebbtide.yml")
    counted = ", ".join(f"{count} {name}" for name, count in made.counts.items() if count)
    going = made.totals["mark"]
    render.note(
        f"{of}{counted or 'no objects'}; {going.files} files, {render.size(going.bytes)} to mark; {made.digest}"
    )


def explain(
    ctx: typer.Context,
    object_: Annotated[str | None, typer.Argument(metavar="[OBJECT]", help="dataset#target:id")] = None,
    select: SelectOption = None,
    project: ProjectOption = None,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Show every policy, every protection and the decision for one object, or for the first that --select takes."""
    from datetime import UTC, datetime

    from ebbtide.app.plan import inventory_age

    if (object_ is None) == (not select):
        raise InputError("name an object, or select some", hint="as in lake.raw.events#versions:42, or --select")
    tide, at = open_project(ctx, project), time_or_now(as_of)
    with running.shown("planning"):
        one = None if object_ is None else tide.explain(object_, as_of=at)
        several = None if one is not None else tide.explain_selected(*(select or ()), as_of=at)
    _tell_age(*inventory_age(tide.project, now=datetime.now(UTC)))
    if json:
        render.write_json((one or several).to_dict())  # type: ignore[union-attr]
        return
    if one is not None:
        _explain(one)
    if several is None:
        return
    for number, each in enumerate(several.objects):
        if number:
            render.out().print()
        render.out().print(escape(object_name(each.dataset, each.target, each.object)), soft_wrap=True)
        _explain(each)
    more = f"; {several.more} more are selected: narrow it, or `ebbtide plan --all`" if several.more else ""
    render.note(f"{len(several.objects)} explained{more}")


def _explain(explanation: Explanation) -> None:
    shown = render.table("policy", "outcome", "because")
    for each in explanation.policies:
        shown.add_row(escape(each.policy), each.outcome, escape(each.because))
    console = render.out()
    console.print(shown)
    planned = explanation.planned
    if planned is None:
        console.print("no policy owns it, or there is no such object: nothing is done")
        return
    console.print(f"decision: {planned['decision']} ({escape(_why(planned))})", soft_wrap=True)
    for name in planned["protected_by"]:
        console.print(f"  protected by {escape(name)}", soft_wrap=True)
    if planned["leaves"]:
        console.print(f"  leaves {escape(', '.join(_leaves(planned)))}", soft_wrap=True)
        console.print(f"  frees {render.size(planned['bytes'])}", soft_wrap=True)
    for line in _kept_by(planned):
        console.print(f"  kept by {escape(line)}", soft_wrap=True)
