"""The picture of the README, drawn from the walk that the suite executes: `python -m tests.docs.picture`."""

from __future__ import annotations

from html import escape
from itertools import takewhile

from tests.docs.walk import ROOT, steps

PICTURE = ROOT / "docs" / "pictures" / "plan.svg"
_WALK = ROOT / "docs" / "first-plan.md"
_COMMANDS = ("ebbtide plan", "ebbtide explain --select lake.raw.countries")
_LINE, _CHARACTER, _MARGIN = 18, 7.3, 16
_TYPED = ' class="typed"'
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}"
    "rect{fill:#f6f8fa;stroke:#d0d7de}"
    ".typed{font-weight:bold}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#30363d}}"
)


def picture() -> str:
    """A terminal as SVG, readable in light and dark, whose text is text."""
    taken = [step for step in steps(_WALK) if step.command in _COMMANDS]
    # What follows an empty line is wider than a page.
    shown = [takewhile(bool, step.shown) for step in taken]
    lines = [line for step, rows in zip(taken, shown, strict=True) for line in (f"$ {step.command}", *rows, "")][:-1]
    width = round(max(map(len, lines)) * _CHARACTER) + 2 * _MARGIN
    height = len(lines) * _LINE + 2 * _MARGIN
    drawn = "\n".join(
        f'<text x="{_MARGIN}" y="{_MARGIN + 13 + number * _LINE}" xml:space="preserve"'
        f"{_TYPED if line.startswith('$ ') else ''}>{escape(line)}</text>"
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="A terminal: ebbtide plan and ebbtide explain">\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>\n{drawn}\n</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
