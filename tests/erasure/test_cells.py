"""Every planted value is found where it lies, and its place is named; who was never there is not found.

The files in which a value is found are exactly those in which the oracle sees it: one too few would be a hole, one too
many a neighbour who was taken for the person.
"""

from __future__ import annotations

import pytest

from ebbtide.verify.report import FoundValue, Grade, keyed
from tests.erasure.cells import PLACES, Planted, Variant
from tests.erasure.conftest import PATH_KEY, Key, Know, Known, Searched, person_of
from tests.erasure.generate import parameter
from tests.erasure.variants import QUICK, VARIANTS

CELLS = [
    pytest.param(variant, place, id=parameter(variant, place), marks=() if variant.id in QUICK else pytest.mark.deep)
    for variant in VARIANTS
    for place in PLACES
    if variant.planted(place)
]


@pytest.mark.parametrize(("variant", "place"), CELLS)
def test_what_is_planted_is_found_and_named(variant: Variant, place: str, known: Know, searched: Searched) -> None:
    table, report = known(variant), searched(variant)
    for type_, cell in variant.planted(place).items():
        found = report.found_of(person_of(place, type_))
        paths = {each.path for each in found}
        whole, cut = _paths(table, place, type_)
        assert whole - paths == set(), f"{type_} was not found there"
        assert paths - whole - cut == set(), f"{type_} was found where it is not"
        there = _claimed(table, place, type_, cell)
        named = [each for each in found if each.path in there and _is_named(each, cell)]
        assert named, f"{type_} has no place like {cell.role}, {cell.how}, {cell.by}: {_shown(found)}"
        assert report.grade(person_of(place, type_)) is Grade.F


def _paths(table: Known, place: str, type_: str) -> tuple[set[str], set[str]]:
    """The files that hold the person's value, whole and cut, as a report calls them."""
    key: Key = (place, type_, "person")
    return {_called(table, path) for path, _ in table.whole[key]}, {_called(table, path) for path, _ in table.cut[key]}


def _claimed(table: Known, place: str, type_: str, cell: Planted) -> set[str]:
    """Those of them that are of the kind that the cell names."""
    there = (table.cut if cell.cut else table.whole)[place, type_, "person"]
    return {_called(table, path) for path, layer in there if cell.files.search(path) and layer in cell.layers}


def _called(table: Known, path: str) -> str:
    """Keyed, where a value is in the path."""
    full = f"file://{table.made.location / path}"
    return keyed(PATH_KEY, full) if path in table.hidden else full


def _is_named(found: FoundValue, cell: Planted) -> bool:
    right_by = not cell.by or any(cell.by in each for each in found.referenced_by)
    return found.role in cell.role and found.how == cell.how and right_by


def _shown(found: tuple[FoundValue, ...]) -> list[tuple[str, ...]]:
    return sorted({(each.role, each.how, each.where, *each.referenced_by) for each in found})


@pytest.mark.parametrize(
    "variant",
    [pytest.param(v, id=v.id, marks=() if v.id in QUICK else pytest.mark.deep) for v in VARIANTS],
)
def test_who_was_never_there_is_not_found(variant: Variant, searched: Searched) -> None:
    """But for bounds whose file is gone: nobody can say whose they were."""
    report = searched(variant)
    for place in PLACES:
        for type_, cell in variant.planted(place).items():
            found = report.found_of(person_of(place, type_, "ghost"))
            may_be = cell.gone and type_ in ("text", "uuid")
            assert {each.how for each in found} == ({"bound"} if may_be and found else set()), (place, type_)
            if not may_be:
                reasons = {because for _, because in report.cannot_tell_of(person_of(place, type_, "ghost"))}
                assert report.grade(person_of(place, type_, "ghost")) is (Grade.B if reasons else Grade.A)
                assert reasons <= variant.untold
