"""Chunks that somebody else made, and bounds of every kind (spec §6)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ebbtide.app.tier_opened import cold_of, hot_table, hot_tables
from ebbtide.errors import InputError, RefusedError
from ebbtide.hottier import adopt, copy, log
from ebbtide.hottier.setup import name_for
from tests.hottier.tier import COLUMNS, NOW, POLICY, TABLE, Hot

_NAMED = "SELECT count(*) FROM pg_publication_rel WHERE prrelid = 'm_9'::regclass"
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


def test_a_column_that_came_while_a_partition_was_looked_at_lacks_in_no_row(
    hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"CREATE TABLE m_9 PARTITION OF m {_RANGE}")
    really = adopt.look
    changes = ["ALTER TABLE m ADD COLUMN c int", "INSERT INTO m VALUES (1, '2024-01-09 10:00+00', 'new', 1, 7)"]

    def later(*arguments: Any) -> Any:
        while changes:
            hot.sql.execute(changes.pop(0))
        return really(*arguments)

    monkeypatch.setattr(adopt, "look", later)
    hot.sync()
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_a_large_partition_keeps_its_writers_waiting_for_no_long_time(
    hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot.fill(1).added()
    hot.sql.execute(f"CREATE TABLE m_9 PARTITION OF m {_RANGE}")
    hot.sql.execute(
        "INSERT INTO m SELECT g, '2024-01-09+00'::timestamptz + g * interval '1 second', 'x', 1"
        " FROM generate_series(1, 20000) g"
    )
    with monkeypatch.context() as patch:
        patch.setattr(adopt, "_LONGEST", "1ms")  # for 20,000 rows, each with its md5
        result = hot.sync()
    assert (result.mirror, result.refused) == ("DEGRADED", True)
    assert "while writers wait" in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert hot.in_lake() == hot.here()


def test_a_chunk_without_an_end_is_followed_and_never_due(hot: Hot) -> None:
    hot.sql.execute("CREATE TABLE m_inf PARTITION OF m FOR VALUES FROM ('2024-01-28+00') TO ('infinity')")
    hot.sql.execute("CREATE TABLE m_old PARTITION OF m FOR VALUES FROM ('-infinity') TO ('2024-01-01+00')")
    hot.fill(1).added()
    hot.sql.execute("INSERT INTO m VALUES (1, '2034-01-09 10:00+00', 'far', 1), (2, '1999-01-01+00', 'old', 1)")
    assert set(hot.run().dropped) == {"m_old", "m_1", "m_2", "m_3", "m_4"}
    assert {row[0] for row in hot.in_lake()} >= {1, 2}


@pytest.mark.parametrize("column", ["timestamptz", "date"])
def test_bounds_beyond_the_calendar_are_refused_in_a_line(hot: Hot, column: str) -> None:
    hot.sql.execute(f"CREATE TABLE x (id int, at {column}, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE x_1 PARTITION OF x FOR VALUES FROM ('2024-01-01') TO ('20000-01-01')")
    hot.write(POLICY.replace("public.m", "public.x"))
    with hot.tide as tide:
        tide.tier.init()
        with pytest.raises(RefusedError, match="x_1 has a bound beyond the calendar"):
            tide.tier.add("public.x")


def test_chunks_of_hours_are_none_of_a_table_by_days(hot: Hot) -> None:
    hot.sql.execute("CREATE TABLE x (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.write(POLICY.replace("public.m", "public.x").replace("chunk: 1d", "chunk: 12h"))
    with hot.tide as tide:
        tide.tier.init()
        with pytest.raises(InputError, match="chunks of 12h are parts of one"):
            tide.tier.add("public.x")
    hot.write(POLICY.replace("public.m", "public.x").replace("chunk: 1d", "chunk: 48h"))
    with hot.tide as tide:
        tide.tier.add("public.x")


def test_plain_retention_needs_no_key(hot: Hot) -> None:
    hot.sql.execute("CREATE TABLE x (at timestamptz, v json) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE x_1 PARTITION OF x FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.sql.execute("INSERT INTO x VALUES ('2024-01-01 10:00+00', '{}')")
    hot.write("  - {name: public.x, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n")
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add("public.x")
        assert tide.tier.run(as_of=NOW)[0].dropped == ("x_1",)
    hot.write(POLICY.replace("public.m", "public.x"))
    with hot.tide as tide:
        tide.tier.remove("public.x")
        with pytest.raises(InputError, match="no primary key"):
            tide.tier.add("public.x")


def test_the_same_table_of_two_databases_has_two_slots(hot: Hot) -> None:
    table = hot_tables(hot.tide.project)[TABLE]
    other = hot.another(autocommit=True)
    name = f"{hot.sql.info.dbname}_two"
    other.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(hot.dsn.replace(hot.sql.info.dbname, name)) as there:
        assert name_for(there, "hot", table) != name_for(hot.sql, "hot", table)
        assert name_for(hot.another(), "hot", table) == name_for(hot.sql, "hot", table)
    other.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_wide_rows_come_in_smaller_parts(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_BYTES", 20_000)
    monkeypatch.setattr(copy, "_BYTES", 20_000)
    hot.sql.execute("ALTER TABLE m ALTER v SET STORAGE EXTERNAL; ALTER TABLE m_1 ALTER v SET STORAGE EXTERNAL")
    hot.sql.execute("INSERT INTO m SELECT g, '2024-01-01 10:00+00', repeat('x', 9000), 1 FROM generate_series(1, 10) g")
    hot.added()
    for n in range(11, 21):
        hot.sql.execute("INSERT INTO m VALUES (%s, '2024-01-01 10:00+00', repeat('y', 9000), 1)", [n])
    hot.sql.execute("UPDATE m SET v = v || 'z' WHERE id < 8")  # one transaction above the limit
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_the_statements_of_the_page_make_chunks_of_a_plain_table(hot: Hot) -> None:
    page = (Path(__file__).parents[2] / "docs" / "hottier.md").read_text(encoding="utf-8")
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    hot.sql.execute(f"CREATE TABLE metrics ({COLUMNS})")
    hot.sql.execute("INSERT INTO metrics SELECT g, '2024-01-05 10:00+00', 'x', 1 FROM generate_series(1, 9) g")
    for statement in re.sub(r"^--.*$", "", statements, flags=re.MULTILINE).split(";"):
        if statement.strip():
            hot.sql.execute(statement)
    hot.sql.execute("INSERT INTO metrics VALUES (10, '2024-02-01 10:00+00', 'new', 1)")
    hot.write(POLICY.replace("public.m", "public.metrics"))
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add("public.metrics")
        late = tide.tier.run(as_of=datetime(2024, 2, 11, 12, tzinfo=UTC))[0]
        cold = cold_of(tide.project, hot_table(tide.project, "public.metrics"))
        assert cold is not None
        assert len(cold.table.scan().to_arrow()) == 10
    assert (late.dropped, late.errors) == (("metrics_before",), ())
