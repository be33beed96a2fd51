"""`ebbtide tier`: a PostgreSQL hot tier in front of the lake."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project, sure, time_of
from ebbtide.cli.render import escape
from ebbtide.cli.time_axis import LEGEND, LETTERS, axis, ends

if TYPE_CHECKING:
    from ebbtide.app.results.tier import HotTableStatus, TierChange, TierResult

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A PostgreSQL hot tier in front of the lake.")

TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="A table of hottier/*.yml, as schema.table.")]
AnyTable = Annotated[
    str | None, typer.Argument(metavar="[TABLE]", help="A table of hottier/*.yml. [default: all of them]")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, where nobody sits at a terminal.")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="The time that counts, in a project with a simulated clock.")]


@app.command()
def init(
    ctx: typer.Context, project: ProjectOption = None, dry_run: DryRunOption = False, json: JsonOption = False
) -> None:
    """Bring Ebbtide's functions and event triggers to the servers: once, as a superuser."""
    with running.shown("looking at the servers"):
        found = open_project(ctx, project).tier.init(dry_run=dry_run)
    _changed(found, json=json, shows=dry_run)


@app.command()
def add(
    ctx: typer.Context,
    table: TableArgument,
    partition: Annotated[
        bool, typer.Option("--partition", help="Make a plain table a partitioned one first, while it is in use.")
    ] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Adopt a table's chunks, and mirror it into the lake. Exit 2 or 3 where it cannot be; nothing is changed then."""
    with running.shown("looking at the table") as context:
        found = open_project(ctx, project).tier.add(table, partition=partition, dry_run=dry_run, context=context)
    _changed(found, json=json, shows=dry_run)


@app.command()
def resync(
    ctx: typer.Context,
    table: TableArgument,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="What went from the hot tier is meant: it goes from the lake, too.")
    ] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Copy what is in the hot tier again, and mirror from there on. Exit 3 where the lake would lose rows by it."""
    with running.shown("looking at the table") as context:
        found = open_project(ctx, project).tier.resync(table, confirm=confirm, dry_run=dry_run, context=context)
    _changed(found, json=json, shows=False)


@app.command()
def remove(
    ctx: typer.Context,
    table: TableArgument,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """End the mirror of a table and forget its chunks. No row goes."""
    with running.shown("looking at the table"):
        found = open_project(ctx, project).tier.remove(table, dry_run=dry_run)
    _changed(found, json=json, shows=dry_run)


@app.command()
def untier(
    ctx: typer.Context,
    table: TableArgument,
    chunk: Annotated[str, typer.Argument(metavar="CHUNK", help="A dropped chunk, as `tier status` names it.")],
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Bring a dropped chunk back from the lake. It stays until `tier drop` names it."""
    with running.shown("reading the lake") as context:
        found = open_project(ctx, project).tier.untier(table, chunk, dry_run=dry_run, context=context)
    _changed(found, json=json, shows=False)


@app.command()
def sync(
    ctx: typer.Context,
    table: AnyTable = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="What stopped the mirror of TABLE is meant: replay it.")
    ] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Mirror what is new. Exit 3 where a mirror stopped, 4 where something failed."""
    with running.shown("mirroring") as context:
        found = open_project(ctx, project).tier.sync(table, confirm=confirm, context=context)
    _results(found, json=json)


@app.command()
def run(
    ctx: typer.Context,
    table: AnyTable = None,
    as_of: AsOf = None,
    yes: Yes = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Mirror, prove and drop what is due. Exit 3 where a mirror stopped, 4 where something failed or is missing."""
    tide, at = open_project(ctx, project), time_of(as_of)
    sure(yes, dry_run, _DROPS)
    with running.shown("mirroring", as_of=at) as context:
        found = tide.tier.run(table, as_of=at, dry_run=dry_run, context=context)
    _results(found, json=json)


@app.command()
def drop(
    ctx: typer.Context,
    table: TableArgument,
    chunk: Annotated[str | None, typer.Option("--chunk", help="Only this one.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Without the gate: rows may be lost. Never against a hold; recorded.")
    ] = False,
    yes: Yes = False,
    as_of: AsOf = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Drop chunks past drop_after. Exit 3 where one stays that was named."""
    tide, at = open_project(ctx, project), time_of(as_of)
    sure(yes, dry_run, _DROPS_UNPROVEN if force else _DROPS)
    with running.shown("dropping", as_of=at) as context:
        found = tide.tier.drop(table, chunk, force=force, as_of=at, dry_run=dry_run, context=context)
    _results((found,), json=json)


@app.command()
def status(ctx: typer.Context, table: AnyTable = None, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Each table's mirror and chunks, as the last run saw them."""
    found = open_project(ctx, project).tier.status(table)
    if json:
        render.write_json(found.to_dicts())
        return
    for each in found:
        _show(each)
    if not found:
        render.note(_NO_TABLE)


_DROPS = "Drop chunks that are proven and past drop_after?"
_DROPS_UNPROVEN = "Drop chunks without any proof: rows may be lost?"
_NO_TABLE = "none: hottier/*.yml names no table"


def _show(each: HotTableStatus) -> None:
    out = render.out()
    why = f" ({each.because})" if each.because else ""
    out.print(escape(f"{each.table} → {each.cold or 'no cold table'}: {each.mirror}{why}"), soft_wrap=True)
    lag, kept = render.size(each.lag_bytes), render.size(each.retained_bytes)
    told = f"  lag {lag}, log held back {kept}, gate {'open' if each.gate_open else 'shut'}"
    late = "" if each.lateness_seconds is None else f", rows come up to {each.lateness_seconds} s late"
    out.print(escape(told + late))
    if each.chunks:
        out.print(escape(f"  [{axis(each.chunks)}]"))
        out.print(escape(f"   {ends(each.chunks)}"))
        counted = Counter(chunk.state for chunk in each.chunks)
        told = ", ".join(f"{counted[state]} {state}" for state in LETTERS if counted[state])
        out.print(escape(f"  {told}  ({LEGEND})"), soft_wrap=True)
    shown = render.table("chunk", "~from (UTC)", "~to (UTC)", "state", "~waits for")
    for chunk in each.chunks:
        waits = escape("; ".join(chunk.waits_for))
        shown.add_row(escape(chunk.name), render.when(chunk.first), render.when(chunk.last), chunk.state, waits)
    render.rows(shown, "  no chunk yet")


def _changed(found: TierChange, *, json: bool, shows: bool) -> None:
    if json:
        render.write_json(found.to_dict())
    elif shows:
        for statement in found.statements:
            render.out().print(escape(f"{statement};"), soft_wrap=True)
    render.note(f"{found.table or 'the servers'}: {found.state}{f' ({found.because})' if found.because else ''}")


def _results(found: tuple[TierResult, ...], *, json: bool) -> None:
    if json:
        render.write_json([each.to_dict() for each in found])
    tell(found, shows=not json)
    from ebbtide.app.results.tier import exit_code

    if code := exit_code(found):
        raise typer.Exit(code)


def tell(found: tuple[TierResult, ...], *, shows: bool) -> None:
    """What a run did to each table, for people."""
    for each in found:
        if shows:
            parts = {"tiered": each.tiered, "dropped": each.dropped, "would drop": each.would_drop}
            told = "; ".join(f"{name} {', '.join(chunks)}" for name, chunks in parts.items() if chunks)
            render.out().print(escape(f"{each.table}: {each.mirror}{'; ' + told if told else ''}"))
        for name in each.missing:
            render.complain(f"{each.table}: chunk {name} is missing", "another tool dropped it; look for a backup")
        for error in each.errors:
            render.complain(error, None)
        for notice in each.notices:
            render.note(f"{each.table}: {notice}")
    if not found:
        render.note(_NO_TABLE)
