"""`marks`, `unmark` and `unmarks`: parse, call `app`, render."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project, time_of
from ebbtide.cli.render import escape
from ebbtide.model.ids import encode_part, object_name

_AsOf = Annotated[
    str | None, typer.Option("--as-of", help="The time that counts; only where the project's clock is simulated.")
]


def marks(
    ctx: typer.Context,
    select: Annotated[list[str] | None, typer.Option("--select", help="lake.raw.*; may be repeated.")] = None,
    due: Annotated[str | None, typer.Option("--due", help="Whose grace ends within this time: 12h, 3d.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """List what is marked, the next to go first. `unmark` takes the names as they stand here."""
    from ebbtide.app.marks import list_marks
    from ebbtide.model.durations import parse_duration

    within = None if due is None else parse_duration(due, hours=True)
    loaded = open_project(ctx, project).project
    listed = list_marks(loaded, select=select or (), due=within, now=datetime.now(UTC))
    if json:
        render.write_json(listed)
        return
    shown = render.table("object", "~policy", ">bytes", "grace until (UTC)", "~waits for")
    for row in listed:
        name = object_name(row["dataset"], row["target"], row["object"])
        until = row["grace_until"][:16].replace("T", " ") + (" (over)" if row["past_grace"] else "")
        waits = escape(", ".join(row["waits_for"]))
        shown.add_row(escape(name), escape(row["policy"]), render.size(row["bytes"]), until, waits)
    if shown.rows:
        render.out().print(shown)
    over = sum(row["past_grace"] for row in listed)
    render.note(f"{len(listed)} marked, {over} past their grace, {render.size(sum(row['bytes'] for row in listed))}")


def unmark(
    ctx: typer.Context,
    objects: Annotated[
        list[str], typer.Argument(metavar="OBJECT...", help="dataset#target:id, or a pattern of what is marked.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why it is kept; stays in the state.")] = "",
    until: Annotated[
        str | None, typer.Option("--until", help="A date or an instant; without it until released.")
    ] = None,
    release: Annotated[bool, typer.Option("--release", help="Let policies act on it again.")] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """Rescue objects from every target until they are released, or until a time.

    Patterns: 'lake.raw.*', 'lake.raw.events#versions:*', '**'. Exit 3 where the removal of some has begun already.
    """
    from ebbtide.app.marks import is_pattern, release_unmarked, unmark_marked

    tide, context = open_project(ctx, project), running.context(as_of=time_of(as_of))
    answer: Any
    if len(objects) == 1 and not is_pattern(objects[0]):
        if release:
            answer = tide.release(objects[0], dry_run=dry_run, context=context)
            said = "policies act on it again"
        else:
            answer = tide.unmark(objects[0], reason=reason, until=time_of(until), dry_run=dry_run, context=context)
            closed = ", ".join(answer.closed_marks)
            said = (
                (f"its mark as {closed} is closed" if closed else "it was not marked")
                + "; it stays until "
                + (answer.until or "it is released")
            )
        if json:
            render.write_json(answer.to_dict())
        render.note(("would be: " if dry_run else "") + said)
        return
    if release:
        answer = release_unmarked(tide.project, objects, dry_run=dry_run, context=context)
        said = "policies act on them again"
    else:
        answer = unmark_marked(
            tide.project, objects, reason=reason, until=time_of(until), dry_run=dry_run, context=context
        )
        said = "they stay until " + (answer["until"] or "they are released")
    if json:
        render.write_json(answer)
    else:
        _show(answer["objects"])
    render.note(("would be: " if dry_run else "") + f"{len(answer['objects'])} objects, {said}")
    for row in answer.get("begun", ()):
        name = f"{row['dataset']}#{encode_part(row['object'])}"
        render.complain(f"{name}: its removal has begun", "place a hold on what is left")
    if answer.get("begun"):
        raise typer.Exit(3)


def unmarks(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """List what people rescued and nobody released."""
    from ebbtide.app.marks import list_unmarks

    pins = list_unmarks(open_project(ctx, project).project, now=datetime.now(UTC))
    if json:
        render.write_json(pins)
        return
    shown = render.table("object", "until (UTC)", "~who", "~reason", "~since (UTC)")
    for row in pins:
        until = (row["until"] or "released")[:16].replace("T", " ")
        since = row["created_at"][:16].replace("T", " ")
        name = f"{row['dataset']}#*:{encode_part(row['object'])}"
        shown.add_row(escape(name), until, escape(row["actor"]), escape(row["reason"] or ""), since)
    if shown.rows:
        render.out().print(shown)
    render.note(f"{len(pins)} unmarked")


def _show(objects: list[dict[str, Any]]) -> None:
    shown = render.table("dataset", "object", "was marked as")
    for row in objects:
        closed = ", ".join(row.get("closed_marks", ()))
        shown.add_row(escape(row["dataset"]), escape(row["object"]), closed)
    if shown.rows:
        render.out().print(shown)
