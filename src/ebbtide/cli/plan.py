"""`plan` and `explain`: parse, call `app`, render."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ebbtide.cli import render
from ebbtide.cli.options import JsonOption, ProjectOption, UnsafeOption, open_project, time_or_now

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
    """Show what would be marked and swept, and why. Exit 3 where a limit would be broken."""
    from ebbtide.app.plan import as_json, make_plan, write_plan

    tide = open_project(ctx, project, unsafe=unsafe)
    with make_plan(tide.project, now=time_or_now(as_of)) as made:
        if output is not None:
            write_plan(made, output)
            render.note(f"wrote {output} and {output}.files")
        if json:
            render.write_json(as_json(made))
        elif output is None:
            shown = render.table(
                "dataset", "object", "decision", "policy", "because", "protected by", ">rows", ">bytes"
            )
            for row in made.rows():
                if row["decision"] in _QUIET and not row["protected_by"]:
                    continue
                shown.add_row(
                    escape(row["dataset"]), escape(f"{row['target']}:{row['object']}"), row["decision"],
                    escape(row["policy"] or ""), escape(_why(row)), escape(", ".join(row["protected_by"])),
                    "?" if row["rows"] is None else str(row["rows"]), render.size(row["bytes"]),
                )  # fmt: skip
            render.out().print(shown)
        _tell_age(tide.project)
        _tell(made)
        if made.over:
            raise typer.Exit(3)


def _why(row: dict[str, Any]) -> str:
    waits = f" (waits for {', '.join(row['waits_for'])})" if row["waits_for"] else ""
    return f"{row['because']}{waits}"


def _tell_age(project: Any) -> None:
    """What a plan is worth depends on when the lake was last read, and on what could not be."""
    from datetime import UTC, datetime

    from ebbtide.app.plan import told_of

    age, unread = told_of(project, now=datetime.now(UTC))
    render.note(age)
    render.warn(f"not read: {text}" for text in unread)


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
    from ebbtide.app.explain import explain_object

    loaded = open_project(ctx, project).project
    found = explain_object(loaded, object_, now=time_or_now(as_of))
    _tell_age(loaded)
    if json:
        render.write_json(found)
        return
    shown = render.table("policy", "outcome", "because")
    for line in found["policies"]:
        shown.add_row(escape(line["policy"]), line["outcome"], escape(line["because"]))
    console = render.out()
    console.print(shown)
    planned = found["planned"]
    if planned is None:
        console.print("no policy owns it, or there is no such object: nothing is done")
        return
    console.print(f"decision: {planned['decision']} ({escape(_why(planned))})", soft_wrap=True)
    for name in planned["protected_by"]:
        console.print(f"  protected by {escape(name)}", soft_wrap=True)
