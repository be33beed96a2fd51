"""SIGKILL at every boundary of a sweep, on a format that is one file: nothing is lost, and the next run finishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ebbtide.ledger.entries import KINDS
from tests.faults.boundaries import watch
from tests.faults.child import die
from tests.faults.place import Place
from tests.tiers import deep_after_first

ELSEWHERE = {
    "ledger.rotated": "`ledger rotate`",
    "ledger.pruned": "`ledger prune`",
    "unmark.made": "`unmark`",
    "unmark.released": "`unmark --release`",
    "hold.placed": "`hold add`",
    "hold.released": "`hold release`",
    "orphans.condemned": "`orphans condemn`",
    "catalog.declared": "a run, before it marks or sweeps",
    "dataset.ignored": "a run, before it marks or sweeps",
    "mark.rebound": "an erasure",
    "request.received": "erasure",
    "request.moved": "erasure",
    "request.batch": "erasure",
    "request.verified": "erasure",
    "certificate.key": "erasure",
    "request.listed": "erasure",
    "request.certified": "erasure",
}
"""Kinds of entries that no mark and no sweep writes, and who does: they are one transaction each, without an act."""
MOMENTS = ("before it is written", "written, not committed", "committed, not signed", "signed")


def _boundaries(place: Place) -> list[str]:
    """All that an undisturbed story passes, numbered where it passes one several times."""

    def count(say: Callable[[str], None]) -> None:
        watch(say)

    passed = place.run(count)
    assert passed.error is None, passed.error
    assert not passed.killed
    *names, last = passed.said
    assert last.startswith("removed")
    return names


def _kill_at(number: int) -> Callable[[Callable[[str], None]], None]:
    def prepare(say: Callable[[str], None]) -> None:
        left = number

        def point(name: str) -> None:
            nonlocal left
            if left == 0:
                say(name)
                die()
            left -= 1

        watch(point)

    return prepare


@pytest.mark.parametrize("every", deep_after_first(14, 1))
def test_a_kill_at_every_boundary_loses_nothing_and_the_next_run_finishes(
    tmp_path: Path, every: int, record_property: Callable[[str, object], None]
) -> None:
    """`make test` is killed at one in fourteen of them, `make test-deep` at each."""
    calm = Place.new(tmp_path / "calm")
    names = _boundaries(calm)
    calm.assert_finished()
    _assert_all_kinds(names)
    resumed: set[str] = set()
    for number, name in list(enumerate(names))[::every]:
        place = Place.new(tmp_path / str(number))
        ended = place.run(_kill_at(number))
        assert ended.killed, (name, ended)
        assert ended.said == [name], "the same story passes the same boundaries"
        record_property("killed", f"folder: {name}")
        left = repr(place.look()).replace(str(place.root), "")
        # A kill inside a transaction leaves what the kill before it left: such a state is resumed once.
        if left in resumed:
            continue
        resumed.add(left)
        place.time_passes()
        again = place.run()
        assert again.error is None, (name, again.error)
        place.assert_finished()
        before = place.look()
        assert place.run().said == ["removed 0 errors 0"], name
        assert place.look()[:3] == before[:3], "running again changes nothing"
    assert len(resumed) > 15 // every, "a sweep leaves more states than that"


def _assert_all_kinds(names: list[str]) -> None:
    """The boundaries are those of the ledger's entry types: a new type must be killed at, or be written elsewhere."""
    written = {name.partition(": ")[0] for name in names} & KINDS.keys()
    assert written | ELSEWHERE.keys() == KINDS.keys()
    assert not written & ELSEWHERE.keys()
    assert {f"{kind}: {moment}" for kind in written for moment in MOMENTS} <= set(names)
    assert written == {"ledger.created", "mark.made", "mark.sent-back", "act.intent", "act.outcome"}
