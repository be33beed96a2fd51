"""`ledger log`: parse, call `app`, render."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from ebbtide.cli import render, running
from ebbtide.cli.complete import tables
from ebbtide.cli.options import JsonOption, ProjectOption, open_project
from ebbtide.cli.render import escape


def log(
    ctx: typer.Context,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="catalog.namespace.table", autocompletion=tables)
    ] = None,
    request: Annotated[str | None, typer.Option("--request", help="An erasure request's id.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="mark, act.intent, hold, …; may be repeated.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="From a date or an instant on, UTC.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Before a date or an instant, UTC.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """List what was done, oldest first, held against what was signed. Exit 1 where the ledger was changed."""
    from ebbtide.app.ledger_log import LogFilter, read_log

    asked = LogFilter.of(dataset=dataset, request=request, kinds=kind or (), since=since, until=until)
    with running.shown("reading the ledger"):
        entries = list(read_log(open_project(ctx, project).project, asked))
    if json:
        render.write_json(entries)
        return
    shown = render.table(">entry", "when (UTC)", "kind", "~says")
    for row in entries:
        says = ", ".join(
            f"{name} {text if isinstance(text, str) else json_.dumps(text)}" for name, text in row["says"].items()
        )
        when = (row["at"] or "")[:19].replace("T", " ")
        shown.add_row(str(row["index"]), when, row["kind"] or "(its body was pruned)", escape(says))
    if shown.rows:
        render.out().print(shown)
    render.note(f"{len(entries)} entries; `ebbtide ledger entry INDEX` has the bytes, `ledger prove INDEX` the proof")
