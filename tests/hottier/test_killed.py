"""A run that dies anywhere loses no row and doubles none, and the next one finishes what it began (invariant 4)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app import tier_copy
from ebbtide.app.results.tier import exit_code
from ebbtide.errors import UnreadableError
from ebbtide.hottier import log
from ebbtide.ledger.entries import Intent, Outcome
from tests.hottier.kills import EBBTIDE, SERVER, KilledError, Mortal, Place, dying, end_of_process
from tests.hottier.tier import NOW, POLICY, TABLE, Hot

_ALWAYS = ("after the mirror's commit", "after the intent", "behind the fence", "after the drop")
"""The rest is part of the deep tier."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=() if place in _ALWAYS else pytest.mark.deep) for place in EBBTIDE]
)
def test_a_kill_neither_loses_nor_doubles_a_row(hot: Hot, place: str) -> None:
    hot.fill(1, 2).added()
    hot.fill(3)
    hot.sql.execute("UPDATE m SET v = 'changed' WHERE id = 1001")
    before = hot.here()
    with dying(EBBTIDE[place], end_of_process), pytest.raises(KilledError):
        hot.run()
    keys = [row[:2] for row in hot.in_lake()]
    assert len(keys) == len(set(keys))
    assert {row[:2] for row in before if row[1].day < 3} <= set(keys)
    result = hot.run()
    assert result.errors == ()
    assert hot.in_lake() == before
    assert not hot.chunks_here()
    assert hot.status().mirror == "STREAMING"
    assert {chunk.state for chunk in hot.status().chunks if chunk.name.startswith("m_") and "_p" not in chunk.name} == {
        "dropped"
    }
    _assert_closed(hot)


def _assert_closed(hot: Hot) -> None:
    """Every intent has its outcome."""
    with hot.tide as tide:
        entries = tide.ledger.entries()
    begun = {entry.says["act"] for entry in entries if entry.kind == Intent.KIND}
    assert begun == {entry.says["act"] for entry in entries if entry.kind == Outcome.KIND}


def test_an_immediate_shutdown_of_the_server_neither_loses_nor_doubles_a_row(mortal: Mortal) -> None:
    """One server, killed in the first copy and then in every place; a chunk is due after each of them."""
    hot = mortal.hot
    days = range(1, len(SERVER) + 1)
    for day in days[4:]:
        hot.sql.execute(
            f"CREATE TABLE m_{day} PARTITION OF m FOR VALUES FROM ('2024-01-{day:02} 00:00+00')"
            f" TO ('2024-01-{day + 1:02} 00:00+00')"
        )
    hot.fill(*days)
    _killed_in_the_first_copy(mortal)
    expected = {row[:2]: row for row in hot.here()}
    for day, (name, place) in zip(days, SERVER.items(), strict=True):
        n = 90_000 + day
        hot.sql.execute("UPDATE m SET v = %s WHERE id = %s", [name, day * 1000 + 1])
        hot.sql.execute("INSERT INTO m VALUES (%s, make_timestamptz(2024, 1, %s, 9, 0, 0, 'UTC'), 'new', 1)", [n, day])
        expected |= {row[:2]: row for row in hot.here()}
        now = datetime(2024, 1, 11 + day, 12, tzinfo=UTC)
        with dying(place, mortal.kill):
            assert hot.run(now).errors, name
        assert mortal.is_dead, name
        mortal.revive()
        result = hot.run(now)
        assert (result.errors, result.mirror) == ((), "STREAMING"), name
        assert f"m_{day}" not in hot.partitions(), name
        assert hot.in_lake() == [expected[key] for key in sorted(expected)], name
        assert hot.here() == [row for row in hot.in_lake() if row[1].day > day], name
    _assert_closed(hot)


def _killed_in_the_first_copy(mortal: Mortal) -> None:
    hot = mortal.hot
    rows = Place(tier_copy, "rows_of", after=True)
    with hot.tide as tide:
        tide.tier.init()
        with dying(rows, mortal.kill), pytest.raises(UnreadableError):
            tide.tier.add(TABLE)
        mortal.revive()
        assert hot.run().dropped == ()
        tide.tier.resync(TABLE)
    assert hot.in_lake() == hot.here()


def test_a_log_that_is_told_again_brings_no_row_twice(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An immediate shutdown confirms a slot to less than it was."""
    hot.fill(1).added()
    hot.fill(2)
    before = hot.here()
    with monkeypatch.context() as patch:
        patch.setattr(log, "advance", lambda *_: None)
        hot.sync()
        hot.sync()
        assert hot.in_lake() == before
    hot.sync()
    assert hot.in_lake() == before


def test_a_log_that_is_told_again_loses_no_row_behind_it(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """What describes a chunk's rows is told with the first of them, and once."""
    hot.fill(1).added()
    hot.fill(2)
    monkeypatch.setattr(log, "advance", lambda *_: None)
    hot.sync()
    hot.sql.execute("UPDATE m SET id = id + 500 WHERE id < 2010 AND id > 2000")
    hot.sync()
    assert hot.in_lake() == hot.here()


_SECRET = "v of somebody"


def _no_folder_to_write_into(lake: Path) -> str:
    shutil.rmtree(lake / "data")
    (lake / "data").write_text(_SECRET, encoding="utf-8")
    return "NotADirectoryError"


def _rows_that_nobody_can_read(lake: Path) -> str:
    for file in (lake / "data").rglob("*.parquet"):
        file.write_text(_SECRET * 10, encoding="utf-8")
    return "ArrowInvalid"


def _no_list_of_its_files(lake: Path) -> str:
    for file in (lake / "metadata").glob("*.avro"):
        file.unlink()
    return "FileNotFoundError"


@pytest.mark.parametrize(
    "broken",
    [
        _no_folder_to_write_into,
        pytest.param(_rows_that_nobody_can_read, marks=pytest.mark.deep),
        pytest.param(_no_list_of_its_files, marks=pytest.mark.deep),
    ],
)
def test_storage_of_one_table_that_fails_does_not_end_the_run_for_others(
    hot: Hot, broken: Callable[[Path], str]
) -> None:
    hot.write(POLICY + POLICY.replace("public.m", "public.k").replace("hot.m", "hot.k"))
    hot.sql.execute("CREATE TABLE k (LIKE m, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE k_1 PARTITION OF k FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.fill(1).added()
    with hot.tide as tide:
        tide.tier.add("public.k")
        hot.sql.execute("INSERT INTO k VALUES (1, '2024-01-01 10:00+00', 'x', 1)")
        hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'x', 1)")
        hot.sql.execute("DELETE FROM m WHERE id = 1001")
        lake = hot.root / "lake" / "hot" / "m"
        shutil.copytree(lake, hot.root / "whole")
        kind = broken(lake)
        results = {result.table: result for result in tide.tier.run(as_of=NOW)}
        assert results["public.k"].dropped == ("k_1",)
        assert results["public.k"].errors == ()
        (said,) = results[TABLE].errors
        assert said.startswith(f"public.m or lake.hot.m: {kind}")
        assert _SECRET not in said
        assert "at_day" not in said
        assert (results[TABLE].dropped, exit_code(list(results.values()))) == ((), 4)
        shutil.rmtree(lake)
        shutil.copytree(hot.root / "whole", lake)
        assert tide.tier.run(TABLE, as_of=NOW)[0].dropped == ("m_1", "m_2", "m_3", "m_4")


def test_the_run_that_finishes_says_so_and_a_second_one_changes_nothing(hot: Hot) -> None:
    hot.fill(1, 2).added()
    with hot.tide as tide:
        first = tide.tier.run(TABLE, as_of=NOW)[0]
        size = len(tide.ledger.entries())
        second = tide.tier.run(TABLE, as_of=NOW)[0]
        assert len(tide.ledger.entries()) == size
    assert (len(first.dropped), second.dropped, second.tiered) == (4, (), ())
