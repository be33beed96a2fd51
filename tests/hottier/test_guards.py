"""Every guard between a proof and a drop, and between the log and the lake, by itself (spec §6)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from ebbtide.app.tier_opened import hot_tables
from ebbtide.hottier import fence as fences
from ebbtide.hottier import owner
from ebbtide.hottier.fence import fence
from ebbtide.hottier.mirror import Mirror
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find
from tests.hottier.kills import Mortal
from tests.hottier.tier import TABLE, Hot

_MID = datetime(2024, 1, 10, 12, tzinfo=UTC)


@pytest.fixture
def proven(hot: Hot) -> Hot:
    """1 and 2 January are proven; the next run drops them."""
    hot.fill(1, 2).added()
    assert hot.run(_MID).tiered == ("m_1", "m_2")
    return hot


def _first(hot: Hot, *statements: str) -> Callable[[Any], Callable[..., Any]]:
    """What somebody does right before a call of ours, once."""
    left = list(statements)

    def of(real: Any) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            while left:
                hot.sql.execute(left.pop(0))
            return real(*args, **more)

        return run

    return of


def _dropped_later(hot: Hot) -> None:
    assert "m_1" in hot.chunks_here()
    assert "m_1" in hot.run().dropped


@pytest.mark.parametrize(
    "touched",
    [
        ("ALTER TABLE m_1 DISABLE TRIGGER ebbtide_fence", "UPDATE m SET v = 'in between' WHERE id = 1001",
         "ALTER TABLE m_1 ENABLE ALWAYS TRIGGER ebbtide_fence"),
        ("ALTER TABLE m_1 ENABLE TRIGGER ebbtide_fence",),
        ("VACUUM FULL m_1",),
    ],
    ids=["opened and closed again", "no longer always", "rewritten"],
)  # fmt: skip
def test_a_fence_that_somebody_touched_keeps_its_chunk(
    proven: Hot, monkeypatch: pytest.MonkeyPatch, touched: tuple[str, ...]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(owner, "drop", _first(proven, *touched)(fences.drop))
        result = proven.run()
    assert any("somebody touched the fence of chunk m_1" in error for error in result.errors)
    assert "m_1" not in result.dropped
    if touched == ("VACUUM FULL m_1",):
        return  # a rewrite, and the mirror stops at it: only a resync goes on
    _dropped_later(proven)


def test_no_role_of_a_session_passes_a_fence(hot: Hot) -> None:
    hot.fill(1).added()
    with connect(hot_tables(hot.tide.project)[TABLE].server) as session:
        found = find(session, hot_tables(hot.tide.project)[TABLE])
        fence(session, found, found.chunks[0])
    applying = hot.another(autocommit=True)
    applying.execute("SET session_replication_role = replica")
    for statement in ("UPDATE m SET v = 'x' WHERE id = 1001", "TRUNCATE m_1"):
        with pytest.raises(psycopg.errors.CheckViolation, match="being moved to the lake"):
            applying.execute(statement)


def test_a_row_that_came_between_the_proof_and_the_fence_keeps_its_chunk(
    proven: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "INSERT INTO m VALUES (7, '2024-01-01 10:00+00', 'in between', 1)"
    with monkeypatch.context() as patch:
        patch.setattr(owner, "fence", _first(proven, row)(fences.fence))
        result = proven.run()
    assert any("chunk m_1 stays: it changed after it was sealed" in error for error in result.errors)
    _dropped_later(proven)
    assert (7, "in between") in [(row[0], row[2]) for row in proven.in_lake()]


def test_a_mirror_that_has_not_passed_the_fence_keeps_its_chunk(proven: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "drain", lambda self, **_: find(self.connection, self.table))
        result = proven.run()
    assert any("m_1 stays: the mirror has not passed its fence" in error for error in result.errors)
    assert result.dropped == ()
    _dropped_later(proven)


def test_a_digest_is_of_what_was_proven(proven: Hot) -> None:
    with proven.tide as tide, tide.project.connections.database(tide.project.state).writer() as state:
        state.connection.exec_driver_sql("UPDATE hot_chunks SET digest = '20:1' WHERE name = 'm_1'")
    result = proven.run()
    assert any("chunk m_1 stays: it is not what was proven" in error for error in result.errors)
    assert "m_1" not in result.dropped
    _dropped_later(proven)


def test_log_that_somebody_else_let_go_shuts_the_gate(proven: Hot) -> None:
    proven.fill(3)
    proven.sql.execute(
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    result = proven.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert "forgotten log that the cold table does not have" in proven.status().because


def test_a_cold_table_that_another_mirror_wrote_shuts_the_gate(proven: Hot) -> None:
    cold = proven.cold()
    position = cold.position()
    assert position is not None
    cold.commit(cold.columns.empty_table(), replace(position, source="ebbtide_another"))
    result = proven.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert "copy of another server's or mirror's table" in proven.status().because


@pytest.mark.deep
@pytest.mark.parametrize("went_on", [False, True])
def test_a_server_that_was_restored_from_a_copy_of_its_disk_drops_nothing_that_it_lost(
    mortal: Mortal, went_on: bool
) -> None:
    """Such a server has the same name and timeline. Past the old end of its log only digests tell."""
    hot = mortal.hot
    hot.fill(1).added()
    mortal.kill()
    data, copy = mortal.server.folder / "data", mortal.server.folder / "copy"
    shutil.copytree(data, copy, symlinks=True)
    mortal.revive()
    hot.fill(2)
    assert hot.run(_MID).tiered == ("m_1", "m_2")
    before = hot.in_lake()
    mortal.kill()
    shutil.rmtree(data)
    copy.rename(data)
    _owned_like(mortal)
    mortal.revive()
    hot.sql.execute("INSERT INTO m VALUES (9, '2024-01-02 10:00+00', 'another history', 1)")
    if went_on:
        hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
        hot.sql.execute("INSERT INTO m VALUES (10, '2024-01-02 10:00+00', 'seen', 1)")
    result = hot.run()
    assert "m_2" not in result.dropped
    assert "m_2" in hot.chunks_here()
    assert set(before) <= set(hot.in_lake())
    if not went_on:
        assert result.mirror == "DEGRADED"
        assert "it was restored from a copy" in hot.status().because


def _owned_like(mortal: Mortal) -> None:
    owner_of = mortal.server.folder.stat().st_uid
    for path in (mortal.server.folder / "data", *(mortal.server.folder / "data").rglob("*")):
        shutil.chown(path, owner_of, owner_of)


@pytest.mark.deep
def test_a_slot_that_the_server_gave_up_shuts_the_gate(mortal: Mortal) -> None:
    hot = mortal.hot
    hot.fill(1, 2).added()
    hot.run(_MID)
    hot.sql.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    hot.sql.execute("SELECT pg_reload_conf()")
    lost = "SELECT wal_status FROM pg_replication_slots"
    for _ in range(20):  # it is given up by a checkpoint that needs the room
        hot.sql.execute("CREATE TABLE other AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
        hot.sql.execute("DROP TABLE other")
        hot.sql.execute("SELECT pg_switch_wal()")
        hot.sql.execute("CHECKPOINT")
        if hot.sql.execute(lost).fetchone() == ("lost",):
            break
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert "its slot is lost" in hot.status().because
    with hot.tide as tide:
        tide.tier.resync(TABLE)
    assert {"m_1", "m_2"} <= set(hot.run().dropped)


@pytest.mark.deep
def test_a_truncate_and_rows_of_the_same_transaction_take_a_resync(hot: Hot) -> None:
    hot.fill(1, 2).added()
    before = hot.in_lake()
    with hot.another() as session:
        session.execute("TRUNCATE m_1")
        session.execute("INSERT INTO m VALUES (7, '2024-01-01 10:00+00', 'behind it', 1)")
    assert hot.sync().mirror == "STOPPED"
    with hot.tide as tide:
        result = tide.tier.sync(TABLE, confirm=True)[0]
        assert (result.mirror, hot.in_lake()) == ("DEGRADED", before)
        assert "they cannot be told apart" in result.errors[0]
        tide.tier.resync(TABLE, confirm=True)
    assert hot.in_lake() == hot.here()


@pytest.mark.deep
def test_a_cold_table_whose_partitions_somebody_changed_is_not_written(hot: Hot) -> None:
    hot.fill(1).added()
    with hot.cold().table.update_spec() as spec:
        spec.add_identity("id")
    hot.fill(2)
    result = hot.run()
    assert any("somebody changed how the cold table is partitioned" in error for error in result.errors)
    assert (result.dropped, len(hot.in_lake())) == ((), 20)
