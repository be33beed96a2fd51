"""What a person confirms is what goes from the lake, and nothing beside it: TRUNCATE and resync (spec §6)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ebbtide.errors import EbbtideError, RefusedError
from tests.hottier.tier import POLICY, TABLE, Hot
from tests.tiers import deep_after_first

_MID = datetime(2024, 1, 10, 12, tzinfo=UTC)


def _lake_days(hot: Hot) -> dict[int, int]:
    days = [row[1].day for row in hot.in_lake()]
    return {day: days.count(day) for day in sorted(set(days))}


def _half_days(hot: Hot) -> Hot:
    """Two chunks on 1 January: their rows share files of the lake."""
    hot.sql.execute("DROP TABLE m_1")
    for name, first, last in (("a", "01-01 00:00", "01-01 12:00"), ("b", "01-01 12:00", "01-02 00:00")):
        hot.sql.execute(
            f"CREATE TABLE mh_{name} PARTITION OF m FOR VALUES FROM ('2024-{first}+00') TO ('2024-{last}+00')"
        )
    hot.sql.execute(
        "INSERT INTO m SELECT g, '2024-01-01+00'::timestamptz + g * interval '1 hour', 'x', 1"
        " FROM generate_series(0, 23) g"
    )
    return hot


@pytest.mark.parametrize("dropped", deep_after_first(True, False))
def test_a_confirmed_truncate_leaves_the_rows_of_chunks_beside_it(hot: Hot, dropped: bool) -> None:
    _half_days(hot).added()
    if dropped:
        assert hot.run(datetime(2024, 1, 11, 18, tzinfo=UTC)).dropped == ("mh_a",)
    hot.sql.execute("TRUNCATE mh_b")
    assert hot.sync().mirror == "STOPPED"
    with hot.tide as tide:
        assert tide.tier.sync(TABLE, confirm=True)[0].mirror == "STREAMING"
    assert [row[0] for row in hot.in_lake()] == list(range(12))


def test_a_resync_takes_nothing_that_a_stopped_mirror_has_not_been_confirmed(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.run(_MID)
    hot.sql.execute("TRUNCATE m_1")
    assert hot.sync().mirror == "STOPPED"
    with hot.tide as tide:
        with pytest.raises(RefusedError, match="nobody confirmed"):
            tide.tier.resync(TABLE)
        assert (_lake_days(hot), hot.status().mirror) == ({1: 20, 2: 20}, "STOPPED")
        tide.tier.resync(TABLE, confirm=True)
    assert _lake_days(hot) == {2: 20}


def test_a_stop_past_the_ceiling_still_waits_for_its_confirmation(hot: Hot) -> None:
    hot.write(POLICY.replace("ahead: 1", "ahead: 1, delete_share: 0.9, max_retained: 1048576"))
    hot.fill(1, 2).added()
    hot.sql.execute("TRUNCATE m_1")
    hot.sync()
    hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
    assert hot.sync().mirror == "DEGRADED"
    hot.fill(1, rows=10)  # so many that the share alone says nothing
    for _ in range(2):
        with hot.tide as tide, pytest.raises(RefusedError, match="nobody confirmed"):
            tide.tier.resync(TABLE)
        hot.sync()
    assert _lake_days(hot) == {1: 20, 2: 20}


def test_a_resync_of_a_partition_that_is_there_again_and_empty_takes_nothing_unasked(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("DROP TABLE m_1")
    hot.run(_MID)
    hot.sql.execute("CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.sync()
    state = hot.status().mirror
    with hot.tide as tide:
        with pytest.raises(RefusedError, match="chunk m_1 has 0 rows here and 20 in the lake"):
            tide.tier.resync(TABLE)
        assert (_lake_days(hot), hot.status().mirror) == ({1: 20, 2: 20}, state)
        tide.tier.resync(TABLE, confirm=True)
    assert _lake_days(hot) == {2: 20}


def test_rows_that_go_while_a_resync_begins_are_counted_where_the_copy_sees_them(
    hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebbtide.hottier import setup

    hot.fill(1, 2).added()
    publish = setup.publish

    def late(*args: object) -> object:
        hot.sql.execute("TRUNCATE m_1")
        return publish(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(setup, "publish", late)
        with hot.tide as tide, pytest.raises(RefusedError, match="chunk m_1 has 0 rows here and 20 in the lake"):
            tide.tier.resync(TABLE)
    assert _lake_days(hot) == {1: 20, 2: 20}
    assert hot.run().dropped == ()
    with hot.tide as tide:
        tide.tier.resync(TABLE, confirm=True)
    assert hot.in_lake() == hot.here()


def test_a_resync_never_writes_into_another_tables_cold_table(hot: Hot) -> None:
    hot.write(POLICY + POLICY.replace("public.m", "public.k").replace("hot.m", "hot.k"))
    hot.sql.execute("CREATE TABLE k (LIKE m, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE k_1 PARTITION OF k FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.sql.execute("INSERT INTO k SELECT g, '2024-01-01 10:00+00', 'other', 1 FROM generate_series(1, 7) g")
    hot.fill(1).added()
    with hot.tide as tide:
        tide.tier.add("public.k")
        tide.tier.remove("public.k")
    hot.write(POLICY.replace("hot.m", "hot.k"))
    with hot.tide as tide, pytest.raises(EbbtideError, match=r"was added with lake\.hot\.m"):
        tide.tier.resync(TABLE, confirm=True)
    assert {row[2] for row in hot.in_lake()} == {"other"}


def test_a_cold_table_that_another_mirror_wrote_is_not_taken_over_by_a_resync(hot: Hot) -> None:
    hot.fill(1).added()
    with hot.tide as tide:
        database = tide.project.connections.database(tide.project.state)
        with database.writer() as state:
            state.connection.exec_driver_sql("UPDATE hot_tables SET slot = 'ebbtide_other'")
        with pytest.raises(RefusedError, match="another mirror"):
            tide.tier.resync(TABLE, confirm=True)
    assert len(hot.in_lake()) == 20


def test_a_position_that_expired_is_got_past_by_a_resync(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.lose_first_day()  # the head is somebody else's
    table = hot.cold().table
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:-1]]).commit()
    assert hot.sync().mirror == "DEGRADED"
    assert "no longer says how far it is" in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()
