"""`plan` and `explain`: parse, call `app`, render."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli import render
from ebbtide.cli.options import JsonOption, ProjectOption, UnsafeOption, open_project, time_or_now
from ebbtide.cli.render import escape

_AsOf = Annotated[str | None, typer.Option("--as-of", help="Plan as if it were then: a date or an instant, UTC.")]
_QUIET = ("keep",)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(plan)
    app.command()(explain)


def plan(
    ctx: typer.Context,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the plan here, and its files to FILE.files.")
    ] = None,
    unsafe: UnsafeOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Show what would be marked and swept, and why. Exit 3 past a limit, 4 where something could not be read."""
    with open_project(ctx, project, unsafe=unsafe).plan(as_of=time_or_now(as_of)) as found:
        made, unread = found.plan, found.unread
        if output is not None:
            found.write(output)
            render.note(f"wrote {output} and {output}.files")
        if json:
            render.write_json(found.to_dict())
        elif output is None:
            shown = render.table(
                "dataset", "object", "decision", "policy", "because", "protected by", "leaves", ">frees", "kept by"
            )
            for row in made.rows():
                if row["decision"] in _QUIET and not row["protected_by"]:
                    continue
                shown.add_row(
                    escape(row["dataset"]), escape(f"{row['target']}:{row['object']}"), row["decision"],
                    escape(row["policy"] or ""), escape(_why(row)), escape(", ".join(row["protected_by"])),
                    escape(", ".join(_leaves(row)) or "?"), render.size(row["bytes"]),
                    escape(", ".join(_kept_by(row))),
                )  # fmt: skip
            render.out().print(shown)
        _tell_age(found.scanned, unread)
        _tell(made)
        if unread or made.over:
            raise typer.Exit(4 if unread else 3)


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


def _tell(made: Any) -> None:
    render.warn(made.warnings)
    for over in made.over:
        render.complain(f"{over.dataset or 'the lake'}: {over.text}", "look at the plan; raise limits in ebbtide.yml")
    counted = ", ".join(f"{count} {name}" for name, count in made.counts.items() if count)
    going = made.totals["mark"]
    render.note(f"{counted or 'no objects'}; {going.files} files, {render.size(going.bytes)} to mark; {made.digest}")


def explain(
    ctx: typer.Context,
    object_: Annotated[str, typer.Argument(metavar="OBJECT", help="dataset#target:id")],
    project: ProjectOption = None,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Show every policy, every protection and the decision for one object."""
    from datetime import UTC, datetime

    from ebbtide.app.plan import inventory_age

    tide = open_project(ctx, project)
    found = tide.explain(object_, as_of=time_or_now(as_of))
    _tell_age(*inventory_age(tide.project, now=datetime.now(UTC)))
    if json:
        render.write_json(found.to_dict())
        return
    shown = render.table("policy", "outcome", "because")
    for each in found.policies:
        shown.add_row(escape(each.policy), each.outcome, escape(each.because))
    console = render.out()
    console.print(shown)
    planned = found.planned
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
