"""What a shell proposes for tables and for `--select`."""

from __future__ import annotations

from pathlib import Path

import typer


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    from ebbtide.app.complete import table_names

    return table_names(_project(ctx), incomplete)


def selections(ctx: typer.Context, incomplete: str) -> list[str]:
    from ebbtide.app.complete import selections as known

    return known(_project(ctx), incomplete)


def _project(ctx: typer.Context) -> Path:
    """The project that the words before name. Nothing was run yet: what stands before the verb is not in `ctx.obj`."""
    before = ctx.parent.params.get("project") if ctx.parent is not None else None
    return Path(ctx.params.get("project") or before or "ebbtide.yml")
