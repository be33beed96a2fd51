"""How things look to people. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape as without_markup

from ebbtide.cli.layout import TableLayout
from ebbtide.cli.visible import json_visible, visible
from ebbtide.model.times import as_text

_WIDE = 10_000


class _Whole(Console):
    """Cuts nothing: what is wider than the terminal is the terminal's to break, and is copied whole."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})


def out() -> Console:
    """Data for people. A pipe gets every row in one line."""
    console = _Whole(highlight=False)
    return console if console.is_terminal else _Whole(highlight=False, width=_WIDE)


def err() -> Console:
    return Console(stderr=True, highlight=False)


def escape(text: str) -> str:
    """Somebody's text for a console: no markup, and nothing that a terminal obeys. All text of others goes here."""
    return without_markup(visible(text))


def complain(message: str, hint: str | None) -> None:
    console = err()
    console.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    if hint:
        console.print(f"[bold]hint:[/] {escape(hint)}", soft_wrap=True)


_is_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether notes are left out; errors never are."""
    global _is_quiet
    _is_quiet = quiet


def note(message: str) -> None:
    if _is_quiet:
        return
    err().print(escape(message), style="dim", soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    for line in lines:
        note(f"warning: {line}")


def write_json(value: Any, *, indent: int | None = 2) -> None:
    sys.stdout.write(json_visible(json.dumps(value, indent=indent, ensure_ascii=False, default=plain)) + "\n")
    sys.stdout.flush()  # a closed pipe must show here, where it is met in silence, not at the interpreter's end


def plain(value: object) -> object:
    """What JSON has no word for."""
    if isinstance(value, datetime):
        return as_text(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"not JSON: {type(value).__name__}")


def size(count: int | None) -> str:
    """Bytes for people."""
    if count is None:
        return "?"
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):  # noqa: B007 - the last unit is used after the loop
        if value < 1024:
            break
        value /= 1024
    return f"{int(value)} B" if unit == "B" else f"{value:.1f} {unit}"


def when(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def table(*columns: str, title: str | None = None) -> TableLayout:
    """An empty table; columns that begin with `>` are numbers, those with `~` after that fold first (`layout`)."""
    return TableLayout(*columns, title=title)


def rows(shown: TableLayout, none: str) -> None:
    """A table of what there is, or that there is none: a bare header looks like an answer that got lost."""
    if shown.rows:
        out().print(shown)
    else:
        note(none)


class Bar:
    """Progress on stderr: the step that long work is at, and how far it is where that is known."""

    def __init__(self, first: str) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[far]}"))
        self._progress = Progress(*columns, TimeElapsedColumn(), console=err(), transient=True)
        self._task = self._progress.add_task(escape(first), total=None, far="")
        self._unit = ""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        self._unit = unit
        self._progress.update(self._task, description=escape(step), total=total, completed=0, far="")

    def advance(self, n: int = 1) -> None:
        self._progress.advance(self._task, n)
        task = self._progress.tasks[0]
        of = "" if task.total is None else f"/{task.total:.0f}"
        self._progress.update(self._task, far=f"{task.completed:.0f}{of} {self._unit}".rstrip())

    def stop(self) -> None:
        """The verb's end clears the line."""
