"""`setup` and `doctor`: what is to be done before there is a project, and what is wrong where something does not go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, project_file
from ebbtide.cli.render import escape

if TYPE_CHECKING:
    from ebbtide.app.setup import SetupResult

_PROFILES = ("spark35", "spark41")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(setup)
    app.command()(doctor)


def setup(
    source: Annotated[
        str | None, typer.Option("--from", metavar="FOLDER", help="Take jars from a folder: needs no network.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(_PROFILES),
            help="Bring the jars of another Spark, for another environment. [default: the installed PySpark's]",
        ),
    ] = None,
    no_archive: Annotated[
        bool, typer.Option("--no-archive", help="Make no archive of Java's classes: 300 MB less, and slower starts.")
    ] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Fetch the jars that sessions need, once: verified, and only what is missing. Needs no project."""
    from ebbtide.app.as_json import as_json
    from ebbtide.app.setup import run_setup
    from ebbtide.errors import InputError

    if profile not in (None, *_PROFILES):
        raise InputError(f"unknown profile {profile!r}", hint=f"one of {', '.join(_PROFILES)}")
    if source == "":  # as a path it would be the folder that one is in
        raise InputError("--from names no folder", hint="name the folder that holds the jars")
    folder = None if source is None else Path(source)
    with running.shown("looking at the jars") as context:
        done = run_setup(source=folder, profile=profile, with_archive=not no_archive, dry_run=dry_run, context=context)
    if json:
        render.write_json(as_json(done))
    _tell(done, dry_run)


def _tell(done: SetupResult, dry_run: bool) -> None:
    brought = f"{len(done.fetched)} jars {'would be ' if dry_run else ''}fetched ({render.size(done.bytes)})"
    render.note(f"{done.profile}: {brought}, {done.already_there} there already, in {done.folder}")
    if done.archive == "none":
        render.note(f"no archive of classes, sessions work without it: {done.because}")
    else:
        render.note(f"archive of classes: {'would be ' if dry_run and done.archive == 'made' else ''}{done.archive}")


def doctor(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Say what is missing here, and what to type. Exit 1 where something is missing or broken."""
    from ebbtide.app.as_json import as_json
    from ebbtide.app.doctor import examine

    with running.shown("looking around"):
        rows = list(examine(project_file(ctx, project)))
    if json:
        render.write_json(as_json(rows))
    else:
        shown = render.table("what", "state", "found", "what to type")
        for row in rows:
            shown.add_row(*(escape(cell) for cell in (row.what, row.health.value, row.found, row.command or "")))
        render.out().print(shown)
    trouble = sum(row.is_trouble for row in rows)
    render.note(f"{len(rows)} looked at, {trouble} missing or broken")
    if trouble:
        raise typer.Exit(1)
