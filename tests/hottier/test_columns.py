"""Columns that change under the mirror: each is followed, or the gate is shut and a resync opens it (spec §6)."""

from __future__ import annotations

import pytest

from tests.hottier.tier import Hot


@pytest.mark.parametrize(
    ("change", "write"),
    [
        ("ADD j json", """INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, '{"a": 1}')"""),
        ("ADD j numeric", "INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, 1.5)"),
        ("ADD j text[]", "INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, '{a}')"),
        ("ALTER n TYPE numeric", "UPDATE m SET n = 123.456789 WHERE id = 1001"),
    ],
)
def test_a_column_that_is_not_mirrored_shuts_the_gate(hot: Hot, change: str, write: str) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"ALTER TABLE m {change}")
    hot.sql.execute(write)
    result = hot.run()
    assert (result.mirror, result.tiered, result.dropped) == ("DEGRADED", (), ())
    assert "has no canonical form" in hot.status().because
    assert "m_1" in hot.chunks_here()
