"""Columns that change under the mirror: each is followed, or the gate is shut and a resync opens it (spec §6)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.hottier.tier import TABLE, Hot
from tests.tiers import deep_after_first


@pytest.mark.parametrize(
    ("change", "write"),
    deep_after_first(
        ("ADD j json", """INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, '{"a": 1}')"""),
        ("ALTER n TYPE numeric", "UPDATE m SET n = 123.456789 WHERE id = 1001"),
        ("ADD j numeric", "INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, 1.5)"),
        ("ADD j int4range", "INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, '[1,2)')"),
        first=2,
    ),
)
def test_a_column_that_is_not_mirrored_shuts_the_gate(hot: Hot, change: str, write: str) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"ALTER TABLE m {change}")
    hot.sql.execute(write)
    result = hot.run()
    assert (result.mirror, result.tiered, result.dropped) == ("DEGRADED", (), ())
    assert "has no canonical form" in hot.status().because
    assert "m_1" in hot.chunks_here()


def test_a_column_of_arrays_that_came_later_is_followed_kept_through_toast_and_brought_back(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("ALTER TABLE m ADD tags text[]; ALTER TABLE m_1 ALTER tags SET STORAGE EXTERNAL")
    hot.sql.execute("UPDATE m SET tags = ARRAY['a', NULL, repeat('x', 9000)] WHERE id = 1001")
    hot.sql.execute("UPDATE m SET tags = '{}' WHERE id = 1002")
    assert hot.sync().mirror == "STREAMING"
    hot.sql.execute("UPDATE m SET v = 'again' WHERE id = 1001")  # its array is left out of the log
    assert hot.sync().mirror == "STREAMING"
    here = "SELECT id, at, v, tags FROM m ORDER BY id"
    before = hot.sql.execute(here).fetchall()
    assert hot.in_lake(["id", "at", "v", "tags"]) == before
    assert "m_1" in hot.run().dropped
    with hot.tide as tide:
        tide.tier.untier(TABLE, "m_1")
    assert hot.sql.execute(here).fetchall() == [row for row in before if row[1].day == 1]


def test_a_column_that_idle_chunks_got_is_in_the_lake_before_a_row_brings_it(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute("ALTER TABLE m ADD w int")
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}
    assert [row[1] for row in hot.in_lake(["id", "w"])] == [None] * 20


@pytest.mark.parametrize(
    ("change", "said"),
    deep_after_first(
        ("ALTER TABLE m ADD w int NOT NULL DEFAULT 5", "column w was added with a value"),
        ("ALTER TABLE m RENAME v TO w", "column v is called w"),
        ("ALTER TABLE m DROP v; ALTER TABLE m ADD v text; ALTER TABLE m ADD w text", "column v is another one"),
    ),
)
def test_what_a_columns_change_did_to_rows_that_are_there_takes_a_resync(hot: Hot, change: str, said: str) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute(change)
    hot.sql.execute("UPDATE m SET w = '7' WHERE id = 1003")
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert said in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    here = hot.sql.execute("SELECT id, at, w FROM m ORDER BY id").fetchall()
    assert hot.in_lake(["id", "at", "w"]) == here
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


def test_a_column_that_was_renamed_and_called_back_is_not_taken_for_empty(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute("ALTER TABLE m RENAME v TO w")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'kept', 1)")
    hot.sql.execute("ALTER TABLE m RENAME w TO v")
    assert hot.sync().mirror == "DEGRADED"
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert hot.in_lake() == hot.here()


def test_a_wider_numeric_is_followed(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("ALTER TABLE m ALTER n TYPE numeric(16, 2)")
    hot.sql.execute("UPDATE m SET n = 99999999999999.11 WHERE id = 1001")
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()
    assert hot.in_lake()[0][3] == Decimal("99999999999999.11")
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


@pytest.mark.parametrize(
    ("first", "then", "value"), deep_after_first(("int", "bigint", "5000000000"), ("real", "float8", "1e300"))
)
def test_a_wider_type_is_followed_by_a_resync(hot: Hot, first: str, then: str, value: str) -> None:
    hot.sql.execute(f"ALTER TABLE m ADD w {first}")
    hot.fill(1, 2).added()
    hot.sql.execute("UPDATE m SET w = 1 WHERE id = 1001")
    hot.sync()
    hot.sql.execute(f"ALTER TABLE m ALTER w TYPE {then}")
    hot.sql.execute(f"UPDATE m SET w = {value} WHERE id = 1002")
    assert hot.sync().mirror == "DEGRADED"  # a rewrite
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    hot.sql.execute(f"UPDATE m SET w = {value} WHERE id = 1003")
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake(["id", "at", "w"]) == hot.sql.execute("SELECT id, at, w FROM m ORDER BY id").fetchall()
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


def test_a_type_that_the_lake_cannot_turn_into_is_said_and_nothing_changes(hot: Hot) -> None:
    hot.fill(1).added()
    before = hot.in_lake()
    hot.sql.execute("ALTER TABLE m ALTER n TYPE text USING 'x'")
    assert hot.sync().mirror == "DEGRADED"
    with hot.tide as tide, pytest.raises(Exception, match="column n is string here and decimal"):
        tide.tier.resync(TABLE)
    assert hot.in_lake() == before
    assert hot.status().mirror == "DEGRADED"


def test_a_chunk_that_was_proven_before_a_column_came_is_proven_again(hot: Hot) -> None:
    hot.fill(1, 2).added()
    assert hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC)).tiered == ("m_1", "m_2")
    hot.sql.execute("ALTER TABLE m ADD w int")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-04 10:00+00', 'a', 1, 5)")
    result = hot.run()
    assert (set(result.dropped), result.errors) == ({"m_1", "m_2", "m_3", "m_4"}, ())


def test_a_column_that_is_called_like_the_partition_is_a_column(hot: Hot) -> None:
    hot.sql.execute("ALTER TABLE m ADD at_day date")
    hot.fill(1).added()
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


@pytest.mark.parametrize("value", ["20000-01-01+00", "0044-03-15 00:00+00 BC"])
@pytest.mark.parametrize("type_", deep_after_first("timestamptz", "timestamp", "date"))
def test_a_time_beyond_the_calendar_shuts_the_gate(hot: Hot, type_: str, value: str) -> None:
    hot.sql.execute(f"ALTER TABLE m ADD e {type_}")
    hot.fill(1).added()
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-04 10:00+00', 'a', 1, %s)", [value])
    result = hot.sync()
    assert (result.mirror, result.refused) == ("DEGRADED", True)
    assert "column e holds a time beyond the calendar" in result.errors[0]


def test_a_brought_back_chunk_has_the_columns_of_today(hot: Hot) -> None:
    hot.fill(1, 2).added()
    before = hot.here()
    hot.run()
    hot.sql.execute("ALTER TABLE m ADD w int")
    with hot.tide as tide:
        tide.tier.untier(TABLE, "m_1")
    assert hot.here() == [row for row in before if row[1].day == 1]
