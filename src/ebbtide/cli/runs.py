"""`ebbtide runs`: what is at work, how far it is, and how runs ended."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import JsonOption, ProjectOption, open_project
from ebbtide.cli.render import escape

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Runs: how far they are, and stopping them.")


@app.command("list")
def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many, the newest first.")] = 20,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """What runs now, on whatever host, and how the last runs ended."""
    rows = open_project(ctx, project).runs(limit=limit).to_dicts()
    if json:
        render.write_json(rows)
        return
    shown = render.table("id", "verb", "~actor", "state", "~step", ">~done", "since (UTC)", "~summary")
    for row in rows:
        state = f"exit {row['exit_code']}" if row["state"] == "finished" else row["state"]
        names = (row["id"], row["verb"], row["actor"] or "", state, row["step"] or "", _far(row))
        since = row["started_at"][:19].replace("T", " ")
        shown.add_row(*(escape(name) for name in names), since, escape(row["summary"] or ""))
    render.rows(shown, "none: nothing has run yet")


@app.command()
def cancel(
    ctx: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="ID", help="as `runs list` shows it")],
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a run to stop at its next boundary; nothing is left half done, and the next run goes on from there."""
    found = open_project(ctx, project).cancel_run(run_id, context=running.context())
    if json:
        render.write_json(found.to_dict())
    render.note(f"{found.verb} was asked to stop")


def _far(row: dict[str, Any]) -> str:
    if row["done"] is None:
        return ""
    return str(row["done"]) if row["total"] is None else f"{row['done']}/{row['total']}"
