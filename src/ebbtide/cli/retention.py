"""`mark`, `sweep`, `run` and `hold`: parse, call `app`, render."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli import marks, render, running
from ebbtide.cli.complete import tables
from ebbtide.cli.options import (
    DryRunOption,
    JsonOption,
    ProjectOption,
    SelectOption,
    SubjectOption,
    UnsafeOption,
    YesOption,
    open_project,
    sure,
    time_of,
)
from ebbtide.cli.order import Whole
from ebbtide.cli.render import escape
from ebbtide.cli.subject import subject_of
from ebbtide.model.ids import object_name

hold = typer.Typer(no_args_is_help=True, help="Litigation holds: nothing inside one goes by any verb.")

_AsOf = Annotated[
    str | None, typer.Option("--as-of", help="The time that counts; only where the project's clock is simulated.")
]
_PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="Do exactly this plan, or refuse because the world changed.")
]
_MaxShare = Annotated[
    float | None, typer.Option("--max-share", min=0, max=1, help="Of a dataset's bytes, for this run.")
]
_MaxObjects = Annotated[int | None, typer.Option("--max-objects", min=0, help="Objects, for this run.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    for verb in (mark, sweep, run, marks.marks, marks.unmark, marks.unmarks):
        app.command()(verb)
    app.add_typer(hold, name="hold", cls=Whole)


def _limits(project: Any, max_share: float | None, max_objects: int | None) -> Any:
    given = {"max_share": max_share, "max_objects": max_objects}
    return project.limits.model_copy(update={name: value for name, value in given.items() if value is not None})


def mark(
    ctx: typer.Context,
    plan_file: _PlanFile = None,
    max_share: _MaxShare = None,
    max_objects: _MaxObjects = None,
    select: SelectOption = None,
    unsafe: UnsafeOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """Schedule for deletion what the plan wants gone. Nothing is removed.

    Exit 3 where a limit left a dataset out, 4 where a dataset or a catalog could not be read.
    """
    from ebbtide.app.mark import exit_code, run_mark
    from ebbtide.app.results.retention import MarkResult

    loaded = open_project(ctx, project, unsafe=unsafe).project
    limits = _limits(loaded, max_share, max_objects)
    with running.shown("scan, plan, mark", as_of=time_of(as_of)) as context:
        report = run_mark(
            loaded, plan_file=plan_file, limits=limits, select=select or (), dry_run=dry_run, context=context
        )
    if json:
        render.write_json(MarkResult.of(report).to_dict())
    render.warn(report.warnings)
    _tell_marked(report, dry_run)
    _tell_unread(report)
    if code := exit_code(report):
        raise typer.Exit(code)


def sweep(
    ctx: typer.Context,
    plan_file: _PlanFile = None,
    max_share: _MaxShare = None,
    max_objects: _MaxObjects = None,
    select: SelectOption = None,
    every: Annotated[bool, typer.Option("--all", help="Every object, too.")] = False,
    unsafe: UnsafeOption = False,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """Remove what is marked, past its grace and proved again.

    Exit 1 where the proof after it failed, 3 where a limit left a dataset out, 4 where something could not be removed
    or read.
    """
    from ebbtide.app.results.retention import SweepResult
    from ebbtide.app.sweep import exit_code, run_sweep

    loaded, at = open_project(ctx, project, unsafe=unsafe).project, time_of(as_of)
    sure(yes, dry_run)
    limits = _limits(loaded, max_share, max_objects)
    with running.shown("scan, plan, sweep", as_of=at) as context:
        report = run_sweep(
            loaded, plan_file=plan_file, limits=limits, select=select or (), dry_run=dry_run, context=context
        )
    if json:
        render.write_json(SweepResult.of(report).to_dict())
    else:
        _show(report, every)
    render.warn(report.warnings)
    _tell_swept(report, dry_run)
    _tell_unread(report)
    if code := exit_code(report):
        raise typer.Exit(code)


def run(
    ctx: typer.Context,
    every: Annotated[str | None, typer.Option("--every", help="A round so often, for ever: 1h, 1d.")] = None,
    max_share: _MaxShare = None,
    max_objects: _MaxObjects = None,
    unsafe: UnsafeOption = False,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """Tier what `hottier/` declares, then scan, plan, mark and sweep in one go; with `--every` for ever."""
    from ebbtide.app.results.retention import RunResult
    from ebbtide.app.run import run_for_ever, run_once
    from ebbtide.cli.tier import tell as tell_tier
    from ebbtide.errors import InputError
    from ebbtide.model.durations import parse_duration

    # What is wrong is told before anybody is asked.
    at, rhythm = time_of(as_of), None if every is None else parse_duration(every, hours=True)
    if rhythm is not None and at is not None:
        raise InputError("--every runs by the real clock", hint="leave out --as-of")
    if rhythm is not None and rhythm.exact.total_seconds() <= 0:
        raise InputError(f"--every {every} is no time", hint="write 1h or 1d")
    loaded = open_project(ctx, project, unsafe=unsafe).project
    limits = _limits(loaded, max_share, max_objects)
    sure(yes, dry_run)

    rounds = count(1)

    def tell(report: Any) -> None:
        if every is not None:
            render.note(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} round {next(rounds)}: exit {report.exit_code}")
        if json:
            # For ever: a round a line.
            render.write_json(RunResult.of(report).to_dict(), indent=2 if every is None else None)
        elif report.swept is not None:
            _show(report.swept, every=False)
        if report.tier:
            tell_tier(report.tier, shows=not json)
        render.warn(report.warnings)
        for part, said in ((report.marked, _tell_marked), (report.swept, _tell_swept)):
            if part is not None:
                said(part, dry_run)
        _tell_unread(report)
        if report.error is not None:
            render.complain(report.error.message, report.error.hint)

    if rhythm is None:
        with running.shown("scan, plan, mark, sweep", as_of=at) as context:
            report = run_once(loaded, limits=limits, dry_run=dry_run, context=context)
        tell(report)
        raise typer.Exit(report.exit_code)
    run_for_ever(
        loaded, rhythm, limits=limits, dry_run=dry_run, context=running.context(),
        around=lambda: running.shown("scan, plan, mark, sweep"), after=tell,
    )  # fmt: skip


@hold.command("add")
def add(
    ctx: typer.Context,
    owner: Annotated[str, typer.Option("--owner", help="Who ordered it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; stays in the state.")],
    dataset: Annotated[str | None, typer.Argument(help="catalog.namespace.table", autocompletion=tables)] = None,
    subject: SubjectOption = None,
    first_day: Annotated[str | None, typer.Option("--from", help="Only partitions from this day on.")] = None,
    last_day: Annotated[str | None, typer.Option("--to", help="Only partitions up to this day.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """Hold a dataset, a range of its partitions, or a person: nothing inside goes by any verb."""
    from ebbtide.model.times import parse_day

    days = [None if text is None else parse_day(text) for text in (first_day, last_day)]
    found = open_project(ctx, project).hold(
        dataset, owner=owner, reason=reason, subject=subject_of(subject) if subject else None, first_day=days[0],
        last_day=days[1], dry_run=dry_run,
        context=running.context(as_of=time_of(as_of)),
    )  # fmt: skip
    if json:
        render.write_json(found.to_dict())
    elif found.id is not None:
        render.out().print(found.id)
    render.note("would be held" if dry_run else "held until somebody releases it")


@hold.command("release")
def release_(
    ctx: typer.Context,
    hold_id: Annotated[str, typer.Argument(metavar="ID", help="as `hold list` shows it")],
    project: ProjectOption = None,
    json: JsonOption = False,
    dry_run: DryRunOption = False,
    as_of: _AsOf = None,
) -> None:
    """End a hold."""
    context = running.context(as_of=time_of(as_of))
    found = open_project(ctx, project).release_hold(hold_id, dry_run=dry_run, context=context)
    if json:
        render.write_json(found.to_dict())
    render.note("would be released" if dry_run else "released")


@hold.command("list")
def list_(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Every active hold."""
    found = open_project(ctx, project).holds()
    if json:
        render.write_json(found.to_dicts())
        return
    shown = render.table("id", "dataset", "from", "to", "owner", "reason", "since (UTC)")
    for row in found:
        names = (row.id, row.dataset or "a person", row.first_day, row.last_day, row.owner, row.reason)
        shown.add_row(*(escape(name or "") for name in names), (row.created_at or "")[:19].replace("T", " "))
    render.rows(shown, "none: nothing is held")


def _show(report: Any, every: bool) -> None:
    """A row per dataset, and then each object that did not just go."""
    shown = render.table(
        "dataset", ">swept", ">waiting", ">~failed", ">~sent back", ">rows", ">files", ">bytes", "next grace (UTC)",
        "~waits for",
    )  # fmt: skip
    for one in report.datasets:
        shown.add_row(
            escape(one.dataset), str(one.swept), str(one.waiting), str(one.failed), str(one.sent_back),
            "?" if one.rows is None else str(one.rows), str(one.files), render.size(one.bytes),
            (one.next_sweep or "")[:16].replace("T", " "), escape("; ".join(one.waits_for)),
        )  # fmt: skip
    if shown.rows:
        render.out().print(shown)
    objects = render.table("object", "state", "~because")
    for result in report.results:
        if every or result.state not in ("swept", "would go", "waiting"):
            name = object_name(result.key.dataset, result.key.target, result.key.object)
            objects.add_row(escape(name), result.state, escape(result.because))
    if objects.rows:
        render.out().print()
        render.out().print(objects)


def _tell_marked(report: Any, dry_run: bool) -> None:
    word = "would be marked" if dry_run else "marked"
    render.note(f"{len(report.marked)} {word}, {report.before} marked before, {len(report.sent_back)} sent back")
    for result in (*report.pinned, *report.sent_back):
        key = result.key
        render.note(f"  {object_name(key.dataset, key.target, key.object)}: {result.because}")
    for text in report.over:
        render.complain(text, "look at the plan; raise `limits:` in ebbtide.yml, or pass --max-share")


def _tell_unread(report: Any) -> None:
    from ebbtide.app.world import WAY_OUT

    for text in report.unread:
        render.complain(text, WAY_OUT)


def _tell_swept(report: Any, dry_run: bool) -> None:
    counts: dict[str, int] = {}
    for result in report.results:
        counts[result.state] = counts.get(result.state, 0) + 1
    told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "nothing to sweep"
    verb = "would go" if dry_run else "removed"
    render.note(f"{told}; {report.removed_files} files, {render.size(report.removed_bytes)} {verb}")
    for dataset, stages in report.stages:
        render.note(f"  {dataset}: {'; '.join(stages)}")
    for text in report.errors:
        render.complain(text, "the next sweep tries again")
    for text in report.findings:
        render.complain(
            f"the proof failed: {text}",
            "stop writing to the dataset, and look at its last act: `ebbtide ledger log --kind act`",
        )
    for text in report.over:
        render.complain(text, "look at the plan; raise `limits:` in ebbtide.yml, or pass --max-share")
