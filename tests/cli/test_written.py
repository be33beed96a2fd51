"""Rows in each form of a report: read back by a parser of that form, with texts that would break out of it."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any

import pytest

from ebbtide.cli.checks import show_rows

EVIL = [
    "<script>alert(1)</script>",
    'a"b&amp;',
    "x|y`z`\\ [l](http://e.example) *b* _i_",
    "line\nbreak\x1b[2J\u202e",
    "=1",
]
COLUMNS = ["name", "<b>n</b>|", "parts"]
ROWS: list[dict[str, Any]] = [
    *({"name": evil, "<b>n</b>|": 7, "parts": None} for evil in EVIL),
    {"name": "é", "<b>n</b>|": 1.5, "parts": {"day": date(2026, 1, 2), "all": ["x"]}},
    {"name": None, "<b>n</b>|": True, "parts": date(2026, 1, 2)},
]
NAME = "</title><script>"
PRINTED = [each.replace("\n", "\\n").replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") for each in EVIL]


def _as(form: str, capsys: pytest.CaptureFixture[str]) -> str:
    show_rows(form, NAME, COLUMNS, ROWS)
    return capsys.readouterr().out


_HEAD = {"html", "head", "meta", "title", "style"}
_TAGS = _HEAD | {"body", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self._cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [name for name, _ in attrs if name in ("href", "src") or name.startswith("on")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._cell = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[-1][-1] += data


def test_html_is_one_page_that_loads_and_runs_nothing_and_holds_every_value(capsys: pytest.CaptureFixture[str]) -> None:
    text = _as("html", capsys)
    page = _Page()
    page.feed(text)
    assert page.rows[0] == COLUMNS
    assert [row[0] for row in page.rows[1:]] == [*PRINTED, "é", ""]
    assert page.rows[-2][1:] == ["1.5", '{"day": "2026-01-02", "all": ["x"]}']
    assert page.rows[-1][1:] == ["true", "2026-01-02"]
    assert {*page.tags} <= _TAGS
    assert page.links == []
    assert "default-src 'none'" in text
    assert f"<p>{len(ROWS)} rows</p>" in text
    assert text.count('<td class="number">') == len(EVIL) + 1


def test_markdown_has_a_line_a_row_and_nothing_in_it_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _as("markdown", capsys).splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert lines[1] == "|---|---|---|"
    for line, name in zip(lines[2:], [*PRINTED, "é", ""], strict=True):
        cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)
        assert len(cells) == 5, "three cells, and what is before and after them"
        assert re.sub(r"\\([^\w\s]|_)", r"\1", cells[1]).strip() == name
    assert not re.search(r"(?<!\\)[<`*\[]", "".join(lines))


def test_csv_and_json_are_read_back_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(csv.reader(io.StringIO(_as("csv", capsys), newline="")))
    assert found[0] == COLUMNS
    assert [row[0] for row in found[1:]] == [*EVIL, "é", ""]
    assert [row["name"] for row in json.loads(_as("json", capsys))] == [*EVIL, "é", None]


def test_a_table_without_rows_is_a_table_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    for form, said in (("markdown", "| a |\n|---|\n"), ("csv", "a\n"), ("json", "[]\n")):
        show_rows(form, "none", ["a"], [])
        assert capsys.readouterr().out == said
    show_rows("html", "none", ["a"], [])
    assert "<p>0 rows</p>" in capsys.readouterr().out
