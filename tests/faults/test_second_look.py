"""What a sweep does when its second look at the lake, or its last one, does not show it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ebbtide.acts import evidence
from ebbtide.acts.evidence import still_there
from ebbtide.model.dataset import Catalog, TableHandle
from tests.faults import folder
from tests.faults.boundaries import watch
from tests.faults.child import die
from tests.faults.place import LEFT, Place

Say = Callable[[str], None]


def test_a_dataset_that_is_not_listed_again_keeps_its_files_and_those_of_others(tmp_path: Path) -> None:
    """A namespace that does not answer for a moment looks like a table that is gone; what it borrowed is not free."""
    place = Place.new(tmp_path / "p")
    before = {name: place.files(name) for name in ("a", "b")}

    def prepare(_: Say) -> None:
        discover, asked = folder.Folder.discover, 0

        def forgetful(self: folder.Folder, catalog: Catalog) -> Iterator[TableHandle]:
            nonlocal asked
            asked += 1
            return (found for found in discover(self, catalog) if asked <= 2 or found.id.table != "a")

        patched: Any = folder.Folder
        patched.discover = forgetful

    first = place.run(prepare)
    assert (first.error, first.said) == (None, ["removed 0 errors 0"])
    assert {name: place.files(name) for name in ("a", "b")} == before
    ledger = place.ledger()
    with ledger.database.reader() as state:
        waits = {mark.key.dataset: mark.waits_for for mark in state.marks()}
    assert waits["c.db.b"] == ("unread:c.db.a",)
    assert place.run().error is None
    place.assert_finished()


def test_a_listing_that_fails_is_its_datasets_error_and_no_other_ones(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")

    def prepare(_: Say) -> None:
        def failing(paths: Any, options: Any) -> set[str]:
            if any("/lake/a/" in path for path in paths):
                raise PermissionError(13, "Permission denied")
            return still_there(paths, options)

        patched: Any = evidence
        patched.still_there = failing

    first = place.run(prepare)
    assert (first.error, first.said) == (None, ["removed 3 errors 1"])
    assert place.files("b") == LEFT
    assert place.run().error is None
    place.assert_finished()


def test_a_name_that_the_ledger_cannot_list_stops_its_dataset_only(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")
    _add(place, "a", "odd\tname")
    before = place.files("a")
    ended = place.run()
    assert (ended.error, ended.said) == (None, ["removed 3 errors 1"])
    assert place.files("a") == before
    assert place.files("b") == LEFT


def test_what_unicode_calls_the_end_of_a_line_is_a_part_of_a_name(tmp_path: Path) -> None:
    """A sweep that died reads its own list of files again."""
    place = Place.new(tmp_path / "p")
    _add(place, "a", "odd\u2028name\u0085")

    def prepare(_: Say) -> None:
        watch(lambda passed: die() if passed == "mark needed: after" else None)

    assert place.run(prepare).killed
    place.time_passes()
    assert place.run().error is None
    place.assert_finished()


def _add(place: Place, table: str, name: str) -> None:
    """A file that only the oldest version has."""
    where = place.root / "lake" / table
    (where / name).write_text(f"{table} {name}")
    content = folder.load(where)
    content["versions"]["v1"].append(name)
    folder.save(where, content)
