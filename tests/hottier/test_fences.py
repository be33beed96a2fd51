"""A fence lets writers in again, whoever reads, and a drop that failed is told and tried again (spec §6)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.app.results.tier import exit_code
from ebbtide.app.tier_opened import hot_tables
from ebbtide.hottier import fence as fence_of
from ebbtide.hottier import owner
from ebbtide.hottier.fence import fence
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find
from tests.hottier.tier import NOW, TABLE, Hot

_MID = datetime(2024, 1, 10, 12, tzinfo=UTC)
_FENCES = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'ebbtide_fence%' AND tgenabled <> 'D'"


def _fenced(hot: Hot, n: int = 0) -> None:
    table = hot_tables(hot.tide.project)[TABLE]
    with connect(table.server) as session:
        found = find(session, table)
        fence(session, found, found.chunks[n])


def test_a_reader_keeps_a_chunk_from_its_drop_and_no_writer_out(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.run(_MID)
    reader = hot.another()
    reader.execute("SELECT count(*) FROM m_1")
    result = hot.run()
    assert "m_1" not in result.dropped
    assert any("m_1 is not dropped" in error for error in result.errors)
    assert exit_code([result]) == 4
    hot.sql.execute("UPDATE m SET v = 'open' WHERE id = 1001")
    assert hot.run().mirror == "STREAMING"
    reader.rollback()
    assert "m_1" in hot.run().dropped
    assert (1001, "open") in [(row[0], row[2]) for row in hot.in_lake()]


def test_a_fence_of_a_run_that_died_comes_down_beside_a_reader_and_one_leaf_stops_no_other(hot: Hot) -> None:
    hot.fill(1, 2).added()
    _fenced(hot, 0)
    _fenced(hot, 1)
    reader = hot.another()
    reader.execute("SELECT count(*) FROM m_1")
    holder = hot.another()
    holder.execute("LOCK TABLE ONLY m_1 IN SHARE MODE")
    hot.fill(4)
    result = hot.sync()
    assert result.mirror == "STREAMING"
    assert any("m_1" in notice and "fence" in notice for notice in result.notices)
    hot.sql.execute("UPDATE m_2 SET v = 'open' WHERE id = 2001")
    holder.rollback()
    hot.sync()
    hot.sql.execute("UPDATE m SET v = 'open' WHERE id = 1001")
    assert hot.sql.execute(_FENCES).fetchone() == (0,)
    reader.rollback()
    hot.sync()
    assert hot.sql.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'ebbtide_fence%'").fetchone() == (0,)


def test_a_fence_comes_down_also_where_the_table_is_refused(hot: Hot) -> None:
    hot.fill(1).added()
    _fenced(hot)
    hot.write("  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n")
    assert hot.sync().refused
    hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 1001")


def test_removing_a_table_takes_its_fences_down(hot: Hot) -> None:
    hot.fill(1).added()
    _fenced(hot)
    with hot.tide as tide:
        tide.tier.remove(TABLE)
    hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 1001")


def test_a_fence_that_stands_disabled_is_put_up_again(hot: Hot) -> None:
    hot.fill(1).added()
    _fenced(hot)
    reader = hot.another()
    reader.execute("SELECT count(*) FROM m_1")
    hot.sync()
    reader.rollback()
    _fenced(hot)
    with pytest.raises(Exception, match="is being moved to the lake"):
        hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 1001")


def test_a_chunk_whose_drop_failed_is_proven_anew(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.run(_MID)
    kept = hot.cold().table.current_snapshot()
    assert kept is not None
    hot.lose_first_day()
    result = hot.run()
    assert (exit_code([result]), hot.chunk("m_1").state) == (4, "active")
    hot.cold().table.manage_snapshots().rollback_to_snapshot(kept.snapshot_id).commit()
    assert hot.run().dropped == ("m_1",)


def test_a_drop_by_name_that_failed_is_an_error(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.run(_MID)
    hot.lose_first_day()
    with hot.tide as tide:
        result = tide.tier.drop(TABLE, "m_1", as_of=NOW)
    assert any("digests differ" in error for error in result.errors)
    assert (result.dropped, exit_code([result])) == ((), 4)
    with hot.tide as tide:
        again = tide.tier.drop(TABLE, "m_1", as_of=NOW)
    assert again.errors == ("chunk m_1 stays: digests differ: 20 rows here, 0 in the lake",)


def test_a_column_that_came_behind_the_digests_keeps_the_chunk(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default is in no row of the log: the lake would have none."""
    hot.fill(1, 2).added()
    hot.run(_MID)
    really = fence_of.drop
    changes = ["ALTER TABLE m ADD COLUMN c int DEFAULT 5"]

    def later(*arguments: Any) -> None:
        while changes:
            hot.sql.execute("SET lock_timeout = '5s'")
            hot.sql.execute(changes.pop())
        really(*arguments)

    monkeypatch.setattr(owner, "drop", later)
    result = hot.run()
    assert result.dropped == ()
    assert any("not what it was" in error for error in result.errors)
    assert hot.sql.execute("SELECT c FROM m WHERE id = 1001").fetchone() == (5,)
