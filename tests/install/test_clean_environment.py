"""As somebody has it who types `pip install ebbtide`: an environment with nothing else, an empty folder, an empty home.

No network is asked: packages come from uv's cache, which set-up filled, and jars from the folder that set-up prepared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ebbtide.spark.jars import jar_folder, locked
from tests.install.built import Newcomer, build_wheel, install

pytestmark = [pytest.mark.jvm, pytest.mark.deep]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    root = tmp_path_factory.mktemp("newcomer")
    return install(build_wheel(root / "wheel"), root)


def _doctor(newcomer: Newcomer, *words: str) -> tuple[Mapping[str, Any], int]:
    done = newcomer.types("ebbtide", "doctor", "--json", *words)
    return {row["what"]: row for row in json.loads(done.stdout)}, done.returncode


def test_the_wheel_alone_gives_a_command_that_runs_the_demo(newcomer: Newcomer) -> None:
    assert newcomer.types("ebbtide", "--version").stdout.startswith("ebbtide ")

    rows, code = _doctor(newcomer)
    wanted = {f"jar {jar.coordinate.split(':')[1]}": "ebbtide setup" for jar in locked("spark35")}
    wanted["project"] = "ebbtide init  # or name one with --project"
    assert {what: row["command"] for what, row in rows.items() if row["health"] == "missing"} == wanted
    assert code == 1

    refused = newcomer.types("ebbtide", "demo")
    assert (refused.returncode, "run `ebbtide setup`" in refused.stderr) == (2, True), refused.stderr

    done = newcomer.types("ebbtide", "setup", "--json", "--no-archive", "--from", str(jar_folder()))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["fetched"]) == len(locked("spark35"))
    assert told["archive"] == "none", "it takes a minute, and every `make setup` makes one"
    assert Path(told["folder"]).is_relative_to(newcomer.root / "home")

    done = newcomer.types("ebbtide", "demo")
    assert done.returncode == 0, done.stderr
    assert "9 datasets read, 0 errors" in done.stdout

    rows, code = _doctor(newcomer, "--project", "demo-lake")
    assert {what for what, row in rows.items() if row["health"] not in ("ok", "optional")} == set()
    assert rows["class archive"]["health"] == "optional"
    assert code == 0
