"""The page of cells is whole: 16 variants by 17 places by four types, and every test that it names is there."""

from __future__ import annotations

import subprocess
import sys

from tests.erasure.cells import PLACES, Cannot
from tests.erasure.generate import PAGE, ROOT, TEST, id_of_test, page
from tests.erasure.people import TYPES
from tests.erasure.variants import VARIANTS

CELLS = [(variant, place, type_) for variant in VARIANTS for place in PLACES for type_ in TYPES]


def test_there_are_sixteen_variants_with_seventeen_places_and_no_cell_is_empty() -> None:
    assert (len({variant.id for variant in VARIANTS}), len(set(PLACES))) == (16, 17)
    assert all(set(variant.cells) == set(PLACES) for variant in VARIANTS)
    cells = [variant.cell(place, type_) for variant, place, type_ in CELLS]
    assert [cell for cell in cells if not (cell.reason if isinstance(cell, Cannot) else cell.what)] == []


def test_every_exception_is_one_of_a_cell_and_no_place_is_empty_everywhere() -> None:
    for variant in VARIANTS:
        assert all(place in PLACES and type_ in TYPES for place, type_ in variant.but)
    for place in PLACES:
        planted = {type_ for variant in VARIANTS for type_ in variant.planted(place)}
        assert planted == set(TYPES), place


def test_every_test_that_is_named_is_there() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", TEST]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    named = {id_of_test(variant, place) for variant in VARIANTS for place in PLACES if variant.planted(place)}
    assert {line for line in run.stdout.splitlines() if "::" in line} == named


def test_the_page_is_what_the_cells_say() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"
