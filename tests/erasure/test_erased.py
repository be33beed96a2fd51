"""Everybody who is planted is erased at once: nobody is left in a byte, and everybody else reads as before."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ebbtide.state.erasure import EXCEPTIONS, OPEN
from tests.erasure.cells import Variant
from tests.erasure.erased import Erased
from tests.erasure.test_plants import by_variant

Erase = Callable[[Variant], Erased]

_KEEPS_VERSIONS = {"iceberg"}
"""Formats in which time travel survives: every version reads as before, but for who was erased."""
_BY_A_PERSON = {
    "orphan": "a file that no version names: the orphans' policy removes it, and a search says it is there",
    "metadata property": "a property that somebody wrote: nobody else knows what it is for",
}
"""What no erasure takes, in any format: told as found, never as removed."""
_IN_NAMES = re.compile(r"^\.hoodie/(timeline|metadata/files)/")
_NAMED = "a partition is named after them: the timeline keeps that, and folders stay"
_STAYS = {
    "hudi": {
        **dict.fromkeys(("log", "archive", "partition path", "partition summary"), _NAMED),
        "tag": "a savepoint keeps its files",
    }
}
"""What a format has no way to take: told as retained, and no row is among it but in what a tag keeps."""


def _stays(variant: Variant, place: str, there: frozenset[tuple[str, str]]) -> bool:
    why = _STAYS.get(variant.format, {}).get(place)
    names = all(layer == "name" or _IN_NAMES.search(path) for path, layer in there)
    return why is not None and (names or why is not _NAMED)


@pytest.mark.parametrize("variant", by_variant())
def test_nobody_is_left_in_a_byte_but_where_it_is_said(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    left = {place: there for place, there in table.left.items() if there and place not in _BY_A_PERSON}
    left = {place: there for place, there in left.items() if not _stays(variant, place, there)}
    assert left == {}, {place: (sorted(there)[:5], table.states.get(place)) for place, there in left.items()}
    told_of = {place: (table.grades[place], table.states.get(place)) for place in table.left if table.left[place]}
    for place, (grade, state) in told_of.items():
        assert state is not None, place
        assert state[0] in OPEN | EXCEPTIONS, (place, state)
        # What a dataset keeps for a reason is told apart (B); the name of a partition stands in our inventory, too (F).
        assert grade == "F" or (grade == "B" and state[0] in EXCEPTIONS), (place, grade, state)


@pytest.mark.parametrize("variant", by_variant())
def test_everybody_else_reads_as_before(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    assert any(table.before[name] != table.others[name] for name in table.before), "nobody was there"
    for name, rows in table.after.items():
        if rows is None and variant.format not in _KEEPS_VERSIONS:
            assert name.startswith("version"), name
        else:
            assert rows == table.others[name], name


@pytest.mark.parametrize("variant", by_variant())
def test_files_without_a_person_are_the_very_same(variant: Variant, erased: Erase) -> None:
    table = erased(variant)
    there = {path: table.files.get(path) for path in table.untouched}
    if variant.format not in _KEEPS_VERSIONS:
        there = {path: stat for path, stat in there.items() if stat is not None}
    assert there == {path: table.untouched[path] for path in there}
