"""One project's state: a SQLite file, or a PostgreSQL database (spec §8).

Invariants:

1. A reader cannot write: its connection is read-only for the database itself.
2. A writer's transaction is exclusive. On SQLite it begins with the write lock; on PostgreSQL it first locks the one
   row of `ebbtide_version`. So whatever a writer reads is still true when it commits, and the order of commits is the
   order of the ledger.
3. A layout of another version is neither read nor written; every writing transaction looks again, because another
   process may have upgraded meanwhile.
4. Commits reach the disk before they are acknowledged: an intent that was written before an act survives a crash.
5. No parameter of a statement reaches an error or a log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError, StatementError
from sqlalchemy.pool import StaticPool

from ebbtide.errors import EbbtideError, InputError, StateError, StateVersionError
from ebbtide.state import tables
from ebbtide.state.migrations import LATEST, found_version, migrate
from ebbtide.state.reader import StateReader
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.writer import StateWriter

if TYPE_CHECKING:
    from ebbtide.state.lease import Lease

BUSY_SECONDS = 30


class Database:
    """Hands out readers and writers, each bound to one transaction."""

    def __init__(self, url: str, *, root: Path | None = None) -> None:
        """Relative SQLite paths count from `root`. Nothing is opened yet."""
        self._url = _parse(url, root)
        self.name = self._url.render_as_string(hide_password=True)
        self._known = False
        self._reading: Engine | None = None
        self._writing: Engine | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether the state is a file of this host."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def folder(self) -> Path | None:
        """The folder of a SQLite file; None for a server."""
        return Path(self._url.database or "").absolute().parent if self.is_sqlite else None

    def version(self) -> int:
        """The layout that is there; 0 when there is no state. An error is an error, never a no."""
        return self._found()

    def exists(self) -> bool:
        """Whether there is a state at all."""
        return self._found() > 0

    def upgrade(self) -> tuple[int, int]:
        """Make or migrate the tables; gives the layouts before and after."""
        with self._transaction(self._writer_engine(create=True)) as connection:
            if not self.is_sqlite:
                # There may be no row to lock yet.
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(current_schema()))"))
            return migrate(connection)

    @contextmanager
    def reader(self) -> Iterator[StateReader]:
        """A reader on one consistent snapshot. Where there is no state yet it reads an empty one, and makes none."""
        engine = self._reader_engine() if self._usable() else _nothing()
        with self._transaction(engine) as connection:
            _check_version(connection)
            yield StateReader(connection)

    @contextmanager
    def writer(self) -> Iterator[StateWriter]:
        """A writer in one transaction, which is undone when the block raises."""
        with self._exclusive() as connection:
            yield StateWriter(connection)

    @contextmanager
    def sweeper(self, lease: Lease) -> Iterator[SweepWriter]:
        """A writer that may sweep. The lease is proved after the lock is taken, and again before the commit:
        who slept through it writes nothing more.
        """
        with self._exclusive() as connection:
            lease.prove(connection)
            yield SweepWriter(connection, fence=lease.fence)
            lease.prove(connection)

    def scrub(self) -> None:
        """Empty SQLite's write-ahead log into the file, so that deleted bytes are gone from it too."""
        if self.is_sqlite:
            with self._errors(), self._writer_engine().connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Give back all connections."""
        for engine in (self._reading, self._writing):
            if engine:
                engine.dispose()
        self._reading = self._writing = None

    def _usable(self) -> bool:
        """Whether there is a state; one of another layout is refused."""
        if not self._known:
            found = self._found()
            if found not in (0, LATEST):
                raise StateVersionError(found=found, expected=LATEST)
            self._known = found == LATEST
        return self._known

    @contextmanager
    def _exclusive(self) -> Iterator[Connection]:
        if not self._usable():
            self.upgrade()
        with self._transaction(self._writer_engine()) as connection:
            # On PostgreSQL this row is the lock: it waits here until the writer before it has committed.
            _check_version(connection, lock=True)
            yield connection

    def _found(self) -> int:
        if self.is_sqlite:
            path = Path(self._url.database or "")
            if not path.exists() or path.stat().st_size == 0:
                return 0
        with self._transaction(self._reader_engine()) as connection:
            return found_version(connection)

    def _reader_engine(self) -> Engine:
        if self._reading is None:
            if self.is_sqlite:
                self._reading = _sqlite(self._url, begin="BEGIN", pragmas=("query_only = ON",))
            else:
                engine = _postgresql(self._url, "-c default_transaction_read_only=on")
                self._reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        return self._reading

    def _writer_engine(self, *, create: bool = False) -> Engine:
        if self._writing is None:
            if self.is_sqlite:
                path = Path(self._url.database or "")
                if create and not path.exists():
                    _create_private(path)
                # Without secure_delete, a deleted row stays readable in the file; FULL because intents must be on disk.
                pragmas = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "foreign_keys = ON")
                self._writing = _sqlite(self._url, begin="BEGIN IMMEDIATE", pragmas=pragmas)
            else:
                # A writer that sleeps inside its transaction must not keep the others out for ever.
                options = f"-c synchronous_commit=on -c idle_in_transaction_session_timeout={2 * BUSY_SECONDS}s"
                engine = _postgresql(self._url, options)
                self._writing = engine.execution_options(isolation_level="READ COMMITTED")
        return self._writing

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        with self._errors(), engine.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            # The driver's first line says what happened; parameters are hidden, and the URL has no password.
            reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
            raise StateError(
                f"the state at {self.name} failed: {reason}",
                hint="another process may hold it; look at its lease and try again",
            ) from None
        except StatementError as error:
            # A column's own refusal, such as a time without a zone, comes wrapped together with the row.
            if isinstance(error.orig, EbbtideError):
                raise error.orig from None
            raise StateError(f"the state at {self.name} refused a value: {type(error.orig).__name__}") from None
        except SQLAlchemyError as error:
            raise StateError(f"the state at {self.name} failed: {type(error).__name__}") from None


def _check_version(connection: Connection, *, lock: bool = False) -> None:
    query = select(tables.version.c.version)
    found = connection.execute(query.with_for_update() if lock else query).scalar_one()
    if found != LATEST:
        raise StateVersionError(found=found, expected=LATEST)


def _parse(url: str, root: Path | None) -> URL:
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


def _sqlite(url: URL, *, begin: str, pragmas: tuple[str, ...]) -> Engine:
    # mode=rw never creates the file: a path that is wrong is an error, not an empty state.
    location = f"file:{quote(str(Path(url.database or '').absolute()))}"
    engine = create_engine(
        URL.create("sqlite", database=location, query={"mode": "rw", "uri": "true"}),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        # The driver is in autocommit mode, so that the kind of transaction is ours to choose.
        connection.exec_driver_sql(begin)

    return engine


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


def _nothing() -> Engine:
    """The state of a project that has written none yet."""
    engine = create_engine("sqlite://", poolclass=StaticPool, hide_parameters=True)
    with engine.begin() as connection:
        migrate(connection)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
    return engine


def _create_private(path: Path) -> None:
    """The file, for its owner only: it says what is held, marked and asked for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
