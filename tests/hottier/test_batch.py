"""`mirror: batch` on a server without logical decoding: sealed chunks are copied, proven and dropped (spec §6)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier import owner
from tests.hottier.tier import POLICY, TABLE, Hot
from tests.state.postgres import Server, start_server

_PROVEN = datetime(2024, 1, 10, 12, tzinfo=UTC)
"""When the first two chunks are past tier_after, and none is past drop_after."""
_numbers = itertools.count()


@dataclass
class Batch(Hot):
    """The same table, whose file says `mirror: batch`."""

    def write(self, policy: str) -> None:
        super().write(policy)
        file = self.root / "hottier" / "m.yml"
        file.write_text("mirror: batch\n" + file.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.fixture(scope="module")
def plain_server() -> Iterator[Server]:
    server = start_server("wal_level=replica", "autovacuum=off")
    yield server
    server.stop()


@pytest.fixture
def batch(plain_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batch]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("EBBTIDE_HOT_URL", os.environ.get("EBBTIDE_HOT_URL", ""))
    at, name = f"host={plain_server.folder} user=postgres dbname=", f"batch{next(_numbers)}"
    with psycopg.connect(f"{at}postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    connection: Any = psycopg.connect(at + name, autocommit=True)
    made = Batch(tmp_path, connection, at + name)
    made.make()
    yield made
    made.close()


def test_chunks_are_copied_when_sealed_proven_and_dropped_with_every_row(batch: Batch) -> None:
    rows = batch.fill(1, 2, 3, 4).here()
    with batch.tide as tide:
        tide.tier.init()
        batch.write(POLICY)
        told = tide.tier.add(TABLE)
        assert not [each for each in told.statements if "PUBLICATION" in each or "SLOT" in each]
    assert (batch.status().mirror, batch.status().how) == ("STREAMING", "batch")
    assert batch.sync().errors == ()
    assert batch.in_lake() == []
    assert batch.run(_PROVEN).tiered == ("m_1", "m_2")
    assert batch.in_lake() == [row for row in rows if row[1].day < 3]
    done = batch.run()
    assert (set(done.dropped), done.errors) == ({"m_1", "m_2", "m_3", "m_4"}, ())
    assert (batch.chunks_here(), batch.in_lake()) == (set(), rows)
    with pytest.raises(psycopg.Error, match="m"):
        batch.fill(1)
    with batch.tide as tide:
        tide.tier.untier(TABLE, "m_1")
        assert batch.here() == [row for row in rows if row[1].day == 1]
        assert tide.tier.drop(TABLE, "m_1", as_of=datetime(2024, 1, 20, tzinfo=UTC)).dropped == ()  # copied first
        again = batch.run()  # a person named it: it goes as soon as it is proven
        assert (again.tiered, again.dropped) == (("m_1",), ("m_1",))
    assert batch.in_lake() == rows


def test_what_changed_after_its_copy_is_copied_again_and_exactly_once(batch: Batch) -> None:
    batch.fill(1, 2).added()
    batch.run(_PROVEN)
    batch.sql.execute("INSERT INTO m VALUES (7, '2024-01-01 10:00+00', 'late', 1)")
    batch.sql.execute("UPDATE m SET v = 'changed' WHERE id = 2003")
    batch.sql.execute("DELETE FROM m WHERE id = 2004")
    rows = batch.here()
    first = batch.run()
    assert batch.chunks_here() == {"m_1", "m_2"}  # nothing goes that the lake has otherwise
    assert "digests differ" in " ".join(first.errors)
    assert set(batch.run().dropped) == {"m_1", "m_2"}
    assert batch.in_lake() == rows


def test_who_dies_after_a_copy_copies_nothing_twice(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch.fill(1, 2).added().here()
    commit = ColdTable._commit

    def dies(self: ColdTable, transaction: Any) -> None:
        commit(self, transaction)
        if self.version is not None:
            raise KeyboardInterrupt

    for _ in ("m_1", "m_2"):
        with monkeypatch.context() as patch:
            patch.setattr(ColdTable, "_commit", dies)
            with pytest.raises(KeyboardInterrupt):
                batch.run(_PROVEN)
    assert batch.run(_PROVEN).tiered == ("m_1", "m_2")
    assert batch.in_lake() == rows
    with monkeypatch.context() as patch:
        patch.setattr(owner, "drop", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            batch.run()
    assert batch.chunks_here() == {"m_1", "m_2", "m_3", "m_4"}
    assert {"m_1", "m_2"} <= {*batch.run().dropped, *batch.run().dropped}
    assert batch.in_lake() == rows


def test_rows_that_went_from_a_copied_chunk_stay_in_the_lake_until_a_person_confirms(batch: Batch) -> None:
    rows = batch.fill(1, 2).added().here()
    batch.run(_PROVEN)
    batch.sql.execute("TRUNCATE m_1")
    batch.run()
    for _ in range(2):  # as it stops, and as it finds itself stopped
        (told,) = batch.run().errors
        assert f"`ebbtide tier resync {TABLE} --confirm`" in told
    assert (batch.status().mirror, "m_1" in batch.chunks_here()) == ("DEGRADED", True)
    assert "chunk m_1 has 0 rows here and 20 in the lake" in batch.status().because
    assert batch.in_lake() == rows
    with batch.tide as tide:
        with pytest.raises(RefusedError, match="has 0 rows here and 20 in the lake"):
            tide.tier.resync(TABLE)
        tide.tier.resync(TABLE, confirm=True)
    assert batch.in_lake() == [row for row in rows if row[1].day == 2]
    assert batch.run().dropped == ("m_1",)  # the other one went before


def test_a_file_that_says_otherwise_than_the_table_was_added_is_refused(batch: Batch) -> None:
    batch.fill(1).added()
    Hot.write(batch, POLICY)
    told = batch.run()
    assert (told.refused, "was added with mirror: batch" in told.errors[0]) == (True, True)
    with batch.tide as tide:
        tide.tier.remove(TABLE)
        with pytest.raises(RefusedError, match="wal_level"):
            tide.tier.add(TABLE)


def test_a_table_that_moved_to_another_server_is_copied_on_after_a_resync(batch: Batch) -> None:
    """The new server's log is shorter than the old one's was, and no chunk was copied from it yet."""
    batch.fill(1)
    for _ in range(3):
        batch.sql.execute("SELECT pg_logical_emit_message(true, 'x', 'x'), pg_switch_wal()")
    batch.added()
    assert batch.run(_PROVEN).tiered == ("m_1", "m_2")
    rows = batch.here()
    server = start_server("wal_level=replica", "autovacuum=off")
    try:
        name = batch.sql.info.dbname
        at = f"host={server.folder} user=postgres dbname="
        with psycopg.connect(f"{at}postgres", autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        dsn = at + name
        moved = Batch(batch.root, psycopg.connect(dsn, autocommit=True), dsn)
        moved.make()
        for leaf in ("m_1", "m_2"):  # what is in the lake stays there
            moved.sql.execute(f"DROP TABLE {leaf}")
        rows += moved.fill(3).here()
        assert moved.run(_PROVEN).mirror == "DEGRADED"
        with moved.tide as tide:
            tide.tier.init()
            tide.tier.resync(TABLE)
        told = moved.run()
        assert (told.mirror, told.errors, moved.in_lake()) == ("STREAMING", (), rows)
        moved.close()
    finally:
        server.stop()
