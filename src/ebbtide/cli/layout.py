"""Tables that fit a terminal without cutting anything: names and ids stay whole, lines end where their text does.

Where a table is too wide, columns fold below their row by importance, `label value` beside each other, until the rest
fits: first those that are declared lesser, then others, from the right; the first column never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

_GAP, _INDENT = "  ", "    "
_HEAD, _QUIET = Style(bold=True), Style(dim=True)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """`>` before a name makes numbers of its cells, `~` after that a column that folds before others."""

    name: str
    right: bool
    lesser: bool

    @classmethod
    def of(cls, spelled: str) -> ColumnLayout:
        right = spelled.startswith(">")
        name = spelled.removeprefix(">")
        return cls(name.removeprefix("~"), right, name.startswith("~"))


class TableLayout:
    """Rows of cells in rich's markup, laid out for the console that shows them."""

    def __init__(self, *columns: str, title: str | None = None) -> None:
        self.columns = tuple(map(ColumnLayout.of, columns))
        self.title = title
        self.rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        self.rows.append(tuple(Text.from_markup(cell).plain for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style in self.lines(console.width):
            yield Segment(text, style)
            yield Segment.line()

    def lines(self, width: int) -> Iterator[tuple[str, Style | None]]:
        """What is shown on so many columns: the title, the header, and each row with what was folded below it."""
        if self.title:
            yield Text.from_markup(self.title).plain, _HEAD
        widths = [max(map(cell_len, (c.name, *(r[n] for r in self.rows)))) for n, c in enumerate(self.columns)]
        shown = self._shown(widths, width)
        yield self._line([column.name for column in self.columns], shown, widths), _HEAD
        for row in self.rows:
            yield self._line(row, shown, widths), None
            rest = [
                f"{column.name} {row[n]}" for n, column in enumerate(self.columns) if n not in shown and row[n].strip()
            ]
            yield from ((line, _QUIET) for line in _wrapped(rest, width))

    def _shown(self, widths: Sequence[int], width: int) -> list[int]:
        """The columns that stay beside each other."""
        shown = list(range(len(self.columns)))
        order = sorted(shown[1:], key=lambda n: (not self.columns[n].lesser, -n))
        for n in order:
            if sum(widths[k] for k in shown) + len(_GAP) * (len(shown) - 1) <= width:
                break
            shown.remove(n)
        return shown

    def _line(self, cells: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> str:
        parts = []
        for n in shown:
            blanks = " " * (widths[n] - cell_len(cells[n]))
            parts.append(blanks + cells[n] if self.columns[n].right else cells[n] + blanks)
        return _GAP.join(parts).rstrip()


def _wrapped(items: Sequence[str], width: int) -> Iterator[str]:
    """Items beside each other; one that is too long breaks between its words, and never inside of one."""
    line = ""
    for item in items:
        words, first = item.split(" "), True
        if line and cell_len(line) + len(_GAP) + 1 + cell_len(item) > width:
            yield line
            line = ""
        for word in words:
            if not line:
                line = _INDENT + word
            elif cell_len(line) + 1 + cell_len(word) > width:
                yield line
                line = _INDENT + word
            else:
                line += ("; " if first else " ") + word
            first = False
    if line:
        yield line
