"""The verbs about people in tables: `classify --suggest`, `contract` and `departed`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ebbtide.cli import render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, open_project, time_of
from ebbtide.cli.order import Whole
from ebbtide.cli.render import escape


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(classify)
    app.command()(departed)
    group = typer.Typer(help="Table contracts: create tables, find drift, repair it.", rich_markup_mode=None)
    group.command()(create)
    group.command()(check)
    group.command()(repair)
    app.add_typer(group, name="contract", cls=Whole)


TablesArgument = Annotated[list[str] | None, typer.Argument(help="catalog.namespace.table")]


def classify(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(help="catalog.namespace.table; all tables when left out")
    ] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Propose PII labels by a sample of the values.", show_default=False)
    ] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Propose PII labels for columns that look personal. Values are never shown. Exit 4 where a table is unreadable."""
    if not suggest:
        render.complain("classify proposes labels, it puts none on", "say `classify --suggest`")
        raise typer.Exit(2)
    with running.shown("looking at values"):
        suggested = open_project(ctx, project).suggest_labels(*(tables or ())).to_dict()
    if json:
        render.write_json(suggested)
    else:
        shown = render.table("table", "column", "looks like", ">share", ">values", "label")
        for row in suggested["suggestions"]:
            share = f"{row['share']:.0%}"
            names = (row["table_id"], row["column"], row["kind"], share, str(row["sampled"]), row["label"])
            shown.add_row(*(escape(name) for name in names))
        render.rows(shown, "none: no column looks personal that has no label yet")
        if shown.rows:
            render.note("put what is right under `columns:` of the table in tables/*.yml")
    _tell_unread(suggested["unread"])


def create(
    ctx: typer.Context,
    tables: TablesArgument = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Create the tables of contracts, the named ones or all that are missing, with the right properties."""
    with running.shown("creating tables"):
        made = open_project(ctx, project).create_tables(*(tables or ()), dry_run=dry_run)
    if json:
        render.write_json({"created": made})
    for name in made:
        render.note(f"{'would create' if dry_run else 'created'} {name}")
    if not made:
        render.note("no table of a contract is missing")


def check(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Show where tables differ from their contracts, by the last scan. Exit 1 where one does."""
    with running.shown("reading labels"):
        drifts = open_project(ctx, project).contract_drift().to_dicts()
    if json:
        render.write_json(drifts)
    else:
        show_drift(drifts)
    if drifts:
        render.note("do: `ebbtide contract repair TABLE` for settings; change the contract, or the table, for the rest")
        raise typer.Exit(1)


def repair(
    ctx: typer.Context,
    tables: TablesArgument = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Repair settings: of the named tables, or of those with `enforce: true`. Exit 1 where something is left."""
    with running.shown("repairing tables"):
        repaired = open_project(ctx, project).repair_tables(*(tables or ()), dry_run=dry_run).to_dicts()
    if json:
        render.write_json(repaired)
    else:
        shown = render.table("table", "what", "found", "wanted", "would be repaired" if dry_run else "repaired")
        for row in repaired:
            texts = (row["table_id"], row["aspect"], row["found"], row["wanted"], row["because"] or "yes")
            shown.add_row(*(escape(text) for text in texts))
        render.rows(shown, "none: nothing is to be repaired")
    if any(not row["done"] for row in repaired):
        raise typer.Exit(1)


def show_drift(rows: list[dict[str, Any]]) -> None:
    """Drift as a table."""
    shown = render.table("table", "what", "found", "wanted")
    for row in rows:
        shown.add_row(*(escape(row[key]) for key in ("table_id", "aspect", "found", "wanted")))
    render.rows(shown, "none: no table differs from a contract")


def _tell_unread(unread: list[dict[str, str]]) -> None:
    for one in unread:
        render.complain(f"{one['place']}: {one['because']}", "`ebbtide scan` says more")
    if unread:
        raise typer.Exit(4)


def departed(
    ctx: typer.Context,
    file: Annotated[
        bool, typer.Option("--file", help="File erasure requests for them, and withdraw those of who came back.")
    ] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: Annotated[str | None, typer.Option("--as-of", help="As if it were then: a date or an instant, UTC.")] = None,
) -> None:
    """Show how many people who left are still in which table. Exit 1 where one should be gone by the promise."""
    with running.shown("looking for who left"):
        answer = open_project(ctx, project).departed(file=file, dry_run=dry_run, as_of=time_of(as_of)).to_dict()
    if json:
        render.write_json(answer)
    else:
        shown = render.table("subject", "table", "column", "known by", ">left", ">overdue", "earliest due", "goes by")
        for subject in answer["subjects"]:
            for row in subject["places"]:
                texts = (subject["subject"], row["table_id"], row["column"], row["how"], str(row["departed"]))
                due = str(row["earliest_due"] or "")
                more = (str(row["overdue"]), due, "partitions" if row["ages_out"] else "request")
                shown.add_row(*(escape(text) for text in (*texts, *more)))
        render.rows(shown, "none: nobody who left is in a table that says who did")
    for notice in answer["notices"]:
        render.note(notice)
    for subject in answer["subjects"]:
        for one in subject["unread"]:
            render.complain(f"{one['place']}: {one['because']}", None)
        if file:
            verb = "would be filed" if dry_run else "filed"
            render.note(f"{subject['subject']}: {subject['filed']} {verb}, {subject['withdrawn']} withdrawn")
            if subject["too_late"]:
                render.note(f"{subject['too_late']} came back after their deletion had begun")
    if any(one["failed"] for subject in answer["subjects"] for one in subject["unread"]):
        raise typer.Exit(4)
    if any(row["overdue"] for subject in answer["subjects"] for row in subject["places"]):
        render.note("do: `ebbtide departed --file` files requests for them, `ebbtide erase run` carries them out")
        raise typer.Exit(1)
