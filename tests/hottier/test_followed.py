"""What the mirror follows, and what it stops at rather than guess (spec §6)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest

from ebbtide.app.tier_opened import hot_tables
from ebbtide.errors import EbbtideError, InputError, RefusedError
from ebbtide.hottier import log
from ebbtide.hottier.setup import name_for
from tests.hottier.tier import NOW, POLICY, TABLE, Hot
from tests.tiers import deep_after_first


def test_savepoints_and_aborted_transactions_leave_what_was_committed(hot: Hot) -> None:
    hot.added()
    session = hot.another()
    session.execute("INSERT INTO m VALUES (1, '2024-01-01 01:00+00', 'kept', 1)")
    session.execute("SAVEPOINT s")
    session.execute("INSERT INTO m VALUES (2, '2024-01-01 01:00+00', 'undone', 1)")
    session.execute("ROLLBACK TO s")
    session.execute("UPDATE m SET v = 'kept twice' WHERE id = 1")
    session.commit()
    session.execute("INSERT INTO m VALUES (3, '2024-01-01 01:00+00', 'aborted', 1)")
    session.rollback()
    hot.sync()
    assert hot.in_lake() == hot.here()
    assert [row[2] for row in hot.in_lake()] == ["kept twice"]


def test_what_toast_left_out_is_the_value_from_before(hot: Hot) -> None:
    hot.sql.execute("ALTER TABLE m ALTER v SET STORAGE EXTERNAL")
    hot.sql.execute("ALTER TABLE m_1 ALTER v SET STORAGE EXTERNAL")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 01:00+00', repeat('x', 9000), 1)")
    hot.added()
    hot.sql.execute("UPDATE m SET n = 2 WHERE id = 1")  # the cold table has the value
    hot.sql.execute("INSERT INTO m VALUES (2, '2024-01-01 02:00+00', repeat('y', 9000), 1)")
    hot.sql.execute("UPDATE m SET n = 3 WHERE id = 2")  # the batch has it
    hot.sql.execute("UPDATE m SET id = 5 WHERE id = 2")  # under another key
    hot.sql.execute("UPDATE m SET n = 9 WHERE id = 5")
    hot.sync()
    assert hot.in_lake() == hot.here()
    hot.sql.execute("ALTER TABLE m_1 REPLICA IDENTITY FULL")
    hot.sql.execute("UPDATE m SET n = 4, id = 7 WHERE id = 1")
    hot.sync()
    assert hot.in_lake() == hot.here()


def test_a_truncate_stops_the_mirror_until_a_person_confirms(hot: Hot) -> None:
    hot.fill(1, 2).added()
    before = hot.here()
    hot.fill(3)
    hot.sql.execute("TRUNCATE m_1")
    hot.fill(4)
    result = hot.sync()
    assert result.mirror == "STOPPED"
    assert "TRUNCATE" in result.errors[0]
    assert [row for row in hot.in_lake() if row[1].day == 1] == [row for row in before if row[1].day == 1]
    assert len(hot.in_lake()) == 60  # what came before it
    assert hot.run().dropped == ()
    with hot.tide as tide:
        assert tide.tier.sync(TABLE, confirm=True)[0].mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_a_delete_of_a_large_share_stops_the_mirror_until_a_person_confirms(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 1001 AND 1006")  # 30 %: no more than the limit
    assert hot.sync().mirror == "STREAMING"
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 1007 AND 1012")
    result = hot.sync()
    assert result.mirror == "STOPPED"
    assert "a DELETE of 6 of the 14 rows of chunk m_1" in result.errors[0]
    assert len(hot.in_lake()) == 34
    with hot.tide as tide:
        tide.tier.sync(TABLE, confirm=True)
    assert hot.in_lake() == hot.here()


def test_a_confirmation_is_of_what_was_shown_also_while_others_write(hot: Hot) -> None:
    hot.fill(1, 2, 3).added()
    hot.fill(4)
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 1001 AND 1010")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-04 10:00+00', 'behind it', 1)")
    assert "a DELETE of 10 of the 20 rows of chunk m_1" in hot.sync().errors[0]
    assert len(hot.in_lake()) == 80  # what came before it, and nothing behind it
    hot.sql.execute("TRUNCATE m_2")
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 3001 AND 3010")
    hot.sql.execute("INSERT INTO m VALUES (2, '2024-01-04 10:00+00', 'behind both', 1)")
    with hot.tide as tide:
        (second,) = tide.tier.sync(TABLE, confirm=True)
        assert "a TRUNCATE of chunk m_2" in second.errors[0]
        assert len(hot.in_lake()) == 71
        (third,) = tide.tier.sync(TABLE, confirm=True)
        assert "a DELETE of 10 of the 20 rows of chunk m_3" in third.errors[0]
        assert tide.tier.sync(TABLE, confirm=True)[0].mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_deletes_are_judged_by_transaction_however_the_log_is_read(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    hot.fill(1, 2).added()
    for first in range(1001, 1013, 4):  # 12 of 20 rows, no transaction above 30 % of what is there
        hot.sql.execute("DELETE FROM m WHERE id BETWEEN %s AND %s", [first, first + 2])
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()
    monkeypatch.setattr(log, "peek", partial(log.peek, changes=2))
    session = hot.another()
    for n in range(2001, 2009):  # one transaction of many statements, read in batches of two changes
        session.execute("DELETE FROM m WHERE id = %s", [n])
        hot.sql.execute("INSERT INTO m VALUES (%s, '2024-01-04 10:00+00', 'beside it', 1)", [n])
    session.commit()
    assert "a DELETE of 8 of the 20 rows of chunk m_2" in hot.sync().errors[0]
    assert [row for row in hot.in_lake() if row[1].day == 2 and row[0] == 2001]


def test_rows_of_the_same_backlog_count_as_rows_of_the_chunk(hot: Hot) -> None:
    hot.added().fill(1)
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 1001 AND 1006")
    hot.sql.execute("DELETE FROM m WHERE id BETWEEN 1007 AND 1011")
    assert "a DELETE of 5 of the 14 rows of chunk m_1" in hot.sync().errors[0]


def test_what_one_transaction_takes_from_several_chunks_is_all_shown(hot: Hot) -> None:
    hot.fill(1, 2, 3).added()
    with hot.another() as session:
        session.execute("DELETE FROM m WHERE id BETWEEN 1001 AND 1010 OR id BETWEEN 2001 AND 2020 OR id = 3001")
    (said,) = hot.sync().errors
    assert "a DELETE of 10 of the 20 rows of chunk m_1; a DELETE of 20 of the 20 rows of chunk m_2 (" in said


def test_a_delete_in_a_partition_that_is_gone_is_not_replayed_unseen(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute("CREATE TABLE m_9 PARTITION OF m FOR VALUES FROM ('2024-01-09+00') TO ('2024-01-10+00')")
    hot.fill(9)
    hot.sql.execute("DELETE FROM m_9 WHERE id > 9002")
    hot.sql.execute("DROP TABLE m_9")
    assert "a DELETE of 18 rows of a partition that is gone" in hot.sync().errors[0]
    assert len(hot.in_lake()) == 40
    with hot.tide as tide:
        assert tide.tier.sync(TABLE, confirm=True)[0].mirror == "STREAMING"
    assert len(hot.in_lake()) == 22


def test_an_added_column_becomes_one_of_the_cold_table_and_a_dropped_one_stays_there(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("ALTER TABLE m ADD w integer")
    hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'a', 1, 42)")
    assert hot.sync().mirror == "STREAMING"
    wide = {row[0]: row[1] for row in hot.in_lake(["id", "w"])}
    assert (wide[1], wide[1001]) == (42, None)
    hot.sql.execute("ALTER TABLE m DROP n")
    hot.sql.execute("INSERT INTO m VALUES (2, '2024-01-01 10:00+00', 'b', 43)")
    assert hot.sync().mirror == "STREAMING"
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


@pytest.mark.parametrize(
    ("change", "said"),
    deep_after_first(
        ("ALTER TABLE m ALTER v TYPE varchar(50) USING upper(v)", "a rewrite"),
        ("ALTER TABLE m DETACH PARTITION m_2", "was detached"),
        ("ALTER PUBLICATION {p} SET (publish = 'insert')", "publication was altered"),
        ("ALTER PUBLICATION {p} DROP TABLE m_2; ALTER PUBLICATION {p} ADD TABLE m_2", "publication was altered"),
        ("DROP PUBLICATION {p}", "publication is gone"),
        first=2,
    ),
)
def test_what_the_log_cannot_tell_shuts_the_gate_until_a_resync(hot: Hot, change: str, said: str) -> None:
    hot.fill(1, 2).added()
    hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC))
    name = name_for(hot.sql, "hot", hot_tables(hot.tide.project)[TABLE])
    for statement in change.format(p=name).split(";"):
        hot.sql.execute(statement)
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert said in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert "m_1" in hot.run().dropped


def test_a_crash_between_commit_and_advance_neither_loses_nor_doubles(
    hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    hot.fill(1).added()
    hot.fill(2)
    advance = log.advance
    monkeypatch.setattr(log, "advance", lambda *_: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        hot.sync()
    monkeypatch.setattr(log, "advance", advance)
    hot.fill(3)
    assert hot.sync().mirror == "STREAMING"
    assert hot.in_lake() == hot.here()


def test_a_cold_table_that_was_set_back_shuts_the_gate(hot: Hot) -> None:
    hot.fill(1).added()
    first = hot.cold().table.current_snapshot()
    assert first is not None
    hot.fill(2)
    hot.sync()
    hot.cold().table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert hot.run().mirror == "DEGRADED"
    assert "set back" in hot.status().because


def test_an_idle_table_does_not_keep_the_servers_log(hot: Hot) -> None:
    hot.fill(1).added()
    hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
    hot.sync()
    commits = len(hot.cold().table.history())
    hot.sql.execute("CREATE TABLE another AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
    hot.sync()
    for _ in range(100):  # what else the server does, its own vacuum say, may need the log for a moment
        hot.sync()
        if hot.status().retained_bytes < 4 << 20:
            break
        time.sleep(0.2)
    assert hot.status().retained_bytes < 4 << 20
    assert len(hot.cold().table.history()) == commits  # and the lake gets no empty commits for it


def test_a_mirror_that_stands_still_is_cut_off_before_the_servers_disk_is_full(hot: Hot) -> None:
    hot.write(POLICY.replace("ahead: 1", "ahead: 1, max_retained: 1048576"))
    hot.fill(1).added()
    hot.sql.execute("TRUNCATE m_1")
    assert hot.sync().mirror == "STOPPED"
    hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
    assert hot.sync().mirror == "DEGRADED"
    assert "before the disk was full" in hot.status().because
    assert hot.sql.execute(
        "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    ).fetchone() == (0,)


def test_names_with_quotes_spaces_and_upper_case_are_names(hot: Hot) -> None:
    hot.sql.execute("""CREATE SCHEMA "My ""Schema" """)
    hot.sql.execute(
        """CREATE TABLE "My ""Schema"."T ${x} %s"
        ("I'd" int, "A t" timestamptz, "v; --" text, PRIMARY KEY ("I'd", "A t")) PARTITION BY RANGE ("A t")"""
    )
    hot.sql.execute(
        """CREATE TABLE "My ""Schema"."p'1" PARTITION OF "My ""Schema"."T ${x} %s"
        FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')"""
    )
    hot.sql.execute("""INSERT INTO "My ""Schema"."T ${x} %s" VALUES (1, '2024-01-01 10:00+00', 'x')""")
    name = """My "Schema.T ${x} %25s"""
    hot.write(POLICY.replace("public.m", f"'{name}'").replace("time: at", "time: A t"))
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add(name)
        assert tide.tier.run(name, as_of=NOW)[0].dropped == ("p'1",)


@pytest.mark.parametrize(
    ("statements", "policy", "kind", "said"),
    [
        ([], POLICY.replace("public.m", "public.none"), InputError, "no table public.none"),
        ([], POLICY.replace("time: at", "time: nothing"), InputError, "no time column 'nothing'"),
        (["CREATE VIEW w AS SELECT * FROM m"], POLICY.replace("public.m", "public.w"), InputError, "not a table"),
        ([], POLICY.replace("public.m", "public.m_1"), InputError, "a partition of another table"),
        (["ALTER TABLE m ADD j json"], POLICY, RefusedError, "column j of type json has no canonical form"),
        (["ALTER TABLE m ADD g int GENERATED ALWAYS AS (1) STORED"], POLICY, RefusedError, "column g is generated"),
        (["ALTER TABLE m ENABLE ROW LEVEL SECURITY"], POLICY, RefusedError, "row-level security"),
        (["CREATE TABLE m_d PARTITION OF m DEFAULT"], POLICY, RefusedError, "default partition"),
        (
            ["ALTER TABLE m_1 REPLICA IDENTITY NOTHING"],
            POLICY,
            RefusedError,
            "m_1 has no primary key or replica identity",
        ),
    ],
)
def test_what_cannot_be_tiered_is_refused_before_anything_changes(
    hot: Hot, statements: list[str], policy: str, kind: type[EbbtideError], said: str
) -> None:
    for statement in statements:
        hot.sql.execute(statement)
    hot.write(policy)
    with hot.tide as tide:
        tide.tier.init()
        with pytest.raises(kind) as refused:
            tide.tier.add(next(iter(hot_tables(tide.project))))
    assert said in refused.value.message
    assert hot.sql.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    assert not (hot.root / "catalog.db").exists()


def test_missing_rights_are_named_with_the_grant(hot: Hot) -> None:
    hot.added()
    with hot.tide as tide:
        tide.tier.remove(TABLE)
    hot.sql.execute("DROP ROLE IF EXISTS weak")
    hot.sql.execute("CREATE ROLE weak LOGIN")
    dsn, hot.dsn = hot.dsn, hot.dsn.replace("user=postgres", "user=weak")
    hot.write(POLICY)
    with hot.tide as tide, pytest.raises(RefusedError) as refused:
        tide.tier.add(TABLE)
    hot.dsn = dsn
    hot.sql.execute("DROP ROLE weak")
    for grant in ("ALTER ROLE weak REPLICATION", "GRANT CREATE ON DATABASE", "GRANT postgres TO weak"):
        assert grant in refused.value.message


def test_a_server_that_is_down_says_so_without_its_address(hot: Hot) -> None:
    hot.dsn = "postgresql://me:s3cr3t@127.0.0.1:1/nothing"
    hot.write(POLICY)
    with hot.tide as tide, pytest.raises(EbbtideError) as refused:
        tide.tier.add(TABLE)
    assert refused.value.exit_code == 4
    assert "nothing listens there" in refused.value.message
    assert "s3cr3t" not in refused.value.message + str(refused.value.hint)


def test_a_dry_run_shows_every_statement_and_changes_nothing(hot: Hot) -> None:
    with hot.tide as tide:
        tide.tier.init()
        told = tide.tier.add(TABLE, dry_run=True)
    assert told.statements[0].startswith("CREATE PUBLICATION")
    assert any("ATTACH PARTITION" in statement for statement in told.statements)
    assert told.statements[-1].startswith("CREATE_REPLICATION_SLOT")
    assert hot.sql.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    assert hot.status().mirror == "OFF"


def test_removing_a_table_ends_its_mirror_and_no_row_goes(hot: Hot) -> None:
    hot.fill(1, 2).added()
    here, lake = hot.here(), hot.in_lake()
    with hot.tide as tide:
        tide.tier.remove(TABLE)
    assert (hot.here(), hot.in_lake()) == (here, lake)
    assert hot.sql.execute(
        "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    ).fetchone() == (0,)


def test_another_servers_log_is_not_taken_for_this_one(hot: Hot) -> None:
    hot.fill(1).added()
    with hot.tide as tide, psycopg.connect(hot.dsn):
        database = tide.project.connections.database(tide.project.state)
        with database.writer() as state:
            state.connection.exec_driver_sql("UPDATE hot_tables SET timeline = timeline + 1")
    assert hot.run().mirror == "DEGRADED"
    assert "promoted" in hot.status().because
