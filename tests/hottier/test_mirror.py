"""What the mirror brings into the lake is what the server has: every row once, in the log's order (spec §6)."""

from __future__ import annotations

from tests.hottier.tier import Hot


def test_the_first_copy_and_later_changes_are_the_same_rows_in_the_lake(hot: Hot) -> None:
    hot.fill(1, 2).added()
    assert hot.in_lake() == hot.here()
    hot.fill(3)
    hot.sql.execute("UPDATE m SET v = 'changed', n = -n WHERE id = 1003")
    hot.sql.execute("DELETE FROM m WHERE id = 2005")
    hot.sql.execute("UPDATE m SET at = at + interval '2 days' WHERE id = 1004")  # a move between chunks
    hot.sql.execute("UPDATE m SET id = 77 WHERE id = 1006")
    hot.sql.execute(
        "INSERT INTO m VALUES (1007, '2024-01-01 00:07+00', 'again', 1) ON CONFLICT (id, at) DO UPDATE SET v = 'upsert'"
    )
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()
