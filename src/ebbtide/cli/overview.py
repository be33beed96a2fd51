"""The overview as one page of HTML: for a browser that may be offline and may run nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.cli import render
from ebbtide.cli.charts import Charts, swatch
from ebbtide.cli.visible import visible
from ebbtide.cli.written import HEAD
from ebbtide.private import writing

if TYPE_CHECKING:
    from ebbtide.app.overview import Overview, Promised

_MOST = 50
_PAGE = (
    HEAD
    + """\
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222; }}
h1 {{ font-size: 1.6em; }}
h2 {{ font-size: 1.2em; margin-top: 2em; }}
table {{ border-collapse: collapse; }}
caption {{ text-align: left; padding-bottom: .5em; }}
th, td {{ border-bottom: 1px solid #ddd; padding: .3em .8em; text-align: left; vertical-align: top; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
td.name {{ overflow-wrap: anywhere; }}
svg {{ max-width: 100%; height: auto; vertical-align: middle; }}
.wrong {{ color: #8a1c1c; font-weight: bold; }}
ul.parts {{ list-style: none; padding: 0; margin: .2em 0 1.2em; }}
ul.parts li {{ display: inline-block; margin-right: 1.2em; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}</body>
</html>
"""
)


def write_page(overview: Overview, path: Path) -> None:
    """For its owner only, as plans are: it names tables, and says what goes."""
    with writing(path, hint="name another file", asked=True):
        handle = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page(overview))


def page(overview: Overview) -> str:
    charts = Charts()
    parts = (
        _head(overview), _storage(overview, charts), _due(overview), _promises(overview.promises, charts),
        _requests(overview), _tables(overview),
    )  # fmt: skip
    return _PAGE.format(title=_text(f"Retention of {overview.project}"), body="".join(parts))


def _head(overview: Overview) -> str:
    unread = "".join(f'<p class="wrong">{_text(one)}</p>\n' for one in overview.unread)
    return f"<p>{_text(f'{overview.at:%Y-%m-%d %H:%M} UTC, {overview.age}')}</p>\n{unread}"


def _storage(overview: Overview, charts: Charts) -> str:
    most = max(overview.storage.values(), default=0)
    rows = [
        (_text(state), charts.bar(f"{state}: {render.size(size)}", [(render.size(size), size)], scale=most),
         _number(render.size(size)))
        for state, size in overview.storage.items()
    ]  # fmt: skip
    made = _table("Bytes by state; what is marked and orphans may be among the others", ("state", "", "bytes"), rows)
    history = overview.history
    if not history:
        return _section("Storage", made)
    said = [
        f"{name} {render.size(getattr(history[0], key))} on {history[0].at:%Y-%m-%d}, "
        f"{render.size(getattr(history[-1], key))} on {history[-1].at:%Y-%m-%d}"
        for name, key in (("live", "live"), ("kept for older versions", "kept"))
    ]
    curves = [[(one.at.timestamp(), float(getattr(one, key))) for one in history] for key in ("live", "kept")]
    drawn = charts.curves("Storage over time", "; ".join(said), curves)
    return _section("Storage", f"{made}<h3>Over time</h3>\n{drawn}\n{_parts(said)}")


def _due(overview: Overview) -> str:
    rows = [
        (_text(line.policy or "none"), _name(line.dataset), _text(line.target),
         _number(line.counts.get("mark", 0)), _number(line.counts.get("sweep", 0)),
         _number(sum(line.counts.get(each, 0) for each in ("marked", "wait"))),
         _number(render.size(line.bytes)), _text((line.first_sweep or "")[:16].replace("T", " ")))
        for line in overview.due
    ]  # fmt: skip
    head = ("policy", "table", "target", "to mark", "to sweep", "wait", "bytes", "first could go (UTC)")
    return _section("What is due", _table("By policy and table", head, rows) if rows else "<p>Nothing is due.</p>\n")


def _promises(promises: Sequence[Promised], charts: Charts) -> str:
    made = []
    for one in promises:
        state = "proved" if one.breaks is None else "broken"
        days = "nothing bounds it" if one.bound is None else f"{one.bound} d at most"
        terms = [(f"{name} {length:g} d", length) for name, length in one.terms]
        limit = (f"promised {one.within} d", float(one.within))
        made.append(f"<h3>{_text(one.table_id)}</h3>\n<p>{_text(f'{one.promise}: {state}, {days}, {limit[0]}')}</p>\n")
        if one.breaks is not None:
            made.append(f'<p class="wrong">broken: {_text(one.breaks)}</p>\n')
        if terms:
            drawn = charts.bar(f"{one.table_id}: {one.promise}: {state}, {days}", terms, limit=limit)
            made.append(f"{drawn}\n{_parts([name for name, _ in terms], last=limit[0])}")
    return _section("Promises", "".join(made) or "<p>Nothing is promised.</p>\n")


def _requests(overview: Overview) -> str:
    counts = [(_text(str(state)), _number(count)) for state, count in overview.requests.items() if count]
    if not counts:
        return _section("Requests of people", "<p>There are none.</p>\n")
    late = f'<p class="wrong">overdue: {overview.overdue}</p>\n' if overview.overdue else ""
    rows = []
    for each in overview.waiting[:_MOST]:
        left = (each.deadline - overview.at).total_seconds() / 86400
        when = f"{left:.0f} d left" if left >= 0 else f'<span class="wrong">{-left:.0f} d overdue</span>'
        rows.append((_text(each.id), _text(str(each.state)), f"<td>{each.deadline:%Y-%m-%d}</td>", f"<td>{when}</td>"))
    more = len(overview.waiting) - len(rows)
    made = _table("By state", ("state", "requests"), counts) + late
    made += _table("Open ones, by deadline", ("request", "state", "deadline", ""), rows)
    return _section("Requests of people", made + (f"<p>and {more} more</p>\n" if more > 0 else ""))


def _tables(overview: Overview) -> str:
    rows = []
    for table in overview.tables:
        kept = [
            f"{one.target} {'older than ' + one.older_than if one.older_than else 'by count'} "
            f"({one.policy}, grace {one.grace})"
            for one in table.kept
        ]
        wrong = f'<span class="wrong">cannot be read: {_text(table.error)}</span>' if table.error else ""
        said = wrong or "<br>".join(map(_text, kept)) or "no policy: everything stays"
        size = _number(render.size(table.bytes))
        rows.append((_name(table.table_id), _text(table.format or ""), size, f"<td>{said}</td>"))
    made = _table("Every table of the last scan", ("table", "format", "bytes", "what goes, and when"), rows)
    return _section("Retention of every table", made)


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{_text(title)}</h2>\n{body}</section>\n"


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; one that brings no `<td>` of its own gets one."""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in columns)
    body = "".join(
        f"<tr>{''.join(cell if cell.startswith('<td') else f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows
    )
    top = f"<caption>{_text(caption)}</caption>\n<thead><tr>{head}</tr></thead>"
    return f"<table>\n{top}\n<tbody>\n{body}</tbody>\n</table>\n"


def _parts(names: Sequence[str], *, last: str | None = None) -> str:
    items = [f"<li>{swatch(number)} {_text(name)}</li>" for number, name in enumerate(names)]
    items += [f"<li>| {_text(last)}</li>"] if last else []
    return f'<ul class="parts">{"".join(items)}</ul>\n'


def _number(value: int | str) -> str:
    return f'<td class="number">{_text(f"{value:,}" if isinstance(value, int) else value)}</td>'


def _name(value: str) -> str:
    return f'<td class="name">{_text(value)}</td>'


def _text(value: str) -> str:
    return escape(visible(value))
