"""Results by themselves: frozen all the way, and read by people."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.app.results.built import built
from ebbtide.app.results.plan import Explanation
from ebbtide.app.results.retention import MarkResult, RunResult

EXPLAINED = {
    "as_of": "2026-11-18T00:00:00.000000Z", "dataset": "lake.db.t", "target": "versions", "object": "1",
    "planned": {"decision": "mark", "because": "old"},
    "policies": [{"policy": "old", "outcome": "mark", "because": "older than 30d"}],
}  # fmt: skip


def test_what_a_result_holds_cannot_be_changed() -> None:
    found = built(Explanation, EXPLAINED)
    planned: Any = found.planned
    with pytest.raises(TypeError):
        planned["decision"] = "keep"
    assert found.decision == "mark"
    assert found.to_dict() == EXPLAINED


def test_a_result_inside_of_another_is_shown_in_lines_of_its_own() -> None:
    marked = MarkResult("run", (), 3, (), (), (), (), ())
    shown = repr(RunResult(marked, None, (), (), 0, None)).splitlines()
    assert shown[0] == "RunResult"
    assert shown[shown.index("mark") :][:3] == ["mark", "  run: run", "  marked_before: 3"]
    assert "<b>mark</b>" in RunResult(marked, None, (), (), 0, None)._repr_html_()
