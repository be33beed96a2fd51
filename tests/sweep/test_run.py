"""`run --every`: a round that fails is told, and the next one comes; a dry run stays one in every round."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ebbtide.app import run as running
from ebbtide.app.run import RunReport, run_for_ever
from ebbtide.config import load_project
from ebbtide.errors import RefusedError
from ebbtide.model.durations import parse_duration


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
