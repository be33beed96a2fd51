"""Tables, histories and the demo's story, as people see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ebbtide.cli import render
from ebbtide.cli.layout import TableLayout
from ebbtide.cli.render import escape

if TYPE_CHECKING:
    from ebbtide.app.results.lake import History, TransactionRow
    from ebbtide.app.results.lake import Table as TableRow


def tables(rows: Iterable[TableRow]) -> TableLayout:
    shown = render.table("table", "~format", ">~branches", ">~tags", ">commits", ">rows", ">~data files", ">~data",
                         ">~all files", ">all bytes", "last commit (UTC)", "note")  # fmt: skip
    for row in rows:
        note = "unreadable" if row.error else "locked" if row.locked_by else ""
        shown.add_row(
            escape(row.table_id), row.format or "?", str(row.branches), str(row.tags),
            str(row.transactions), "" if row.rows is None else str(row.rows), str(row.data_files),
            render.size(row.data_bytes), str(row.files), render.size(row.bytes),
            render.when(row.last_commit), note,
        )  # fmt: skip
    return shown


def history(found: History) -> Iterator[TableLayout]:
    """A table per branch, then what no branch reaches."""
    tags: dict[str, list[str]] = {}
    for tag in found.tags:
        tags.setdefault(tag.head, []).append(tag.name)
    for branch in found.branches:
        title = f"branch {branch.name}" + (" (no commit)" if not branch.transactions else "")
        yield _lines(branch.transactions, title, branch.view_start, tags)
    if found.unreachable:
        yield _lines(found.unreachable, "on no branch", None, tags)


_COUNTS = ("rows_added", "rows_removed", "files_added", "files_removed")


def _lines(
    rows: Iterable[TransactionRow], title: str, view_start: str | None, tags: dict[str, list[str]]
) -> TableLayout:
    shown = render.table("transaction", "kind", "committed (UTC)", ">+rows", ">-rows", ">~+files", ">~-files",
                         ">~+bytes", "~view", "~notes", title=escape(title))  # fmt: skip
    for row in rows:
        view = "starts" if row.id == view_start else "latest" if row.in_latest_view else ""
        notes = [f"tag {name}" for name in tags.get(row.id, [])]
        notes += ["staged"] if row.staged else []
        notes += [f"carried into {', '.join(row.carried_into)}"] if row.carried_into else []
        notes += [row.message] if row.message else []
        counts = [("?" if getattr(row, key) is None else str(getattr(row, key))) for key in _COUNTS]
        shown.add_row(
            escape(row.id), row.kind, row.committed_at[:19].replace("T", " "), *counts,
            render.size(row.bytes_added), view, escape("; ".join(notes)),
        )  # fmt: skip
    return shown


class PrintedStory:
    """Tells the demo on stdout."""

    def __init__(self) -> None:
        self._console = render.out()

    def chapter(self, title: str) -> None:
        self._console.print(f"\n[bold cyan]{escape(title)}[/]")

    def step(self, text: str) -> None:
        self._console.print(f"  {escape(text)}", soft_wrap=True)

    def tables(self, rows: Iterable[TableRow]) -> None:
        self._console.print(tables(rows))

    def history(self, found: History) -> None:
        for part in history(found):
            self._console.print(part)
