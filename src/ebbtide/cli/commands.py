"""The verbs: parse, call `app`, render. No logic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli import (
    checks,
    erase,
    governance,
    install,
    ledger,
    orphans,
    people,
    plan,
    render,
    retention,
    running,
    runs,
    show,
    state,
    tier,
)
from ebbtide.cli.complete import tables as table_names
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project, project_file
from ebbtide.cli.order import InOrder, Whole

if TYPE_CHECKING:
    from ebbtide.app.results.lake import ScanError, ScanResult

app = typer.Typer(
    cls=InOrder, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Retention, tiering and provable erasure for the lakehouse.",
)  # fmt: skip

app.add_typer(ledger.app, name="ledger", cls=Whole)
app.add_typer(state.app, name="state", cls=Whole)
app.add_typer(orphans.app, name="orphans", cls=Whole)
app.add_typer(runs.app, name="runs", cls=Whole)
app.add_typer(erase.app, name="erase", cls=Whole)
app.add_typer(tier.app, name="tier", cls=Whole)
install.register(app)
governance.register(app)
people.register(app)
checks.register(app)
plan.register(app)
retention.register(app)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"ebbtide {version('ebbtide')}")
        raise typer.Exit


@app.callback()
def main(
    ctx: typer.Context,
    project: ProjectOption = None,
    _version_asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and end.")
    ] = False,
    log_format: Annotated[
        str, typer.Option("--log-format", metavar="text|json", help="How the log is written.")
    ] = "text",
    log_file: Annotated[
        Path | None, typer.Option("--log-file", help="Keep the whole log in a file, with where errors came from.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="The whole log on stderr.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only data and errors.")] = False,
) -> None:
    from ebbtide.cli import logs

    logs.configure(form=log_format, verbose=verbose, quiet=quiet, file=log_file)
    render.be_quiet(quiet)
    running.show_progress(not (verbose or quiet))
    ctx.obj = project


@app.command()
def init(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Option(help="The project's name. [default: the folder's]")] = None,
    pack: Annotated[str | None, typer.Option(help="Also copy a pack into it, as in --pack gdpr.")] = None,
    schemas: Annotated[
        bool, typer.Option("--schemas", help="Only the schemas that editors check its files with, of this version.")
    ] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Write a commented project to start from. With a pack also into an existing one; nothing is overwritten."""
    from ebbtide.app.init import init_project, init_schemas

    path = project_file(ctx, project)
    folder = path.parent if path.suffix in (".yml", ".yaml") else path
    if schemas:
        init_schemas(folder, dry_run=dry_run)
        render.note(f"{'would write' if dry_run else 'wrote'} the schemas of {folder}")
        return
    done = init_project(folder, name=name, pack=pack, dry_run=dry_run)
    is_new = folder / "ebbtide.yml" in done.written
    for path in done.written:
        render.note(f"{'would write' if dry_run else 'wrote'} {path}")
    for path in done.kept:
        render.note(f"kept {path}: the project says it already")
    if not dry_run:
        first = "name your catalogs in ebbtide.yml, then run" if is_new else "run"
        labels = "" if pack is None else "`ebbtide classify --suggest`, "
        render.note(f"next: {first} `ebbtide scan`, {labels}`ebbtide plan`")


@app.command()
def scan(
    ctx: typer.Context,
    full: Annotated[bool, typer.Option("--full", help="Read every dataset again, changed or not.")] = False,
    history_only: Annotated[
        bool, typer.Option("--history-only", help="Leave out partitions and files: quicker, good for looking only.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every dataset again, and find metadata that was changed in place.")
    ] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Bring the inventory up to date. Only what changed is read. Exit 4 where something could not be read.

    Exit 1 where `--verify` finds metadata that was changed in place: the same commit says something else than it did.

    Tables whose contract says `enforce: true` are repaired where their settings differ from it.
    """
    tide = open_project(ctx, project)
    with running.shown("asking the catalogs") as context:
        scanned = tide.scan(history_only=history_only, full=full, verify=verify, context=context)
    if json:
        render.write_json(scanned.to_dict())
    _tell(scanned)
    render.warn(scanned.warnings)
    if scanned.drift or scanned.repaired:
        repaired = len({row.table_id for row in scanned.repaired})
        drifting = len({row.table_id for row in scanned.drift})
        render.note(f"contracts: {repaired} tables repaired, {drifting} differ (`ebbtide contract check`)")
    for name in scanned.changed_in_place:
        hint = f"find out who wrote there: `ebbtide history {name}` shows what plans are made from now"
        render.complain(f"{name}: its metadata was changed in place", hint)
    if scanned.errors or scanned.changed_in_place:
        raise typer.Exit(4 if scanned.errors else 1)


def _tell(scanned: ScanResult) -> None:
    total, read = scanned.datasets, len(scanned.read)
    gone = f", {len(scanned.gone)} gone" if scanned.gone else ""
    silent, errors = _by_cause(scanned)
    failed = sum(1 for error in scanned.errors if error.table_id is not None)
    left = max(0, total - read - failed)
    broken = f", {failed} cannot be read" if failed else ""
    render.note(f"{total} datasets: {read} read, {left} not changed{broken}{gone}, {len(errors)} errors")
    for table_id, others in sorted(scanned.locked.items()):
        render.note(f"locked: {table_id} shares its location with {', '.join(others)}; nothing of it will be removed")
    for error in errors:
        # The message of a dataset begins with its name, that of a catalog with the catalog's.
        render.complain(error.error, error.hint)
        if error.table_id is None and silent[error.catalog]:
            render.note(f"  its {silent[error.catalog]} datasets stay as they were read last, and nothing of them goes")


def _by_cause(scanned: ScanResult) -> tuple[Counter[str], list[ScanError]]:
    """The errors without those of datasets that only say that their catalog did not answer, which are counted."""
    said = {error.catalog: error.error for error in scanned.errors if error.table_id is None}
    silent: Counter[str] = Counter()
    errors = []
    for error in scanned.errors:
        if error.table_id is not None and error.catalog in said and error.error.endswith(said[error.catalog]):
            silent[error.catalog] += 1
        else:
            errors.append(error)
    return silent, errors


@app.command()
def tables(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """List every dataset with its branches, transactions, files and bytes."""
    rows = open_project(ctx, project).tables()
    if json:
        render.write_json(rows.to_dicts())
        return
    render.rows(show.tables(rows), "none: the last scan found no dataset")


@app.command()
def history(
    ctx: typer.Context,
    dataset: Annotated[str, typer.Argument(help="catalog.namespace.table", autocompletion=table_names)],
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show the transactions of a dataset, branch by branch, from oldest to newest."""
    answer = open_project(ctx, project).history(dataset)
    if json:
        render.write_json(answer.to_dict())
        return
    console = render.out()
    for part in show.history(answer):
        console.print(part)
    render.note(f"as scanned at {answer.scanned_at}")
    if answer.error:
        render.warn([f"{answer.error} (what is shown is what could be read before)"])


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the sample lake is built.")] = Path("demo-lake"),
) -> None:
    """Build a small real lake of a payments company in all four formats, and walk through it."""
    from ebbtide.app.demo import run_demo

    run_demo(folder, tell=show.PrintedStory())
