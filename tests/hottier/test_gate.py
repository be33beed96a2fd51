"""Nothing is dropped before it is proven durable: each condition of the gate alone keeps a chunk (spec §6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from ebbtide.app.tier_opened import StateBook, hot_tables
from ebbtide.errors import InputError
from ebbtide.hottier import gate, owner
from ebbtide.hottier.fence import fence, seal
from ebbtide.hottier.owner import ChunkOwner
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotReader, HotRecord, MirrorState
from tests.hottier.tier import NOW, POLICY, TABLE, Hot
from tests.tiers import deep_after_first

_DAY = timedelta(days=1)


def test_a_chunk_is_tiered_then_dropped_and_is_still_readable_in_the_lake(hot: Hot) -> None:
    hot.fill(1, 2, 3, 4).added()
    before = hot.here()
    result = hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC))  # older than 7 d: 1 January and 2 January
    assert (result.tiered, result.dropped) == (("m_1", "m_2"), ())
    assert hot.here() == before
    result = hot.run(datetime(2024, 1, 13, tzinfo=UTC))  # older than 10 d: 1 January; strictly, so not 2 January
    assert result.dropped == ("m_1",)
    assert hot.chunks_here() == {"m_2", "m_3", "m_4"}
    assert hot.here() == [row for row in before if row[1].day != 1]
    assert hot.in_lake() == before
    assert hot.run(datetime(2024, 1, 13, tzinfo=UTC)).dropped == ()


def test_a_late_row_for_a_dropped_chunk_is_answered_with_its_window(hot: Hot) -> None:
    hot.fill(1, 2, 3, 4).added()
    assert hot.run().dropped == ("m_1", "m_2", "m_3", "m_4")
    with pytest.raises(
        psycopg.errors.CheckViolation, match=r"too late for table public\.m: its rows of before 2024-01-05"
    ):
        hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-02 10:00+00', 'late', 1)")
    with (
        pytest.raises(psycopg.errors.CheckViolation, match="too late"),
        hot.sql.cursor().copy("COPY m FROM STDIN") as copy,
    ):
        copy.write("1\t2023-12-02 10:00+00\tlate\t1\n")


def test_a_transaction_that_wrote_before_the_mirrors_position_and_commits_after_it_holds_the_gate(hot: Hot) -> None:
    hot.fill(1, 2).added()
    writer = hot.another()
    writer.execute("INSERT INTO m_1 VALUES (1, '2024-01-01 23:00+00', 'long', 1)")  # straight into the chunk
    hot.fill(4)  # the log goes on, and the mirror passes it
    assert hot.run(datetime(2024, 1, 12, tzinfo=UTC)).tiered == ("m_2", "m_3")
    assert "m_1" in hot.chunks_here()
    assert hot.chunk("m_1").waits_for[0].startswith("chunk m_1 is not sealed")
    writer.commit()
    assert "m_1" in hot.run().dropped
    assert (1, "long") in [(row[0], row[2]) for row in hot.in_lake()]


def test_a_prepared_transaction_holds_the_gate_until_it_ends(hot: Hot) -> None:
    hot.fill(1).added()
    writer = hot.another()
    writer.execute("INSERT INTO m_1 VALUES (1, '2024-01-01 23:00+00', 'prepared', 1)")
    writer.execute("PREPARE TRANSACTION 'one'")
    writer.commit()
    assert "m_1" not in hot.run(datetime(2024, 1, 12, tzinfo=UTC)).tiered
    hot.another(autocommit=True).execute("COMMIT PREPARED 'one'")
    assert "m_1" in hot.run().dropped
    assert (1, "prepared") in [(row[0], row[2]) for row in hot.in_lake()]


def test_a_chunk_that_changed_after_it_was_tiered_is_proven_again_before_it_goes(hot: Hot) -> None:
    hot.fill(1, 2).added()
    assert hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC)).tiered == ("m_1", "m_2")
    hot.sql.execute("UPDATE m SET v = 'corrected' WHERE id = 1001")
    assert hot.sync().errors == ()
    assert hot.chunk("m_1").state == "active"
    assert hot.run(datetime(2024, 1, 13, tzinfo=UTC)).dropped == ("m_1",)
    assert (1001, "corrected") in [(row[0], row[2]) for row in hot.in_lake()]


def test_rows_that_the_lake_lost_keeps_the_chunk(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.lose_first_day()
    result = hot.run()
    assert "m_1" in hot.chunks_here()
    assert "m_1" not in result.tiered
    assert hot.chunk("m_1").waits_for == ("digests differ: 20 rows here, 0 in the lake",)


def test_rows_that_the_lake_lost_after_the_chunk_was_tiered_keeps_it(hot: Hot) -> None:
    hot.fill(1, 2).added()
    assert hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC)).tiered == ("m_1", "m_2")
    hot.lose_first_day()
    result = hot.run()
    assert "m_1" in hot.chunks_here()
    assert "m_1" not in result.dropped
    assert any("digests differ" in error for error in result.errors)
    hot.sql.execute("INSERT INTO m VALUES (9, '2024-01-01 10:00+00', 'open again', 1)")  # its fence came down


def test_a_mirror_that_stopped_keeps_everything(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.run(datetime(2024, 1, 10, 12, tzinfo=UTC))
    hot.sql.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert {"m_1", "m_2"} <= hot.chunks_here()
    assert "slot is lost" in hot.status().because
    assert hot.run().dropped == ()
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert {"m_1", "m_2"} <= set(hot.run().dropped)


@pytest.mark.parametrize(
    ("record", "chunk", "said"),
    [
        (None, {}, "the mirror is OFF"),
        ({"state": MirrorState.STARTING}, {}, "the mirror is STARTING"),
        ({"state": MirrorState.DEGRADED}, {}, "the mirror is DEGRADED"),
        ({"state": MirrorState.STOPPED}, {}, "the mirror is STOPPED"),
        ({}, {"sealed": None}, "it is not sealed"),
        ({"position": 10, "passed": None}, {"sealed": 10}, "the mirror has not passed its seal"),
        ({"position": None, "passed": 99}, {"sealed": 10}, "the mirror has not passed its seal"),
        ({}, {"changed": 11}, "it changed after it was sealed"),
        ({}, {}, None),
    ],
)
def test_each_condition_alone_shuts_the_gate(
    record: dict[str, Any] | None, chunk: dict[str, Any], said: str | None
) -> None:
    good: dict[str, Any] = {"state": MirrorState.STREAMING, "position": 5, "passed": 20}
    table = (
        None
        if record is None
        else HotRecord(
            id="public.m",
            cold="l.h.m",
            system="1",
            timeline=1,
            slot="s",
            publication="s",
            because="",
            added_at=NOW,
            **{**good, **record},
        )
    )
    sealed: dict[str, Any] = {"sealed": 10, "changed": 9, **chunk}
    of = ChunkRecord(
        hot_table="public.m", name="m_1", oid=1, first=NOW, last=NOW + _DAY, state=ChunkState.ACTIVE, **sealed
    )
    assert gate.shut(table, of) == said


def test_a_writer_behind_the_fence_gets_a_clear_error_and_readers_go_on(hot: Hot) -> None:
    hot.fill(1, 2).added()
    table = hot_tables(hot.tide.project)[TABLE]
    with connect(table.server) as session:
        found = find(session, table)
        fence(session, found, found.chunks[0])
    said = r"chunk \[2024-01-01 .* of table public.m is being moved to the lake"
    for statement in (
        "INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'x', 1)",
        "INSERT INTO m_1 VALUES (1, '2024-01-01 10:00+00', 'x', 1)",
        "UPDATE m SET v = 'x' WHERE id = 1001",
        "DELETE FROM m_1 WHERE id = 1001",
        "TRUNCATE m",
    ):
        with pytest.raises(psycopg.errors.CheckViolation, match=said):
            hot.sql.execute(statement)
    assert len(hot.here()) == 40
    hot.sync()  # a fence that no drop followed comes down
    hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 1001")


def test_an_idle_chunk_is_tiered_while_others_are_written(hot: Hot) -> None:
    hot.fill(1).added()
    busy = hot.another()
    busy.execute("INSERT INTO m VALUES (4, '2024-01-04 10:00+00', 'open', 1)")
    assert hot.run(datetime(2024, 1, 10, tzinfo=UTC)).tiered == ("m_1",)
    busy.commit()


def test_a_seal_is_before_every_later_change(hot: Hot) -> None:
    hot.fill(1).added()
    table = hot_tables(hot.tide.project)[TABLE]
    with connect(table.server) as session:
        marker = seal(session, find(session, table).chunks[0])
    hot.fill(2)
    hot.sql.execute("UPDATE m SET v = 'x' WHERE id = 1001")
    hot.sync()
    with hot.tide as tide, tide.project.connections.database(tide.project.state).reader() as state:
        changed = HotReader(state.connection).chunk(TABLE, "m_1")
    assert changed is not None
    assert changed.changed is not None
    assert changed.changed > marker


def test_a_hold_on_the_hot_table_keeps_its_chunks_and_force_does_not_pass_it(hot: Hot) -> None:
    hot.fill(1, 2).added()
    with hot.tide as tide:
        hold = tide.hold(
            TABLE,
            owner="legal",
            reason="case",
            first_day=NOW.date().replace(day=1),
            last_day=NOW.date().replace(day=1),
            as_of=NOW,
        )
        assert hold.dataset == "lake.hot.m"
        assert set(tide.tier.run(TABLE, as_of=NOW)[0].dropped) == {"m_2", "m_3", "m_4"}
        kept = tide.tier.drop(TABLE, "m_1", force=True, as_of=NOW)
        assert kept.dropped == ()
        assert kept.refused
        assert "m_1" in hot.chunks_here()
        assert hold.id is not None
        tide.release_hold(hold.id, as_of=NOW)
        assert tide.tier.drop(TABLE, "m_1", as_of=NOW).dropped == ("m_1",)


@pytest.mark.parametrize(
    ("asked", "cold"),
    deep_after_first(
        ("public.x#1:@%25%2Eé", ""),
        ("public.x%231%3A%40%25%2Eé", ""),
        ("public.x#1%3A@%25%2Eé", ", tier_after: 7d, cold: 'lake.hot.a#b'"),
    ),
)
def test_a_hold_keeps_a_table_however_its_name_is_written(hot: Hot, asked: str, cold: str) -> None:
    hot.sql.execute(
        """CREATE TABLE "x#1:@%.é" (id int, at timestamptz, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"""
    )
    hot.sql.execute(
        """CREATE TABLE x1 PARTITION OF "x#1:@%.é" FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')"""
    )
    hot.write(f"  - {{name: 'public.x#1:@%25%2Eé', time: at, chunk: 1d, drop_after: 10d, ahead: 1{cold}}}\n")
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add(asked)
        (table,) = tide.tier.status(asked)
        hold = tide.hold(asked, owner="legal", reason="matter 7", as_of=NOW)
        assert hold.dataset == (table.table if not cold else "lake.hot.a%23b")
        assert tide.tier.run(asked, as_of=NOW)[0].dropped == ()
        assert tide.tier.drop(asked, "x1", force=True, as_of=NOW).dropped == ()
        assert tide.tier.status(table.table)[0].chunks[0].waits_for == (f"hold {hold.id}",)
        assert hold.id is not None
        tide.release_hold(hold.id, as_of=NOW)
        assert tide.tier.run(table.table, as_of=NOW)[0].dropped == ("x1",)


def test_force_passes_the_gate_and_is_in_the_ledger(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.lose_first_day()
    with hot.tide as tide:
        assert tide.tier.drop(TABLE, "m_1", as_of=NOW).dropped == ()
        assert tide.tier.drop(TABLE, "m_1", force=True, as_of=NOW).dropped == ("m_1",)
        entries = tide.ledger.entries()
    forced = [entry.says for entry in entries if entry.kind == "act.intent" and "forced_by" in entry.says]
    assert [(says["dataset"], says["verb"], says["target"]) for says in forced] == [(TABLE, "tier drop", "chunks")]
    done = [e.says["result"] for e in entries if e.kind == "act.outcome" and e.says["act"] == forced[0]["act"]]
    assert done == ["done"]


def test_untier_brings_a_chunk_back_equal_and_it_stays(hot: Hot) -> None:
    hot.fill(1, 2, 3).added()
    before = hot.here()
    assert len(hot.run().dropped) == 4
    with hot.tide as tide:
        tide.tier.untier(TABLE, "m_2")
    assert hot.here() == [row for row in before if row[1].day == 2]
    hot.sql.execute("UPDATE m SET v = 'back' WHERE id = 2002")
    assert hot.run().dropped == ()
    assert len(hot.in_lake()) == len(before)  # nothing came twice
    assert (2002, "back") in [(row[0], row[2]) for row in hot.in_lake()]
    with pytest.raises(psycopg.errors.CheckViolation, match="too late"):
        hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'late', 1)")
    with hot.tide as tide:
        assert tide.tier.drop(TABLE, "m_2", as_of=NOW).dropped == ("m_2",)


def test_a_chunk_that_another_tool_dropped_is_missing(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.sql.execute("DROP TABLE m_1")
    assert hot.run(datetime(2024, 1, 3, tzinfo=UTC)).missing == ("m_1",)
    assert hot.chunk("m_1").state == "missing"
    assert [row for row in hot.in_lake() if row[1].day == 1]


def test_a_policy_on_a_table_that_was_not_added_holds_everything(hot: Hot) -> None:
    hot.fill(1)
    result = hot.run()
    assert result.notices == ("it was not added: its policy holds everything until `ebbtide tier add` has synced it",)
    assert hot.chunks_here() == {"m_1", "m_2", "m_3", "m_4"}


def test_plain_retention_drops_outright(hot: Hot) -> None:
    hot.write("  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n")
    hot.fill(1, 2).added()
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3", "m_4"}


def test_a_chunk_that_stays_for_what_it_stayed_for_before_is_not_written_again(
    hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot.fill(1, 2).added()
    hot.lose_first_day()
    hot.run()
    because = hot.chunk("m_1").waits_for
    written: list[str] = []
    real = StateBook.set_chunk

    def counted(book: StateBook, name: str, **values: Any) -> None:
        written.append(name)
        real(book, name, **values)

    monkeypatch.setattr(StateBook, "set_chunk", counted)
    hot.run()
    assert (written, hot.chunk("m_1").waits_for) == ([], because)


_AGAIN = "CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')"
_WIDER = "ALTER TABLE m ATTACH PARTITION m_1 FOR VALUES FROM ('2023-01-01+00') TO ('2024-01-02+00')"
_REMADE, _GROWN = f"DROP TABLE m_1; {_AGAIN}", f"ALTER TABLE m DETACH PARTITION m_1; {_WIDER}"


@pytest.mark.parametrize(
    ("between", "late"),
    [
        (_REMADE, False),
        (_GROWN, True),
        pytest.param(_REMADE, True, marks=pytest.mark.deep),
        pytest.param(_GROWN, False, marks=pytest.mark.deep),
    ],
)
def test_a_partition_that_took_the_place_of_a_chunk_is_not_dropped_for_it(
    hot: Hot, monkeypatch: pytest.MonkeyPatch, between: str, late: bool
) -> None:
    """Neither between the look and the act, nor between the act's own look and its locks."""
    hot.write("  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n")
    hot.fill(2).added()

    def replaced(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            if "m_1" in {getattr(arg, "object", None) or getattr(arg, "name", None) for arg in args}:
                for statement in between.split(";"):
                    hot.sql.execute(statement)
                hot.fill(1)
            return real(*args)

        return run

    where, name = (owner, "drop") if late else (ChunkOwner, "still_wanted")
    with monkeypatch.context() as patch:
        patch.setattr(where, name, replaced(getattr(where, name)))
        result = hot.run()
    assert set(result.dropped) == {"m_2", "m_3", "m_4"}
    assert any("chunk m_1 is not what it was" in error for error in result.errors)
    assert len(hot.here()) == 20
    with hot.tide as tide:
        failed = [e for e in tide.ledger.entries() if e.kind == "act.outcome" and e.says["result"] == "failed"]
    assert len(failed) == 1
    assert hot.run().dropped == ("m_1",)  # seen anew, and past its date


def test_a_chunk_whose_range_grew_is_as_old_as_its_new_end(hot: Hot) -> None:
    hot.write("  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 0}\n")
    hot.added()
    hot.sql.execute("ALTER TABLE m DETACH PARTITION m_4")
    hot.sql.execute("ALTER TABLE m ATTACH PARTITION m_4 FOR VALUES FROM ('2024-01-04+00') TO ('2024-01-19+00')")
    assert set(hot.run().dropped) == {"m_1", "m_2", "m_3"}


def test_a_synced_table_stays_gated_when_its_file_forgets_the_cold_table(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.lose_first_day()
    hot.write("  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n")
    result = hot.run()
    assert result.dropped == ()
    assert result.refused
    with hot.tide as tide:
        assert tide.tier.drop(TABLE, force=True, as_of=NOW).dropped == ()
    assert hot.chunks_here() == {"m_1", "m_2", "m_3", "m_4"}


def test_a_policy_of_the_lake_that_is_too_short_keeps_chunks_and_stops_no_mirror(hot: Hot) -> None:
    hot.fill(1, 2).added()
    hot.fill(3)
    (hot.root / "policies").mkdir()
    policy = hot.root / "policies" / "p.yml"
    text = "policies:\n  - {name: p, select: {tables: [lake.**]}, partitions: {older_than: 10d}}\n"
    policy.write_text(text, encoding="utf-8")
    result = hot.run()
    assert (result.mirror, result.dropped, len(result.errors)) == ("STREAMING", (), 1)
    assert hot.in_lake() == hot.here()
    with hot.tide as tide:
        assert tide.tier.drop(TABLE, as_of=NOW).dropped == ()
        assert tide.tier.sync(TABLE)[0].errors == ()
        tide.tier.remove(TABLE)
        with pytest.raises(InputError, match="removes partitions"):
            tide.tier.add(TABLE)
        assert hot.sql.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)


def test_what_was_dropped_agrees_with_the_ledger(hot: Hot) -> None:
    hot.fill(1, 2).added()
    assert len(hot.run().dropped) == 4
    with hot.tide as tide:
        audit = tide.ledger.audit()
    assert audit.findings == ()


@pytest.mark.parametrize("kind", deep_after_first("timestamp", "date"))
def test_other_kinds_of_time_are_read_as_utc(hot: Hot, kind: str) -> None:
    hot.sql.execute("SET TimeZone = 'America/New_York'")
    hot.sql.execute(f"CREATE TABLE x (id int, at {kind}, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE x_1 PARTITION OF x FOR VALUES FROM ('2024-01-01') TO ('2024-01-02')")
    hot.sql.execute("INSERT INTO x VALUES (1, '2024-01-01 00:00'), (2, '2024-01-01 23:59:59')")
    hot.write(POLICY.replace("public.m", "public.x"))
    with hot.tide as tide:
        tide.tier.init()
        tide.tier.add("public.x")
        assert tide.tier.run("public.x", as_of=datetime(2024, 1, 12, tzinfo=UTC))[0].dropped == ()
        assert tide.tier.run("public.x", as_of=datetime(2024, 1, 12, 0, 0, 1, tzinfo=UTC))[0].dropped == ("x_1",)
        tide.tier.untier("public.x", "x_1")
    assert hot.sql.execute("SELECT count(*) FROM x").fetchone() == (2,)
