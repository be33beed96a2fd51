"""Progress on a pipe: which lines are written when, by a clock that the test hands in."""

from __future__ import annotations

from threading import Event

import pytest

from ebbtide.cli import render
from ebbtide.cli.lines import ProgressLines, written
from ebbtide.cli.running import show_progress, shown


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_lines_become_rarer_and_say_the_step_how_far_it_is_and_since_when() -> None:
    said: list[str] = []
    clock = Clock()
    lines = ProgressLines("asking the catalogs", write=said.append, clock=clock)

    def after(seconds: float) -> list[str]:
        clock.now = 1_000 + seconds
        lines.look()
        found = said[:]
        said.clear()
        return found

    assert after(9.9) == []
    assert after(10) == ["asking the catalogs, 10 s so far"]
    lines.start("reading", 2_000, unit="datasets")
    assert after(29) == []
    lines.advance(1_500)
    assert after(30) == ["reading 1,500/2,000 datasets, 30 s so far"]
    lines.start("looking")
    assert after(69) == []
    assert after(70) == ["looking, 70 s so far"]
    lines.advance()
    assert after(150) == ["looking 1, 150 s so far"]
    assert after(310) == ["looking 1, 310 s so far"]
    assert [bool(after(seconds)) for seconds in (609, 610, 909, 910)] == [False, True, False, True], "five minutes"


def test_somebody_looks_while_the_work_says_nothing_and_nobody_after_it() -> None:
    clock = Clock()
    told = Event()
    said: list[str] = []

    def write(line: str) -> None:
        said.append(line)
        told.set()

    with written(ProgressLines("scan", write=write, clock=clock), every=0.001):
        clock.now += 60
        assert told.wait(30)
        clock.now += 5  # not due again
    clock.now += 600
    assert said == ["scan, 60 s so far"]


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_verb_without_a_terminal_has_lines_and_none_where_it_is_quiet(
    is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not render.err().is_terminal
    show_progress(is_shown)
    try:
        with shown("scan") as context:
            assert isinstance(context.progress, ProgressLines) == is_shown
    finally:
        show_progress(True)
    assert capsys.readouterr() == ("", "")
