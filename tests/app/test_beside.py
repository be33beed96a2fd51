"""`Ebbtide(project, spark=…)`: beside a session that somebody else started, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide.spark.session import formats_of_session
from tests.places import ODD

PROJECT = """
project: beside
catalogs:
  lake: {format: iceberg, type: hadoop, warehouse: ./ours}
  events: {format: delta, warehouse: ./delta}
ledger: {origin: example.org/beside, checkpoint: ../checkpoint}
"""

pytestmark = pytest.mark.skipif("hudi" not in formats_of_session(), reason="the session has Hudi's catalog")


def run(program: str, *args: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", program, *args],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
        env={**os.environ, "EBBTIDE_ACTOR": "ann"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.jvm
def test_a_session_of_somebody_else_is_worked_beside_and_left_as_it_was(tmp_path: Path) -> None:
    """It has another `lake`, Hudi's `spark_catalog`, another default catalog, and reads names in ways of its own."""
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "ebbtide.yml").write_text(PROJECT)
    told = run("tests.app.notebook_session", str(folder))
    before, after = told["before"], told["after"]
    assert before["current"] == ["lake", "store"]
    assert before["rows"][0] == [[1, "theirs"], [2, "theirs too"]]
    for name in before:
        assert after[name] == before[name], name
    assert told["scanned"] == told["tables"] == ["events.web.clicks", "lake.app.users"]
    assert told["errors"] == 0
    assert told["is_theirs"] == [True, True]
    assert told["joined"] == [[2, "theirs too", "ours"]]
    assert told["others"] == [[2, "ours"]]
    assert told["checks"] > 0
    assert told["ours"] == [None, None, None], "what their builder said means nothing to us"


@pytest.mark.jvm
def test_what_a_context_lacks_is_said_with_the_settings_to_add(tmp_path: Path) -> None:
    """Jars and extensions cannot be had later: said when the project is opened, not in the middle of a sweep."""
    text = PROJECT.replace("type: hadoop", "type: jdbc, uri: 'jdbc:sqlite:catalog.db'")
    (tmp_path / "ebbtide.yml").write_text(text)
    told = run("tests.app.bare_session", str(tmp_path))["told"]
    (lacks, settings), (stopped, _) = told
    assert lacks == "this Spark context cannot run the project's formats (delta, iceberg)"
    for part in (
        "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-",
        ",io.delta:delta-spark_",
        ",org.xerial:sqlite-jdbc:",
        "; spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.",
    ):
        assert part in settings
    assert "hudi" not in settings
    assert stopped == "the given Spark session was stopped"
