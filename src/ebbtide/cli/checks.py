"""`check` and `report`: parse, call `app`, render."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli import render, running, written
from ebbtide.cli.options import JsonOption, ProjectOption, open_project, time_or_now
from ebbtide.cli.render import escape

_AsOf = Annotated[str | None, typer.Option("--as-of", help="The @date: a date or an instant, UTC. [default: now]")]
_Csv = Annotated[bool, typer.Option("--csv", help="Rows as CSV on stdout.")]
_Limit = Annotated[float, typer.Option("--time-limit", help="Seconds that one query may take.", min=0.001)]
_FORMATS = ("table", "csv", "json", "markdown", "html")
_Format = Annotated[
    str | None, typer.Option("--format", metavar="|".join(_FORMATS), help="How rows are written. [default: table]")
]
_SHOWN = 50
_DAY = "@date"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(check)
    app.command()(report)


def check(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="All that are not off.")] = None,
    project: ProjectOption = None,
    as_of: _AsOf = None,
    time_limit: _Limit = 600,
    json: JsonOption = False,
    csv: _Csv = False,
    form: _Format = None,
) -> None:
    """Run checks: SQL that must return no row. Exit 1 where one of severity error does.

    What failed says what to do about it. Markdown and HTML have a line a check, CSV the rows that checks found.
    """
    from ebbtide.app.checks import as_json, run_checks

    form = _format(form, json, csv)
    tide, now = open_project(ctx, project), time_or_now(as_of)
    failed, found, rows, columns = 0, [], [], []
    with running.shown("check") as context:
        for outcome in run_checks(tide.project, names or [], now=now, time_limit=time_limit, context=context):
            failed += outcome.fails_the_run
            found.append(as_json(outcome))
            rows += [{"check": outcome.check.name, "row": row} for row in outcome.result.rows]
            columns.append(outcome.result.columns)
    if form == "table":
        for one, names_of_one in zip(found, columns, strict=True):
            _show_check(one, names_of_one)
    elif form == "json":
        render.write_json(found)
    elif form == "csv":
        _write(written.csv(["check", "row"], rows))
    else:
        show_rows(form, "checks", _LINE, [_line(one) for one in found])
    passed = sum(one["passed"] for one in found)
    render.note(f"{len(found)} checks: {passed} passed, {failed} failed, {len(found) - passed - failed} warn")
    if failed:
        raise typer.Exit(1)


_LINE = ("check", "result", "rows", "description", "do")


def _line(found: Mapping[str, Any]) -> dict[str, Any]:
    said = {"check": found["name"], "result": _said(found), "rows": len(found["rows"])}
    return {**said, "description": found["description"], "do": "" if found["passed"] else found["do"]}


def _said(found: Mapping[str, Any]) -> str:
    return "passed" if found["passed"] else "FAILED" if found["severity"] == "error" else "warning"


def _show_check(answer: dict[str, Any], columns: Sequence[str]) -> None:
    console = render.out()
    count = "" if answer["passed"] else f", {len(answer['rows'])} rows: {escape(answer['description'])}"
    console.print(f"{_said(answer):8} {escape(answer['name'])}{count}", soft_wrap=True)
    if not answer["passed"]:
        _show(columns, answer["rows"][:_SHOWN])
        if len(answer["rows"]) > _SHOWN:
            render.note(f"{len(answer['rows']) - _SHOWN} more; --json shows all")
        if answer["do"]:
            console.print(f"do: {escape(answer['do'])}", soft_wrap=True)


def report(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A file of reports/, without .sql, or one that ships.")],
    date: Annotated[str | None, typer.Option("--date", help="The @date, or A..B for each day from A to B.")] = None,
    project: ProjectOption = None,
    as_of: _AsOf = None,
    time_limit: _Limit = 600,
    json: JsonOption = False,
    csv: _Csv = False,
    form: _Format = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the page of `report overview` to a file.")
    ] = None,
) -> None:
    """Run a report: SQL whose rows are shown or exported. Over a range of days each row says its @date.

    `report overview --html FILE` is one page on all tables, promises, storage and requests, which needs no network.
    """
    from ebbtide.app.checks import run_report
    from ebbtide.model.times import parse_days

    if html is not None:
        _overview(ctx, name, html, project, as_of)
        return
    form = _format(form, json, csv)
    if date and as_of:
        raise typer.BadParameter("--date and --as-of both set @date: give one of them")
    now = time_or_now(as_of)
    days = parse_days(date) if date else [now.date()]
    many = len(days) > 1
    rows: list[dict[str, Any]] = []
    columns: list[str] = []
    loaded = open_project(ctx, project).project
    with running.shown("report") as context:
        for day, result in run_report(loaded, name, days, now=now, time_limit=time_limit, context=context):
            columns = [_DAY, *result.columns] if many else list(result.columns)
            rows += [{_DAY: day, **row} if many else row for row in result.rows]
    show_rows(form, name, columns, rows)
    render.note(f"{len(rows)} rows")


def _overview(ctx: typer.Context, name: str, path: Path, project: Path | None, as_of: str | None) -> None:
    if name != "overview":
        raise typer.BadParameter(f"--html FILE goes with `overview`; `report {name} --format html` writes its rows")
    from ebbtide.app.overview import make_overview
    from ebbtide.cli.overview import write_page

    write_page(make_overview(open_project(ctx, project).project, now=time_or_now(as_of)), path)
    render.note(f"wrote {path}")


def show_rows(form: str, name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """The rows of a report on stdout, in one of the forms."""
    if form == "json":
        render.write_json(rows)
    elif form == "csv":
        _write(written.csv(columns, rows))
    elif form == "markdown":
        _write(written.markdown(columns, rows))
    elif form == "html":
        _write(written.html(name, columns, rows))
    else:
        _show(columns, rows)


def _format(form: str | None, json: bool, csv: bool) -> str:
    """What was asked for in any of three ways."""
    _one_of(json, csv)
    asked = "json" if json else "csv" if csv else None
    if form is not None and asked is not None:
        raise typer.BadParameter(f"--format and --{asked} both say how rows are written: give one of them")
    if form is not None and form not in _FORMATS:
        raise typer.BadParameter(f"no format {form!r}: {', '.join(_FORMATS)}")
    return form or asked or "table"


def _one_of(json: bool, csv: bool) -> None:
    if json and csv:
        raise typer.BadParameter("--json and --csv both write to stdout: give one of them")


def _show(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    shown = render.table(*(escape(name) for name in columns))
    for row in rows:
        shown.add_row(*(escape(written.text(row[name])) for name in columns))
    render.out().print(shown)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
