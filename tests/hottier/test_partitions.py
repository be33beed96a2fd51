"""Chunks that somebody else made (spec §6)."""

from __future__ import annotations

from tests.hottier.tier import TABLE, Hot

_NAMED = "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'm_9'"
_RANGE = "FOR VALUES FROM ('2024-01-09+00') TO ('2024-01-10+00')"


def test_a_partition_that_was_made_by_hand_is_followed(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"CREATE TABLE m_9 PARTITION OF m {_RANGE}")
    hot.fill(9)
    hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 9003")
    assert hot.sync().mirror == "STREAMING"
    assert hot.sql.execute(_NAMED).fetchone() == (1,)
    assert hot.in_lake() == hot.here()
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-09 10:00+00', 'later', 1)")
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_a_partition_that_was_attached_with_rows_takes_a_resync(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute("CREATE TABLE m_9 (LIKE m INCLUDING ALL)")
    hot.sql.execute("INSERT INTO m_9 VALUES (1, '2024-01-09 10:00+00', 'before', 1)")
    hot.sql.execute(f"ALTER TABLE m ATTACH PARTITION m_9 {_RANGE}")
    hot.sql.execute("INSERT INTO m VALUES (2, '2024-01-09 10:00+00', 'behind', 1)")
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert "does not name m_9" in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert hot.in_lake() == hot.here()


def test_a_partition_that_is_being_written_into_is_adopted_later(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"CREATE TABLE m_9 PARTITION OF m {_RANGE}")
    writer = hot.another()
    writer.execute("INSERT INTO m VALUES (1, '2024-01-09 10:00+00', 'open', 1)")
    assert hot.sync().mirror == "STREAMING"
    assert hot.sql.execute(_NAMED).fetchone() == (0,)
    writer.commit()
    assert hot.sync().mirror == "STREAMING"
    assert hot.sql.execute(_NAMED).fetchone() == (1,)
    assert hot.in_lake() == hot.here()
