"""How the state's connections are made: the one place that knows SQLite's and PostgreSQL's settings."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import StaticPool

from ebbtide.errors import InputError, StateError
from ebbtide.private import private_folder
from ebbtide.state.failures import is_locked
from ebbtide.state.migrations import migrate

_logger = logging.getLogger(__name__)
BUSY_SECONDS = 30
_WRITING = "BEGIN IMMEDIATE"
TOLD_AFTER_SECONDS = 2
"""People are told what a command waits for after this long."""


def parse_url(url: str, root: Path | None) -> URL:
    """Where the state lies; anything but a file or a PostgreSQL is refused."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        # The rest is a path as it stands: project folders may hold `%`, `?` and `#`.
        path = Path(rest.removeprefix("///"))
        if not rest.startswith("///") or path.name in ("", ":memory:"):
            raise InputError("the state must be a file", hint="write sqlite:///.ebbtide/state.db")
        return URL.create("sqlite", database=str(root / path if root else path))
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except ArgumentError:
        raise InputError("the state is not a database URL", hint="write sqlite:///path or postgresql://…") from None
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise InputError(f"the state cannot live in {backend}", hint="write sqlite:///path or postgresql://…")


def reading_engine(url: URL) -> Engine:
    """Connections that cannot write, each transaction on one snapshot."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, begin="BEGIN", pragmas=("query_only = ON",))
    engine = _postgresql(url, "-c default_transaction_read_only=on")
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writing_engine(url: URL) -> Engine:
    """Connections whose commits are on disk when they return."""
    if url.get_backend_name() == "sqlite":
        # Without secure_delete, a deleted row stays readable in the file; FULL because intents must be on disk.
        # 64 MiB of pages: with fewer, a large transaction writes the same ones to the log again and again.
        settings = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "foreign_keys = ON")
        return _sqlite(url, begin=_WRITING, pragmas=(*settings, "cache_size = -65536"))
    # A writer that sleeps inside its transaction must not keep the others out for ever.
    options = f"-c synchronous_commit=on -c idle_in_transaction_session_timeout={2 * BUSY_SECONDS}s"
    return _postgresql(url, options).execution_options(isolation_level="READ COMMITTED")


def empty_engine() -> Engine:
    """The state of a project that has written none yet."""
    engine = create_engine("sqlite://", poolclass=StaticPool, hide_parameters=True)
    with engine.begin() as connection:
        migrate(connection)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
    return engine


def create_file(path: Path) -> None:
    """An empty file for its owner only: it says what is held, marked and asked for.

    It has its write-ahead log from the first moment: two processes that changed the journal of one new file at the
    same time would lock each other out, and SQLite does not wait there.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        private_folder(path.parent)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(partial)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        # A link, unlike a rename, leaves the file of whoever was first.
        with suppress(FileExistsError):
            os.link(partial, path)
    except OSError as error:
        raise StateError(f"no state could be made at {path}: {error.strerror}", hint="give it a local folder") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def _sqlite(url: URL, *, begin: str, pragmas: tuple[str, ...]) -> Engine:
    # mode=rw never creates the file: a path that is wrong is an error, not an empty state.
    location = f"file:{quote(str(Path(url.database or '').absolute()))}"
    engine = create_engine(
        URL.create("sqlite", database=location, query={"mode": "rw", "uri": "true"}),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        # The driver is in autocommit mode, so that the kind of transaction is ours to choose.
        if begin != _WRITING:
            connection.exec_driver_sql(begin)
            return
        first = min(TOLD_AFTER_SECONDS, BUSY_SECONDS)
        try:
            _wait_for(connection, first)
            connection.exec_driver_sql(begin)
        except OperationalError as error:
            if not is_locked(error.orig):
                raise
            _logger.warning(
                "another process writes to the state at %s (`ebbtide runs list` shows which): waiting up to %d s",
                url.database, BUSY_SECONDS,
            )  # fmt: skip
            _wait_for(connection, BUSY_SECONDS - first)
            connection.exec_driver_sql(begin)
        finally:
            _wait_for(connection, BUSY_SECONDS)

    return engine


def _wait_for(connection: Connection, seconds: float) -> None:
    """How long a statement of SQLite's waits for a lock."""
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def _postgresql(url: URL, option: str) -> Engine:
    given = url.query.get("options", "")
    options = " ".join([*([given] if isinstance(given, str) else given), "-c timezone=UTC", option])
    options += f" -c lock_timeout={BUSY_SECONDS}s"
    return create_engine(
        url.update_query_dict({"options": options}),
        connect_args={"connect_timeout": BUSY_SECONDS},
        hide_parameters=True,
        pool_pre_ping=True,
    )
