"""What a person confirms is what goes from the lake, and nothing beside it: TRUNCATE and resync (spec §6)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.hottier.tier import TABLE, Hot


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


@pytest.mark.parametrize("dropped", [False, True])
def test_a_confirmed_truncate_leaves_the_rows_of_chunks_beside_it(hot: Hot, dropped: bool) -> None:
    _half_days(hot).added()
    if dropped:
        assert hot.run(datetime(2024, 1, 11, 18, tzinfo=UTC)).dropped == ("mh_a",)
    hot.sql.execute("TRUNCATE mh_b")
    assert hot.sync().mirror == "STOPPED"
    with hot.tide as tide:
        assert tide.tier.sync(TABLE, confirm=True)[0].mirror == "STREAMING"
    assert [row[0] for row in hot.in_lake()] == list(range(12))
