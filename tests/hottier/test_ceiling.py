"""No mirror fills a server's disk, whatever keeps it from reading, and no slot is forgotten (spec §6)."""

from __future__ import annotations

import pytest

from ebbtide.app.hot_places import hot_tables_of
from ebbtide.app.results.tier import exit_code
from ebbtide.app.state import open_state
from ebbtide.errors import InputError, RefusedError
from tests.hottier.tier import NOW, POLICY, TABLE, Hot
from tests.tiers import deep_after_first

_PLAIN = "  - {name: public.z, time: at, chunk: 1d, drop_after: 10d}\n"


def _slots(hot: Hot) -> int:
    row = hot.sql.execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def _default_partition(hot: Hot) -> None:
    hot.sql.execute("CREATE TABLE m_d PARTITION OF m DEFAULT")


def _no_catalog(hot: Hot) -> None:
    (hot.root / "catalog.db").rename(hot.root / "x.db")
    (hot.root / "catalog.db").mkdir()


def _no_file_for_it(hot: Hot) -> None:
    hot.write(_PLAIN)


@pytest.mark.parametrize("broken", deep_after_first(_default_partition, _no_catalog))
def test_a_mirror_that_cannot_even_look_gives_the_servers_log_free_at_the_ceiling(hot: Hot, broken: object) -> None:
    assert callable(broken)
    hot.write(POLICY.replace("ahead: 1", "ahead: 1, max_retained: 4194304"))
    hot.fill(1).added()
    broken(hot)
    hot.sync()
    assert _slots(hot) == 1  # below the ceiling nothing goes
    hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
    result = hot.sync()
    assert (_slots(hot), result.mirror) == (0, "DEGRADED")
    assert any("before the disk was full" in error for error in result.errors)


def test_a_table_that_no_file_names_any_more_is_an_error_until_it_is_removed(hot: Hot) -> None:
    hot.fill(1).added()
    _no_file_for_it(hot)
    with hot.tide as tide:
        results = tide.tier.run(as_of=NOW)
        (left,) = [result for result in results if result.table == TABLE]
        assert "no file of hottier/ names it" in left.errors[0]
        assert exit_code(results) == 4
        # No certificate may say that nothing was left out: its rows are where they were.
        tables, unknown = hot_tables_of(tide.project, open_state(tide.project))
        assert ([each.id for each in tables], [each.place for each in unknown]) == (["public.z"], [TABLE])
        told = tide.tier.remove(TABLE, dry_run=True)
        assert (told.state, _slots(hot)) == ("would be removed", 1)
        tide.tier.remove(TABLE)
        assert _slots(hot) == 0
        assert hot.sql.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
        assert [result.table for result in tide.tier.run(as_of=NOW)] == ["public.z"]


def test_a_table_without_a_file_is_not_forgotten_while_its_slot_is_out_of_reach(hot: Hot) -> None:
    hot.fill(1).added()
    hot.dsn = hot.dsn.rsplit("=", 1)[0] + "=postgres"
    _no_file_for_it(hot)
    with hot.tide as tide:
        with pytest.raises(RefusedError, match="its slot"):
            tide.tier.remove(TABLE)
        assert _slots(hot) == 1
        with pytest.raises(InputError, match="no hot table"):
            tide.tier.remove("public.never")
