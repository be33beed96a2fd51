"""What every verb takes, spelled once."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.complete import selections

if TYPE_CHECKING:
    from ebbtide.app.ebbtide import Ebbtide

ProjectOption = Annotated[
    Path | None, typer.Option("--project", help="The project file, or its folder. [default: ./ebbtide.yml]")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe", help="Let guard ages of orphans below a day pass. Only where no writer runs.")
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        help="lake.raw.*, policy:NAME, target:NAME or decision:NAME; may be repeated.",
        autocompletion=selections,
    ),
]
SubjectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--subject",
        metavar="IDENTITY=VALUE|@FILE|-",
        help="An identifier of the person; or a file, or standard input, with one on each line.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask, where nobody sits at a terminal.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def project_file(ctx: typer.Context, project: Path | None) -> Path:
    """The project that was named after the verb, before it, or not at all."""
    before: Path | None = ctx.obj  # a verb inherits it from whatever stands before it
    return project or before or Path("ebbtide.yml")


def open_project(ctx: typer.Context, project: Path | None, *, unsafe: bool = False) -> Ebbtide:
    """The project itself. Imported late, so that `--help` and wrong input answer at once."""
    from dataclasses import replace

    from ebbtide.app.ebbtide import Ebbtide

    tide = Ebbtide(project_file(ctx, project))
    return Ebbtide(replace(tide.project, unsafe=True)) if unsafe else tide


def sure(yes: bool, dry_run: bool, question: str = "Remove what is marked and past its grace?") -> None:
    """Removing without a terminal needs `--yes`; at one, a person is asked."""
    from ebbtide.errors import RefusedError

    if yes or dry_run:
        return
    if not sys.stdin.isatty():
        raise RefusedError("this removes data, and nobody is there to ask", hint="pass --yes, or look with --dry-run")
    if not typer.confirm(question, err=True):
        raise RefusedError("nothing was removed", hint="look with --dry-run")


def time_of(text: str | None) -> datetime | None:
    """A time that somebody may have written."""
    from ebbtide.model.times import parse_time

    return None if text is None else parse_time(text)


def time_or_now(text: str | None) -> datetime:
    return time_of(text) or datetime.now(UTC)
