"""The database under the state: layouts, readers that cannot write, errors that tell nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError

from ebbtide.errors import InputError, StateError, StateVersionError
from ebbtide.state import tables
from ebbtide.state.database import Database
from ebbtide.state.migrations import LATEST, MIGRATIONS, found_version, migrate
from ebbtide.state.reader import StateReader
from ebbtide.state.writer import StateWriter
from tests.state.postgres import server

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)


def _raw(database: Database) -> Connection:
    """A connection that knows nothing of layouts."""
    return database._writer_engine(create=True).connect()


def _at_layout(database: Database, layout: int) -> None:
    with _raw(database) as connection, connection.begin():
        migrate(connection, to=layout)


def test_the_migrated_tables_are_the_declared_ones(database: Database) -> None:
    database.upgrade()
    with _raw(database) as connection:
        found = inspect(connection)
        assert set(found.get_table_names()) == set(tables.metadata.tables)
        for name, table in tables.metadata.tables.items():
            columns = {column["name"]: column for column in found.get_columns(name)}
            assert list(columns) == [column.name for column in table.columns], name
            for column in table.columns:
                dialect = connection.dialect
                declared = column.type.compile(dialect)
                assert columns[column.name]["type"].compile(dialect) == declared, (name, column.name)
                assert columns[column.name]["nullable"] == column.nullable, (name, column.name)
            primary = found.get_pk_constraint(name)["constrained_columns"]
            assert primary == [column.name for column in table.primary_key.columns], name


def test_a_fresh_state_gets_the_latest_layout_when_it_is_first_written(database: Database) -> None:
    assert not database.exists()
    with database.writer() as state:
        state.actor("alice")
    assert database.exists()
    assert database.upgrade() == (LATEST, LATEST)


@pytest.mark.parametrize("layout", range(1, LATEST))
def test_an_older_layout_is_refused_with_the_hint_to_upgrade_and_keeps_its_rows(
    database: Database, url: str, layout: int
) -> None:
    _at_layout(database, layout)
    with _raw(database) as connection, connection.begin():
        connection.execute(insert(tables.actors), [{"id": "actor-1", "name": "alice"}])
    for door in (Database(url).reader(), Database(url).writer()):
        with pytest.raises(StateVersionError) as refused, door:
            pass
        assert refused.value.hint == "run `ebbtide state upgrade`"
        assert (refused.value.found, refused.value.expected) == (layout, LATEST)
        assert refused.value.exit_code == 3
    assert database.upgrade() == (layout, LATEST)
    with database.reader() as state:
        assert state.actor_name("actor-1") == "alice"


def test_folders_that_were_condemned_before_layout_6_get_a_salt_each(database: Database) -> None:
    _at_layout(database, 4)
    with _raw(database) as connection, connection.begin():
        connection.execute(insert(tables.actors), [{"id": "a", "name": "jane"}])
        columns = [column._copy() for column in tables.condemned.columns if column.name != "salt"]
        before = Table("condemned", MetaData(), *columns)
        for path in ("one", "two"):
            values = {"id": path, "path": path, "dataset": f"c.db.{path}", "actor": "a", "condemned_at": NOW}
            connection.execute(insert(before), [values])
    database.upgrade()
    with database.reader() as state:
        one, two = state.condemned()
    assert (one.path, two.path, len(one.salt), len(two.salt)) == ("one", "two", 16, 16)
    assert one.salt != two.salt


def test_a_newer_layout_is_refused_by_reader_writer_and_upgrade(database: Database, url: str) -> None:
    database.upgrade()
    with _raw(database) as connection, connection.begin():
        connection.execute(text("UPDATE ebbtide_version SET version = version + 1"))
    for door in (Database(url).reader(), Database(url).writer(), database.reader(), database.writer()):
        with pytest.raises(StateVersionError, match=f"layout {LATEST + 1}"), door:
            pass
    with pytest.raises(StateVersionError):
        database.upgrade()


def test_an_upgrade_that_fails_leaves_the_old_layout(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    _at_layout(database, 1)
    broken = (*MIGRATIONS[1][:2], "CREATE TABLE nonsense (")
    monkeypatch.setattr("ebbtide.state.migrations.MIGRATIONS", (MIGRATIONS[0], broken))
    with pytest.raises(StateError):
        database.upgrade()
    with _raw(database) as connection:
        assert found_version(connection) == 1
        assert not inspect(connection).has_table("ledger_entries")


def test_two_processes_that_find_no_state_make_one(url: str) -> None:
    databases = [Database(url) for _ in range(6)]
    errors: list[BaseException] = []

    def first_write(database: Database, name: str) -> None:
        try:
            with database.writer() as state:
                state.actor(name)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=first_write, args=(d, f"a{i}")) for i, d in enumerate(databases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with databases[0].reader() as state:
        assert len(state.connection.execute(select(tables.actors)).all()) == 6
    for database in databases:
        database.close()


def test_a_database_of_somebody_else_is_refused(database: Database, url: str) -> None:
    with _raw(database) as connection, connection.begin():
        connection.execute(text("CREATE TABLE invoices (id INTEGER)"))
    with pytest.raises(StateError, match="invoices"), Database(url).writer():
        pass


@pytest.mark.parametrize("existing", [True, False])
def test_a_reader_cannot_write_whatever_it_tries(database: Database, existing: bool) -> None:
    if existing:
        database.upgrade()
    for statement in (
        "INSERT INTO actors (id, name) VALUES ('a', 'b')",
        "UPDATE leases SET fence = 0",
        "DELETE FROM holds",
        "CREATE TABLE sneaked (id INTEGER)",
        "DROP TABLE marks",
    ):
        with pytest.raises((StateError, DBAPIError)), database.reader() as state:
            state.connection.execute(text(statement))
    # Nor through the writer class around a reader's connection.
    with pytest.raises((StateError, DBAPIError)), database.reader() as state:
        StateWriter(state.connection).actor("mallory")
    assert not hasattr(StateReader, "actor")
    with database.writer() as state:
        assert state.connection.execute(select(tables.actors)).all() == []


def test_a_reader_of_no_state_reads_an_empty_one_and_makes_none(database: Database) -> None:
    with database.reader() as state:
        assert state.snapshot().marks == ()
        assert state.lease() is None
    assert not database.exists()


def test_a_reader_sees_one_snapshot_while_others_write(database: Database) -> None:
    database.upgrade()
    with database.reader() as state:
        assert state.holds() == ()
        with database.writer() as other:
            other.hold_dataset("lake.a.b", owner=other.actor("bob"), reason="case 7", at=NOW)
        assert state.snapshot().holds == ()
    with database.reader() as state:
        assert len(state.holds()) == 1


def test_a_block_that_raises_writes_nothing(database: Database) -> None:
    database.upgrade()
    with pytest.raises(ZeroDivisionError), database.writer() as state:
        assert len(state.actor("alice")) == 1 / 0
    with database.reader() as state:
        assert state.connection.execute(select(tables.actors)).all() == []


def test_writers_come_one_after_the_other(database: Database) -> None:
    """The second writer reads what the first one wrote, never what was there before."""
    database.upgrade()
    inside, seen = threading.Event(), []

    def second() -> None:
        inside.wait()
        with database.writer() as state:
            seen.append(len(state.holds()))

    thread = threading.Thread(target=second)
    thread.start()
    with database.writer() as state:
        inside.set()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        state.hold_dataset("lake.a.b", owner=state.actor("bob"), reason="case 7", at=NOW)
    thread.join()
    assert seen == [1]


def test_no_parameter_reaches_an_error(database: Database) -> None:
    database.upgrade()
    secret = "user_id=8841302"
    with pytest.raises(StateError) as caught, database.writer() as state:
        state.connection.execute(insert(tables.actors), [{"id": secret, "name": None}])
    shown = "".join(map(str, (caught.value, repr(caught.value), caught.value.hint, caught.value.__cause__)))
    assert "8841302" not in shown
    assert caught.value.__suppress_context__


def test_a_password_reaches_neither_name_nor_error() -> None:
    database = Database("postgresql://bob:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in database.name
    with pytest.raises(StateError) as caught, database.reader():
        pass
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://h/db", "sqlite:///"])
def test_a_state_that_cannot_be_kept_is_refused(url: str) -> None:
    with pytest.raises(InputError) as refused:
        Database(url)
    assert refused.value.hint


def test_relative_paths_count_from_the_project(tmp_path: Path) -> None:
    database = Database("sqlite:///.ebbtide/a%20b % ü #1?.db", root=tmp_path)
    with database.writer() as state:
        state.actor("alice")
    database.close()
    assert (tmp_path / ".ebbtide" / "a%20b % ü #1?.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".ebbtide").stat().st_mode & 0o777 == 0o700


def test_sqlite_keeps_a_log_syncs_and_forgets_what_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = Database(f"sqlite:///{path}")
    with database.writer() as state:
        pragma = {
            name: state.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
        state.connection.execute(insert(tables.actors), [{"id": "x", "name": "needle-7f1c"}])
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
    with database.writer() as state:
        state.connection.execute(tables.actors.delete())
    database.scrub()
    files = [file.read_bytes() for file in tmp_path.iterdir()]
    assert len(files) >= 1
    assert not any(b"needle-7f1c" in content for content in files)
    database.close()


def test_a_file_that_is_no_database_is_an_error_not_an_empty_state(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is not a database" * 100)
    for door in (Database(f"sqlite:///{path}").reader(), Database(f"sqlite:///{path}").writer()):
        with pytest.raises(StateError) as caught, door:
            pass
        assert "bring back a backup" in str(caught.value.hint)


def test_a_state_that_vanishes_while_it_is_used_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = Database(f"sqlite:///{path}")
    database.upgrade()
    with database.reader() as state:
        assert state.holds() == ()
    database.close()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StateError), database.reader():
        pass
    with pytest.raises(StateError), database.writer():
        pass
    assert not path.exists()


def test_a_locked_state_fails_with_a_hint_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbtide.state.engines.BUSY_SECONDS", 0.2)
    path = tmp_path / "state.db"
    database = Database(f"sqlite:///{path}")
    database.upgrade()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateError, match="locked") as caught, database.writer() as state:
        state.actor("alice")
    assert "runs list" in str(caught.value.hint)
    other.close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.execute(select(tables.actors)).all() == []


def test_who_waits_for_another_writer_says_so_and_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ebbtide.state.engines.TOLD_AFTER_SECONDS", 0.05)
    database = Database(f"sqlite:///{tmp_path}/state.db")
    with database.writer() as state:
        state.actor("alice")
    assert caplog.messages == []
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    # It is let go by what was said, not after a time.
    said: list[str] = []

    def let_go(text: str, *values: object) -> None:
        said.append(text % values)
        other.close()

    monkeypatch.setattr("ebbtide.state.engines._logger.warning", let_go)
    with database.writer() as state:
        state.actor("bob")
        assert state.connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 30_000
    (line,) = said
    assert f"another process writes to the state at {tmp_path}/state.db (`ebbtide runs list`" in line
    assert line.endswith("waiting up to 30 s")


def test_a_writer_that_sleeps_inside_its_transaction_does_not_keep_others_out_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ebbtide.state.engines.BUSY_SECONDS", 1)
    url = server().new_url()
    sleeper, other = Database(url), Database(url)
    other.upgrade()

    def slow() -> str:
        time.sleep(2.5)
        with other.writer() as state:
            state.actor("awake")
        return "asleep"

    with pytest.raises(StateError), sleeper.writer() as state:
        state.actor(slow())
    with other.reader() as reader:
        assert list(reader.connection.execute(select(tables.actors.c.name)).scalars()) == ["awake"]
    sleeper.close()
    other.close()


def test_a_copy_of_the_file_is_whole_after_the_process_ended(tmp_path: Path) -> None:
    program = (
        "import sys; from ebbtide.state.database import Database; d = Database(sys.argv[1])\n"
        "with d.writer() as state: state.actor('alice')\n"
        "with d.reader() as reader: reader.holds()\n"
    )
    path = tmp_path / "state.db"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, f"sqlite:///{path}"], check=True, env=environment)
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
