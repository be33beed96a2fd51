"""The verbs of governance: `labels`, `lineage` and `lineage listen`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ebbtide.cli import render, running
from ebbtide.cli.complete import tables
from ebbtide.cli.options import JsonOption, ProjectOption, open_project
from ebbtide.cli.order import Whole
from ebbtide.cli.render import escape


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(labels)
    group = typer.Typer(help="Show lineage, or listen for it.", rich_markup_mode=None)
    group.callback(invoke_without_command=True)(lineage)
    group.command()(listen)
    app.add_typer(group, name="lineage", cls=Whole)


_NO_DATASET = "none: the last scan found no dataset"


def labels(
    ctx: typer.Context,
    table: Annotated[
        str | None, typer.Argument(help="catalog.namespace.table; all tables when left out", autocompletion=tables)
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show labels: of every table, or of one with the way that each label took. Exit 2 where a file cannot be read."""
    tide = open_project(ctx, project)
    with running.shown("tracing lineage"):
        answer = (tide.labels() if table is None else tide.explain_labels(table)).to_dict()
    if json:
        render.write_json(answer)
    elif table is None:
        shown = render.table("table", "labels", "schedule", "made of")
        for row in answer["tables"]:
            names = (row["table_id"], ", ".join(row["labels"]), row["schedule"] or "", row["depends"] or "")
            shown.add_row(*(escape(name) for name in names))
        render.rows(shown, _NO_DATASET)
    else:
        _show_labels(answer)
    _tell(answer["problems"])


def _show_labels(answer: dict[str, Any]) -> None:
    console = render.out()
    for name, part in ((answer["table"], answer), *((c["column"], c) for c in answer["columns"])):
        if not part["why"]:
            continue
        shown = render.table("label", "how", "because", "path", title=escape(name))
        for why in part["why"]:
            path = " → ".join(step["name"] for step in why["path"])
            shown.add_row(*(escape(text) for text in (why["label"], why["how"], why["because"], path)))
        console.print(shown)
    plain = [column["column"] for column in answer["columns"] if not column["labels"]]
    if not answer["labels"]:
        console.print(f"{escape(answer['table'])} has no label")
    if plain:
        render.note(f"columns without a label: {', '.join(plain)}")
    render.note(f"as scanned at {answer['scanned_at']}")


def lineage(
    ctx: typer.Context,
    table: Annotated[str | None, typer.Option(help="Only the edges into and out of this table.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show column lineage with where each edge is known from. Exit 2 where a file cannot be read."""
    ctx.obj = project or ctx.obj
    if ctx.invoked_subcommand is not None:
        return
    with running.shown("tracing lineage"):
        answer = open_project(ctx, project).lineage(table=table).to_dict()
    if json:
        render.write_json(answer)
    else:
        shown = render.table("source", "target", "~kind", "~known from")
        for edge in answer["edges"]:
            kind = f"{edge['kind']}, masking" if edge["masking"] else edge["kind"]
            names = (edge["source_column"], edge["target_column"], kind, edge["provenance"])
            shown.add_row(*(escape(name) for name in names))
        if shown.rows:
            render.out().print(shown)
        render.note(
            f"{len(answer['edges'])} edges from {answer['models']} models and jobs, {answer['traced']} traced anew"
        )
    _tell(answer["problems"])


def listen(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="Where to listen. Beyond loopback a token is asked for.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 5000,
    project: ProjectOption = None,
) -> None:
    """Keep the OpenLineage events that jobs post to /api/v1/lineage, until interrupted.

    With EBBTIDE_LISTEN_TOKEN set, and always beyond loopback, jobs send it as `Authorization: Bearer TOKEN`; where none
    is set, one is made and shown.
    """
    import os
    import secrets
    import socket

    import uvicorn

    from ebbtide.api.lineage import LOOPBACK, is_loopback, lineage_api

    tide = open_project(ctx, project)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen()  # before anybody is told: who posts at once waits, and is not turned away
        except OSError as error:
            render.complain(f"cannot listen on {host}:{port}: {error.strerror}", "name another with --host and --port")
            raise typer.Exit(4) from None
        render.note(
            f"listening on http://{f'[{host}]' if ':' in host else host}:{server.getsockname()[1]}/api/v1/lineage"
        )
        token = os.environ.get("EBBTIDE_LISTEN_TOKEN") or None
        if (local := is_loopback(host)) is False and token is None:
            token = secrets.token_urlsafe(32)
            render.note(f"jobs send the header: Authorization: Bearer {token}")
        api = lineage_api(tide, hosts={host.lower(), *LOOPBACK} if local else None, token=token)
        config = uvicorn.Config(api, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[server])


def _tell(problems: list[dict[str, Any]]) -> None:
    for problem in problems:
        said = f"{problem['where']}: {problem['message']}"
        if problem["kind"] == "unreadable":
            render.complain(said, problem["hint"])
        else:
            render.warn([said + (f" ({problem['hint']})" if problem["hint"] else "")])
    if any(problem["kind"] == "unreadable" for problem in problems):
        raise typer.Exit(2)
