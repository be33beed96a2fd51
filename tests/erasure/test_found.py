"""Each data file is looked through once, and its counts become those of every version that holds it."""

from __future__ import annotations

import json

from ebbtide.erasure.found import Hit, PartsLook, TableHits, held_by_ref, rows_by_ref
from ebbtide.formats.versions import Retained
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId

# Five versions: a fork at the second, a compaction in the fourth, and a last one that cannot be read any more.
DATA = {"a": 0b00111, "b": 0b00110, "c": 0b01000, "side": 0b00100, "gone": 0b10000}
RETAINED = Retained(
    TableHandle(DatasetId("lake", ("db",), "t"), "file:///t", "token"), ["v0", "v1", "v2", "v3", "v4"],
    0b01111, {"branch:main": 0b01000, "branch:side": 0b00100, "tag:old": 0b00001}, DATA, 0b00100,
)  # fmt: skip


def test_every_data_file_is_covered_by_one_version_that_can_be_read() -> None:
    covering = list(RETAINED.covering())
    assert covering == [(3, {"c"}), (2, {"a", "b", "side"})]
    files = [path for _, found in covering for path in found]
    assert sorted(files) == sorted(path for path, bits in DATA.items() if bits & RETAINED.readable)


def test_a_count_of_a_file_is_that_of_every_version_but_where_something_hides_rows_of_it() -> None:
    stored = PartsLook(DATA, again=False, hits=[Hit(0, "a", 2, frozenset({"x"})), Hit(0, "c", 1, frozenset({"y"}))])
    # The third version has a delete for "a", and shows one row less.
    visible = PartsLook({"a": 0b00100}, again=True, hits=[Hit(0, "a", 1, frozenset({"x"}))])
    found = held_by_ref(RETAINED, [stored, visible])
    assert [(each.ref, each.rows, each.columns) for each in found[0]] == [
        ("branch:main", 1, ("y",)), ("branch:side", 1, ("x",)), ("tag:old", 2, ("x",)), ("version:v1", 2, ("x",)),
    ]  # fmt: skip
    hidden = PartsLook({"a": 0b00100}, again=True)
    assert "branch:side" not in {each.ref for each in held_by_ref(RETAINED, [stored, hidden])[0]}


def test_what_was_read_as_a_whole_is_told_apart_from_data_files() -> None:
    hits = TableHits(RETAINED, {"a": frozenset({0}), "v3": frozenset({1})})
    assert (hits.files, hits.versions) == (frozenset({"a"}), frozenset({"v3"}))


def test_rows_that_are_equal_are_as_many_as_in_the_version_that_has_most_of_them() -> None:
    row, twice = json.dumps({"x": 1}), (json.dumps({"x": 1}),) * 2
    stored = PartsLook(
        DATA, again=False, hits=[Hit(0, "a", 2, frozenset(), twice), Hit(0, "c", 1, frozenset(), (row,))]
    )
    first, second = rows_by_ref(RETAINED, [stored])[0]
    assert (first.refs, second.refs) == (
        ("branch:main", "branch:side", "tag:old", "version:v1"), ("branch:side", "tag:old", "version:v1")
    )  # fmt: skip
    assert json.loads(first.line()) == {"dataset": "lake.db.t", "refs": list(first.refs), "row": {"x": 1}}
