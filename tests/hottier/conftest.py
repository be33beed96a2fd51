"""One PostgreSQL with logical decoding for this folder's tests, a database for each of them, and a project in front."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.hottier.kills import Mortal
from tests.hottier.tier import Hot
from tests.state.postgres import Server, start_oldest_server, start_server

LOGICAL = ("wal_level=logical", "max_prepared_transactions=10", "max_replication_slots=60", "max_wal_senders=10")
_ALONE = (*LOGICAL, "autovacuum=off")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def logical_server() -> Iterator[Server]:
    server = _start()
    yield server
    server.stop()


@pytest.fixture
def hot(logical_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hot]:
    """A project whose hot table `public.m` is not added yet, with chunks of 1 to 4 January 2024."""
    name = f"hot{next(_numbers)}"
    with psycopg.connect(_dsn(logical_server, "postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    made = _project(tmp_path, _dsn(logical_server, name), monkeypatch)
    yield made
    made.close()
    with psycopg.connect(_dsn(logical_server, "postgres"), autocommit=True) as admin:
        for (slot,) in admin.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE database = %s", [name]
        ).fetchall():
            admin.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", [name]).fetchall():
            with psycopg.connect(_dsn(logical_server, name), autocommit=True) as there:
                there.execute(f"ROLLBACK PREPARED '{gid}'")
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mortal]:
    """The same project in front of a server of its own, which a test may kill."""
    server = _start()
    hot = _project(tmp_path, _dsn(server, "postgres"), monkeypatch)
    made = Mortal(hot, server, _ALONE)
    yield made
    hot.close()
    made.server.stop()


def _project(root: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Hot:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    connection: Any = psycopg.connect(dsn, autocommit=True)
    made = Hot(root, connection, dsn)
    made.make()
    return made


def _start() -> Server:
    """Of PostgreSQL 16, or of 14 where that is asked for."""
    return start_oldest_server(*_ALONE) if os.environ.get("EBBTIDE_POSTGRES") == "14" else start_server(*_ALONE)


def _dsn(server: Server, database: str) -> str:
    return f"host={server.folder} user=postgres dbname={database}"
