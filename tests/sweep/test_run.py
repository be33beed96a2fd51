"""`run --every`: a round that fails is told, and the next one comes; a dry run stays one in every round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from ebbtide.app import run as running
from ebbtide.app.round import in_turn
from ebbtide.app.run import RunReport, _both, run_for_ever
from ebbtide.config import load_project
from ebbtide.errors import BusyError, RefusedError
from ebbtide.model.durations import parse_duration
from ebbtide.plan.measure import OverLimit
from ebbtide.run import RunContext, quiet


def test_an_error_of_one_round_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ebbtide.yml").write_text("project: t\ncatalogs:\n  c: {format: delta, warehouse: ./c}\n")
    errors: list[Exception] = [OSError(28, "No space left on device"), RefusedError("no", hint="-")]
    slept: list[float] = []

    def once(*_: object, **__: object) -> RunReport:
        if errors:
            raise errors.pop(0)
        return RunReport(None, None, 0)

    monkeypatch.setattr(running, "run_once", once)
    monkeypatch.setattr(time, "sleep", slept.append)
    told: list[RunReport] = []
    run_for_ever(load_project(tmp_path), parse_duration("1h", hours=True), after=told.append, rounds=3)
    assert [report.exit_code for report in told] == [4, 4, 0]
    assert "No space left on device" in str(told[0].error)
    assert len(slept) == 2


def test_a_dry_run_is_one_in_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ebbtide.yml").write_text("project: t\ncatalogs:\n  c: {format: delta, warehouse: ./c}\n")
    dry: list[object] = []

    def once(*_: object, **options: object) -> RunReport:
        dry.append(options["dry_run"])
        return RunReport(None, None, 0)

    monkeypatch.setattr(running, "run_once", once)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    for dry_run in (True, False):
        rhythm = parse_duration("1h", hours=True)
        run_for_ever(load_project(tmp_path), rhythm, dry_run=dry_run, after=lambda _: None, rounds=2)
    assert dry == [True, True, False, False]


def test_each_round_shows_its_own_progress_and_is_told_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ebbtide.yml").write_text("project: t\ncatalogs:\n  c: {format: delta, warehouse: ./c}\n")
    did: list[str] = []
    mine = quiet(None)

    @contextmanager
    def shown() -> Iterator[RunContext]:
        did.append("shown")
        yield mine
        did.append("over")

    def once(*_: object, context: RunContext, **__: object) -> RunReport:
        assert context is mine
        return RunReport(None, None, 0)

    monkeypatch.setattr(running, "run_once", once)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    rhythm = parse_duration("1h", hours=True)
    run_for_ever(load_project(tmp_path), rhythm, around=shown, after=lambda _: did.append("told"), rounds=2)
    assert did == ["shown", "over", "told"] * 2


@pytest.mark.parametrize("verb", ["mark", "sweep"])
def test_the_limit_of_the_lake_stops_everything_whichever_verb_breaks_it(verb: str) -> None:
    """What marks too much comes of a wrong policy as often as of a right one: nothing else goes by it meanwhile."""
    over = (OverLimit(None, verb, f"{verb} of 2 of 3 bytes, more than 10% of the lake"),)
    round_: Any = SimpleNamespace(plan=SimpleNamespace(over=over, warnings=("w",)), unread=("u",))

    def never() -> NoReturn:
        raise AssertionError("nothing may be done")

    report = _both(round_, never, never)
    assert (report.marked, report.swept, report.warnings, report.unread) == (None, None, ("w",), ("u",))
    assert report.exit_code == 4, "something could not be read, and that comes before a limit"
    assert "of the lake" in str(report.error)
    assert _both(SimpleNamespace(plan=round_.plan, unread=()), never, never).exit_code == 3  # type: ignore[arg-type]


def test_a_round_waits_while_somebody_else_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    answers: list[BusyError | int] = [BusyError("busy"), BusyError("busy"), 7]

    def read() -> int:
        answer = answers.pop(0)
        if isinstance(answer, BusyError):
            raise answer
        return answer

    assert in_turn(read, quiet()) == 7
    assert len(slept) == 2

    def refused() -> NoReturn:
        raise RefusedError("for another reason")

    with pytest.raises(RefusedError, match="another reason"):
        in_turn(refused, quiet())
    assert len(slept) == 2, "what does not pass is not waited for"


def test_a_round_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + 100 * seconds))

    def busy() -> NoReturn:
        raise BusyError("another scan of this project is running")

    with pytest.raises(BusyError):
        in_turn(busy, quiet())
    assert 600 < now[0] < 800
