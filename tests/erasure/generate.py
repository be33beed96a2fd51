"""Writes docs/erasure-cells.md from the cells: `make docs`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.erasure.cells import PLACES, Cannot, Planted, Variant
from tests.erasure.people import TYPES
from tests.erasure.variants import VARIANTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "erasure-cells.md"
TEST = "tests/erasure/test_cells.py::test_what_is_planted_is_found_and_named"
_HEAD = """\
# Where a person's values can lie, and what shows that they are found there

<!-- Written by `make docs` from tests/erasure/variants/: change those, not this. -->

Sixteen kinds of table, seventeen kinds of place, four types of value (a text of 40 characters, a bigint, a decimal, a
UUID). In every cell lies a value of its own, which the named test finds and names, beside a neighbour's value that
differs in its end and must not be taken for it; or the reason why nothing can lie there. Run a test with
`.venv/bin/python -m pytest ID`. `tests/model/test_erasure_cells.py` fails where a cell is empty or its test is not
there.
"""


def id_of_test(variant: Variant, place: str) -> str:
    """The id of the test that finds the values of all types that can lie in this place."""
    return f"{TEST}[{parameter(variant, place)}]"


def parameter(variant: Variant, place: str) -> str:
    return f"{variant.id}-{place.replace(' ', '_')}"


def page() -> str:
    parts = [_HEAD]
    for format_, variants in groupby(VARIANTS, key=lambda variant: variant.format):
        parts.append(f"\n## {format_.capitalize()}\n")
        parts += [_section(variant) for variant in variants]
    return "".join(parts)


def _section(variant: Variant) -> str:
    rows = [row for place in PLACES for row in _rows(variant, place)]
    title = f"{variant.title[0].upper()}{variant.title[1:]}"
    return f"\n### {title}\n\n| place | values | shown by |\n|---|---|---|\n{''.join(rows)}"


def _rows(variant: Variant, place: str) -> list[str]:
    """A line for the types that can lie there, and one for each reason why others cannot."""
    lines: dict[str, list[str]] = {}
    for type_ in TYPES:
        match variant.cell(place, type_):
            case Planted(what=what):
                shown = f"{what}: `{id_of_test(variant, place)}`"
            case Cannot(reason=reason):
                shown = f"Cannot be: {reason}."
        lines.setdefault(shown, []).append(type_)
    return [f"| {place} | {', '.join(types)} | {shown} |\n" for shown, types in lines.items()]


if __name__ == "__main__":
    PAGE.write_text(page())
