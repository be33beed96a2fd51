"""`ebbtide tier` on a real server: what it prints, what it answers as JSON, and how it ends."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.command import ebbtide
from tests.hottier.tier import Hot

_NOW = "2024-01-20T12:00:00Z"


def test_the_command_line_tells_what_the_library_does(hot: Hot) -> None:
    hot.fill(1, 2)
    for verb in (["init"], ["add", "public.m"]):
        assert ebbtide("tier", *verb, cwd=hot.root).returncode == 0
    asked = ebbtide("tier", "run", "--as-of", _NOW, cwd=hot.root)
    assert (asked.returncode, hot.chunks_here()) == (3, {"m_1", "m_2", "m_3", "m_4"})
    would = ebbtide("tier", "run", "--dry-run", "--json", "--as-of", _NOW, cwd=hot.root)
    (told,) = json.loads(would.stdout)
    assert (told["mirror"], told["would_drop"]) == ("STREAMING", [])
    assert told["notices"][0] == "m_1 is due: a run drops it once it has proven that it is in the lake"
    done = ebbtide("tier", "run", "--yes", "--json", "--as-of", _NOW, cwd=hot.root)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["dropped"] == ["m_1", "m_2", "m_3", "m_4"]
    status = ebbtide("tier", "status", "--json", cwd=hot.root)
    (table,) = json.loads(status.stdout)
    assert (table["table"], table["cold"], table["mirror"], table["because"]) == (
        "public.m",
        "lake.hot.m",
        "STREAMING",
        "",
    )
    assert {"lag_bytes", "retained_bytes"} <= table.keys()
    first = table["chunks"][0]
    assert (first["name"], first["state"], first["waits_for"]) == ("m_1", "dropped", [])
    assert (first["from"], first["to"]) == ("2024-01-01T00:00:00.000000Z", "2024-01-02T00:00:00.000000Z")
    assert "[....a" in ebbtide("tier", "status", cwd=hot.root).stdout
    assert "is back" in ebbtide("tier", "untier", "public.m", "m_1", cwd=hot.root).stderr


def test_a_wrong_name_ends_with_2_and_a_stopped_mirror_with_3(hot: Hot) -> None:
    hot.fill(1).added()
    wrong = ebbtide("tier", "sync", "public.n", cwd=hot.root)
    assert (wrong.returncode, "did you mean 'public.m'" in wrong.stderr) == (2, True)
    hot.sql.execute("TRUNCATE m_1")
    stopped = ebbtide("tier", "sync", cwd=hot.root)
    assert (stopped.returncode, "TRUNCATE" in stopped.stderr) == (3, True)
    assert ebbtide("tier", "sync", "public.m", "--confirm", cwd=hot.root).returncode == 0


def test_a_dry_run_says_of_a_shut_gate_what_the_run_does(hot: Hot) -> None:
    hot.fill(1, 2)
    before = _dry(hot, "run")
    assert (before["mirror"], "it was not added" in before["notices"][0]) == ("OFF", True)
    hot.added()
    with hot.tide as tide:
        hold = tide.hold("lake.hot.m", owner="counsel", reason="case")
        hot.run()  # proves all, and drops none
        assert hold.id is not None
        tide.release_hold(hold.id)
    proven = ["m_1", "m_2", "m_3", "m_4"]
    assert _dry(hot, "run")["would_drop"] == _dry(hot, "drop", "public.m")["would_drop"] == proven
    hot.sql.execute("TRUNCATE m_1")
    hot.sync()
    for asked in (("run",), ("drop", "public.m")):
        told = _dry(hot, *asked)
        assert (told["mirror"], told["would_drop"]) == ("STOPPED", [])
        assert told["notices"][1].startswith("m_2 stays: the mirror is STOPPED: a TRUNCATE of chunk m_1")
    named = ebbtide("tier", "drop", "public.m", "--chunk", "m_2", "--dry-run", "--as-of", _NOW, cwd=hot.root)
    assert (named.returncode, "chunk m_2 stays: the mirror is STOPPED" in named.stderr) == (3, True)
    assert _dry(hot, "drop", "public.m", "--force")["would_drop"] == proven
    assert hot.chunks_here() == set(proven)


def test_a_dry_run_refuses_a_table_that_was_added_otherwise(hot: Hot) -> None:
    hot.fill(1).added()
    file = hot.root / "hottier" / "m.yml"
    file.write_text("mirror: batch\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    for verb in (["run", "--as-of", _NOW], ["drop", "public.m", "--as-of", _NOW], ["resync", "public.m"]):
        told = ebbtide("tier", *verb, "--dry-run", cwd=hot.root)
        assert (told.returncode, "was added with mirror: stream, and its file says batch" in told.stderr) == (3, True)


def test_a_dry_run_refuses_what_the_lake_lets_go_of_before(hot: Hot) -> None:
    hot.fill(1).added()
    (hot.root / "policies").mkdir()
    policy = 'policies: [{name: short, select: {tables: ["lake.hot.**"]}, partitions: {older_than: 5d}}]'
    (hot.root / "policies" / "p.yml").write_text(policy, encoding="utf-8")
    for verb in (["run", "public.m"], ["drop", "public.m"]):
        dry = ebbtide("tier", *verb, "--dry-run", "--as-of", _NOW, cwd=hot.root)
        done = ebbtide("tier", *verb, "--yes", "--as-of", _NOW, cwd=hot.root)
        assert dry.returncode == done.returncode == 4
        assert ["'short' removes partitions" in told.stderr for told in (dry, done)] == [True, True]


def _dry(hot: Hot, *verb: str) -> dict[str, Any]:
    told = ebbtide("tier", *verb, "--dry-run", "--json", "--as-of", _NOW, cwd=hot.root)
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)[0]
    return found
