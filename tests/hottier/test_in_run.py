"""`ebbtide run` includes the hot tier: what goes wrong on one side does not keep the other from its work."""

from __future__ import annotations

import json

import pytest

from ebbtide.app.run import _gravest
from tests.cli.command import ebbtide
from tests.hottier.tier import NOW, TABLE, Hot

_POLICY = "policies:\n  - {name: p, select: {tables: [lake.**]}, versions: {older_than: 30d}}\n"


def _with_a_policy(hot: Hot) -> None:
    (hot.root / "policies").mkdir()
    (hot.root / "policies" / "p.yml").write_text(_POLICY, encoding="utf-8")


def _files(hot: Hot) -> int:
    return len(list(hot.cold().table.scan().plan_files()))


@pytest.mark.jvm
def test_a_run_of_the_project_tiers_joins_small_files_and_sweeps(hot: Hot) -> None:
    hot.fill(1, 2).added()
    for n in range(5):
        hot.sql.execute("INSERT INTO m VALUES (%s, '2024-01-01 10:00+00', 'small', 1)", [n])
        hot.sync()
    rows, position, files = hot.in_lake(), hot.cold().position(), _files(hot)
    with hot.tide as tide, tide.project.connections.database(tide.project.state).writer() as state:
        state.connection.exec_driver_sql("UPDATE hot_tables SET added_at = '2024-01-19T00:00:00.000000Z'")
    _with_a_policy(hot)
    done = ebbtide("run", "--yes", "--json", "--as-of", "2024-01-20T12:00:00Z", cwd=hot.root)
    told = json.loads(done.stdout)
    assert (done.returncode, told["exit_code"], told["error"]) == (0, 0, None), done.stderr
    assert (told["tier"][0]["table"], told["tier"][0]["dropped"]) == (TABLE, ["m_1", "m_2", "m_3", "m_4"])
    assert told["sweep"] is not None
    assert told["tier"][0]["notices"] == [f"{files - 1} small files of lake.hot.m were joined into 1"]
    assert (_files(hot), hot.in_lake(), hot.cold().position()) == (2, rows, position)
    head = hot.cold().table.current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert "ebbtide.hot.position" in head.summary.additional_properties
    assert hot.run().errors == ()
    assert hot.cold().table.properties["ebbtide.hot.compacted"].startswith("2024-01-20T12:00")


def test_a_lake_that_cannot_be_planned_keeps_no_chunk(hot: Hot) -> None:
    hot.fill(1, 2).added()
    with hot.tide as tide:
        result = tide.run(as_of=NOW)
    assert result.error is not None  # it has no policies
    assert result.tier[0].dropped == ("m_1", "m_2", "m_3", "m_4")
    assert result.exit_code == 2


def test_a_tier_that_cannot_be_read_is_told(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.write(_POLICY)
    with hot.tide as tide:
        result = tide.run(as_of=NOW, dry_run=True)
    assert (result.tier, result.exit_code) == ((), 2)


@pytest.mark.parametrize(
    ("codes", "gravest"), [([], 0), ([0, 0], 0), ([0, 2], 2), ([3, 2], 3), ([3, 4, 0], 4), ([4, 1], 1)]
)
def test_the_graver_exit_code_is_the_runs(codes: list[int], gravest: int) -> None:
    assert _gravest(codes) == gravest
