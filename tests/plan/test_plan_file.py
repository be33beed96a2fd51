"""`--plan FILE` does exactly what the file says, or refuses: also where somebody took an object out of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide.app.plan import read_plan, write_plan
from ebbtide.app.round import _refuse_another
from ebbtide.errors import InputError, RefusedError
from ebbtide.model.history import TransactionKind
from ebbtide.plan.plan import Plan
from tests.plan.worlds import NOW, Table, plan, policy, world


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    rules = policy(tmp_path_factory.mktemp("rules"), "versions: {older_than: 7d, keep_min: 1}")
    tables = [
        Table(f"lake.db.t{n}").commit("T1", 300).commit("T2", 200, kind=TransactionKind.SNAPSHOT).commit("T3", 100)
        for n in range(2)
    ]
    return plan(rules, world(*tables))


def _first_object_goes(told: dict[str, Any]) -> None:
    told["objects"].pop(0)


def _last_object_goes(told: dict[str, Any]) -> None:
    told["objects"].pop()


def _another_decision(told: dict[str, Any]) -> None:
    told["objects"][0]["decision"] = "keep" if told["objects"][0]["decision"] == "mark" else "mark"


def _another_digest(told: dict[str, Any]) -> None:
    told["digest"] = "sha256:0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_first_object_goes, "was changed"),
        (_last_object_goes, "was changed"),
        (_another_decision, "was changed"),
        (_another_digest, "the world changed"),
    ],
)
def test_a_file_that_was_changed_is_refused(
    made: Plan, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    file = tmp_path / "plan.json"
    write_plan(made, file)
    _refuse_another(read_plan(file), made)
    told = json.loads(file.read_text())
    change(told)
    file.write_text(json.dumps(told))
    with pytest.raises(RefusedError, match=message):
        _refuse_another(read_plan(file), made)


def test_a_file_that_is_no_longer_named_is_refused(made: Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    write_plan(made, file)
    names = tmp_path / "plan.json.files"
    lines = names.read_text().splitlines(keepends=True)
    assert lines
    names.write_text("".join(lines[1:]))
    with pytest.raises(RefusedError, match=r"plan\.json\.files was changed"):
        _refuse_another(read_plan(file), made)
    names.unlink()
    _refuse_another(read_plan(file), made)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"as_of": "soon", "digest": "x", "objects": []}', '{"as_of": "2026-01-01", "digest": "x"}']
)
def test_what_is_no_plan_is_wrong_input(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError, match="is not a plan"):
        read_plan(tmp_path / "plan.json")


def test_a_time_without_a_zone_is_utc_wherever_the_file_is_read(
    made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "plan.json"
    write_plan(made, file)
    told = json.loads(file.read_text())
    told["as_of"] = told["as_of"].removesuffix("Z")
    file.write_text(json.dumps(told))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert read_plan(file).as_of == NOW
    finally:
        monkeypatch.undo()
        time.tzset()
