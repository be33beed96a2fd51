"""`ebbtide state`: the door to the state's tables."""

from __future__ import annotations

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project

app = typer.Typer(no_args_is_help=True, help="The state database: its tables and their version.")


@app.command()
def upgrade(
    ctx: typer.Context,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Bring the state's tables to the version that this Ebbtide works with."""
    with running.shown("upgrading the state"):
        done = open_project(ctx, project).upgrade_state(dry_run=dry_run)
    if json:
        render.write_json(done.to_dict())
    would = "would go" if dry_run else "went"
    changed = f"{would} from layout {done.before or 'none'} to {done.after}"
    render.note(f"the state {changed}" if done.before != done.after else f"the state has layout {done.after} already")
