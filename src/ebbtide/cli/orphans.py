"""`ebbtide orphans`: files that nothing references, and tables that no catalog lists."""

from __future__ import annotations

from typing import Annotated

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project
from ebbtide.cli.render import escape

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Files that nothing references.")


@app.command("list")
def list_(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """List the storage, scan, and show what nothing references. Exit 4 where something could not be read."""
    with running.shown("asking the catalogs") as context:
        answer = open_project(ctx, project).orphans(context=context)
    if json:
        render.write_json(answer.to_dict())
    else:
        shown = render.table("dataset", "folder", ">files", ">bytes", "newest (UTC)")
        for row in answer.orphans:
            shown.add_row(
                escape(row.dataset),
                escape(row.folder),
                str(row.files),
                render.size(row.bytes),
                render.when(row.newest),
            )
        render.rows(shown, "none: everything is referenced")
        if answer.unregistered:
            shown = render.table("unregistered", "format", "formerly", ">files", ">bytes", "newest (UTC)")
            for table in answer.unregistered:
                names = (escape(table.path), table.format, escape(table.formerly or ""))
                shown.add_row(*names, str(table.files), render.size(table.bytes), render.when(table.newest))
            render.out().print(shown)
            render.note("no catalog lists these tables: they stay until `ebbtide orphans condemn PATH`")
    for reason in answer.unread:
        render.complain(reason, "until it can be read, nothing is an orphan")
    if answer.unread:
        raise typer.Exit(4)


@app.command()
def condemn(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder of a table that no catalog lists.")],
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Also where it was written in the last 24 hours.")] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Let policies treat a table that no catalog lists as orphans. Exit 3 where it may still be someone's."""
    with running.shown("asking the catalogs") as context:
        condemned = open_project(ctx, project).condemn(path, unsafe=unsafe, dry_run=dry_run, context=context)
    if json:
        render.write_json(condemned.to_dict())
    would = "would be condemned" if dry_run else "is condemned"
    render.note(
        f"{condemned.path} {would}: {condemned.files} files, {render.size(condemned.bytes)}, as {condemned.dataset}"
    )
