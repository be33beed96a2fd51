"""Bars and curves as SVG that a screen reader reads out: each has a title, and a description with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import count

from ebbtide.cli.visible import visible

COLOURS = ("#1f6f8b", "#e0a030", "#7a5195", "#c8553d", "#5a8f3c", "#6b7280", "#2f4b7c", "#b5838d", "#444444")
"""Told apart by people who see few colours, too; every part is in the text beside them."""
_WIDTH, _HEIGHT = 640, 28


class Charts:
    """The charts of one page, whose parts have ids of their own."""

    def __init__(self) -> None:
        self._ids = count(1)

    def bar(
        self,
        title: str,
        parts: Sequence[tuple[str, float]],
        *,
        limit: tuple[str, float] | None = None,
        scale: float = 0.0,
    ) -> str:
        """Parts one after the other, and a line where a limit is; `scale` is what the whole width stands for."""
        total = max(sum(value for _, value in parts), limit[1] if limit else 0, scale, 1e-9)
        at, drawn = 0.0, []
        for number, (name, value) in enumerate(parts):
            wide = value / total * _WIDTH
            box = f'x="{at:.1f}" y="4" width="{wide:.1f}" height="20" fill="{COLOURS[number % len(COLOURS)]}"'
            drawn.append(f"<rect {box}><title>{_text(name)}</title></rect>")
            at += wide
        if limit is not None:
            x = min(limit[1] / total * _WIDTH, _WIDTH - 1)
            line = f'x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{_HEIGHT}"'
            drawn.append(f'<line {line} stroke="#000000" stroke-width="2"><title>{_text(limit[0])}</title></line>')
        said = ", ".join([*(name for name, _ in parts), *([limit[0]] if limit else [])])
        return self._svg(title, said or "nothing", _HEIGHT, "".join(drawn))

    def curves(self, title: str, said: str, curves: Sequence[Sequence[tuple[float, float]]]) -> str:
        """Curves over the same time, from nothing up; one value alone is a level."""
        high, height = max((y for curve in curves for _, y in curve), default=0) or 1, 160
        xs = [x for curve in curves for x, _ in curve]
        first, wide = min(xs, default=0), (max(xs, default=0) - min(xs, default=0)) or 1
        drawn = []
        for number, curve in enumerate(curves):
            if len(curve) == 1:
                curve = [(first, curve[0][1]), (first + wide, curve[0][1])]
            points = " ".join(
                f"{(x - first) / wide * _WIDTH:.1f},{height - 2 - y / high * (height - 6):.1f}" for x, y in curve
            )
            look = f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="3"'
            drawn.append(f'<polyline points="{points}" {look}/>')
        axis = f'<line x1="0" y1="{height - 1}" x2="{_WIDTH}" y2="{height - 1}" stroke="#888888"/>'
        return self._svg(title, said, height, axis + "".join(drawn))

    def _svg(self, title: str, said: str, height: int, drawn: str) -> str:
        number = next(self._ids)
        about = f'role="img" aria-labelledby="t{number} d{number}" width="{_WIDTH}" height="{height}"'
        head = f'<title id="t{number}">{_text(title)}</title><desc id="d{number}">{_text(said)}</desc>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {about}>{head}{drawn}</svg>'


def swatch(number: int) -> str:
    """A square in a part's colour, for the list of what the parts are."""
    box = f'<rect width="12" height="12" fill="{COLOURS[number % len(COLOURS)]}"/>'
    return f'<svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">{box}</svg>'


def _text(value: str) -> str:
    return escape(visible(value))
