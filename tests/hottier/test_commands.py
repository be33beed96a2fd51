"""`ebbtide tier` on a real server: what it prints, what it answers as JSON, and how it ends."""

from __future__ import annotations

import json

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
    assert json.loads(would.stdout)[0]["notices"][0] == "m_1 stays: it is not proven durable in the lake"
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
