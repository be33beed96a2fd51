"""Every value is where its cell says: otherwise a search that finds nothing would prove nothing."""

from __future__ import annotations

import pytest

from tests.erasure.cells import PLACES, Variant
from tests.erasure.conftest import Know
from tests.erasure.people import TYPES, WHO, values_of
from tests.erasure.variants import QUICK, VARIANTS


def by_variant() -> list[object]:
    return [
        pytest.param(variant, id=variant.id, marks=() if variant.id in QUICK else pytest.mark.deep)
        for variant in VARIANTS
    ]


@pytest.mark.parametrize("variant", by_variant())
def test_every_value_lies_in_a_file_of_the_kind_that_its_cell_names(variant: Variant, known: Know) -> None:
    table = known(variant)
    missing = []
    for place in PLACES:
        for type_, cell in variant.planted(place).items():
            key = (place, type_, WHO[0])
            there = table.cut[key] if cell.cut else table.whole[key]
            if not any(cell.files.search(path) and layer in cell.layers for path, layer in there):
                missing.append((place, type_, sorted(there)))
    assert missing == []


@pytest.mark.parametrize("variant", by_variant())
def test_ghosts_are_nowhere(variant: Variant, known: Know) -> None:
    assert {key: there for key, there in known(variant).whole.items() if key[2] == "ghost" and there} == {}


@pytest.mark.deep
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_every_head_branch_tag_and_version_can_be_read(variant: Variant, known: Know) -> None:
    """What was planted broke no table: later tests compare what these read before and after."""
    rows = known(variant).rows
    assert {"main"} < set(rows)
    assert all(rows[name] for name in ("main", "kept", "side") if name in rows)


def test_values_of_no_two_places_are_alike() -> None:
    """Neither whole nor cut: a value that is found names its place."""
    people = [values_of(variant.id, place) for variant in VARIANTS for place in PLACES]
    for type_ in TYPES:
        texts = [person.canonical(type_)[:-1] for person in people]
        assert len(set(texts)) == len(people)
    assert len({person.text[:14] for person in people}) == len(people)


def test_a_neighbour_and_a_ghost_share_more_of_a_text_than_a_bound_has() -> None:
    three = [values_of("any", "place", who) for who in WHO]
    assert len({each.text[:33] for each in three}) == 1
    assert len({each.text for each in three}) == 3
    assert {len(each.text) for each in three} == {40}
    for type_ in ("bigint", "decimal", "uuid"):
        assert len({each.canonical(type_)[:-1] for each in three}) == 1
        assert len({each.canonical(type_) for each in three}) == 3
