"""The notebook of the documentation, run beside a session that was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.spark.session import formats_of_session
from tests.app.test_beside import run
from tests.places import ODD

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "retention.ipynb"


@pytest.mark.jvm
@pytest.mark.skipif("hudi" not in formats_of_session(), reason="the session has Hudi's catalog")
def test_the_notebook_runs_and_its_session_is_the_same_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    told = run("tests.app.run_notebook", str(NOTEBOOK), str(folder))
    for name, value in told["before"].items():
        assert told["after"][name] == value, name
    assert told["is_same"]
    assert "swept" in told["states"]
    assert "failed" not in told["states"]
    assert told["left"] == [told["days"][0], told["days"][3]], "what was rescued, and what is young"
    html = "".join(told["shown"])
    for part in ("PlanResult", "Explanation", "MarkResult", "Unmark", "SweepResult", "act.outcome", "mark.made"):
        assert part in html
