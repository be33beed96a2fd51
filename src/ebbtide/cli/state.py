"""`ebbtide state`: the door to the state's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli import render

app = typer.Typer(no_args_is_help=True, help="The state database: its tables and their version.")

_DEFAULT_PROJECT = Path("ebbtide.yml")


@app.command()
def upgrade(
    ctx: typer.Context,
    project: Annotated[Path | None, typer.Option("--project", help="The project file, or its folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")] = False,
) -> None:
    """Bring the state's tables to the version that this Ebbtide works with."""
    from ebbtide.app.state import upgrade_state

    done = upgrade_state(project or ctx.obj or _DEFAULT_PROJECT, dry_run=dry_run)
    if json:
        render.write_json({"before": done.before, "after": done.after, "dry_run": dry_run})
    would = "would go" if dry_run else "went"
    changed = f"{would} from layout {done.before or 'none'} to {done.after}"
    render.note(f"the state {changed}" if done.before != done.after else f"the state has layout {done.after} already")
