"""Rows as text for other programs and for people elsewhere: CSV, Markdown, and a page of HTML that needs no network.

Names and values are other people's texts: each form escapes what it would obey.
"""

from __future__ import annotations

import csv as csv_
import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ebbtide.cli import render
from ebbtide.cli.visible import visible

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#])")
_NUMBER = ' class="number"'
HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
"""
"""How a page begins that fetches nothing and runs nothing, up to its style."""
_PAGE = (
    HEAD
    + """\
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }}
table {{ border-collapse: collapse; }}
caption {{ text-align: left; font-weight: bold; padding-bottom: .5em; }}
th, td {{ border-bottom: 1px solid #ddd; padding: .3em .8em; text-align: left; vertical-align: top; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
<table>
<caption>{title}</caption>
<thead>
<tr>{head}</tr>
</thead>
<tbody>
{body}</tbody>
</table>
<p>{count} rows</p>
</body>
</html>
"""
)

Row = Mapping[str, Any]


def csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    made = io.StringIO()
    writer = csv_.writer(made, lineterminator="\n")
    # A program gets the values as they are; on a terminal they are only looked at.
    shown = visible if sys.stdout.isatty() else str
    writer.writerow([shown(name) for name in columns])
    writer.writerows([shown(text(row[name])) for name in columns] for row in rows)
    return made.getvalue()


def markdown(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """A table as GitHub and others show it."""
    lines = [[*columns], *([text(row[name]) for name in columns] for row in rows)]
    made = ["| " + " | ".join(_MARKDOWN.sub(r"\\\1", visible(cell)) for cell in line) + " |" for line in lines]
    return "".join(f"{line}\n" for line in (made[0], "|" + "---|" * len(columns), *made[1:]))


def html(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """One page, for a browser that may be offline and may run nothing."""
    head = "".join(f'<th scope="col">{_html(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(_cell(row[name]) for name in columns)}</tr>\n" for row in rows)
    return _PAGE.format(title=_html(title), head=head, body=body, count=f"{len(rows):,}")


def text(value: Any) -> str:
    """A value as one text: nothing for NULL, JSON for what has parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=render.plain).strip('"')


def _cell(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{_NUMBER if is_number else ''}>{_html(text(value))}</td>"


def _html(value: str) -> str:
    return escape(visible(value))
