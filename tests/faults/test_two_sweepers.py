"""Two sweepers of one project: the second is refused; who slept through its lease neither writes nor removes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.boundaries import watch
from tests.faults.child import Child
from tests.faults.place import Place, story
from tests.tiers import deep_after_first

POINTS = ("act.intent: signed", "commit: after", "mark needed: after", "a batch of files: gone", "free: after")


def _stopping_at(boundary: str) -> Callable[[Callable[[str], None]], None]:
    """The process stops itself the first time that it passes there, and goes on when it is told to."""

    def prepare(say: Callable[[str], None]) -> None:
        stopped = False

        def point(name: str) -> None:
            nonlocal stopped
            if name == boundary and not stopped:
                stopped = True
                say(name)
                # To this thread: another one may take its time, while this one goes on into its next transaction.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

        watch(point)

    return prepare


def test_a_second_sweeper_is_refused_while_the_first_is_at_work(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")
    first = Child(story(place, _stopping_at("commit: after")))
    assert first.stopped()
    before = place.look()
    second = place.run()
    assert second.error is not None
    assert second.error.startswith("LeaseError: another sweeper is at work")
    assert place.look() == before
    first.go_on()
    assert first.ended().error is None
    place.assert_finished()


@pytest.mark.parametrize("boundary", deep_after_first(*POINTS, first=2))
def test_who_slept_through_its_lease_changes_nothing_more(tmp_path: Path, boundary: str) -> None:
    place = Place.new(tmp_path / "p")
    first = Child(story(place, _stopping_at(boundary)))
    assert first.stopped()
    place.time_passes()
    second = place.run()
    assert second.error is None, second.error
    place.assert_finished()
    before = place.look()
    first.go_on()
    ended = first.ended()
    assert ended.error is not None
    assert ended.error.startswith("LeaseError: the lease 1 was taken over by 2"), ended.error
    assert place.look() == before
    place.assert_finished()
