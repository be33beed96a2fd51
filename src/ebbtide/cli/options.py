"""What every verb takes, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProjectOption = Annotated[
    Path | None, typer.Option("--project", help="The project file, or its folder. [default: ./ebbtide.yml]")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def project_file(ctx: typer.Context, project: Path | None) -> Path:
    """The project that was named after the verb, before it, or not at all."""
    before: Path | None = ctx.obj  # a verb inherits it from whatever stands before it
    return project or before or Path("ebbtide.yml")
