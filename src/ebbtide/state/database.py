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

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from ebbtide.errors import EbbtideError, StateError, StateVersionError
from ebbtide.state import tables
from ebbtide.state.engines import create_file, empty_engine, parse_url, reading_engine, writing_engine
from ebbtide.state.failures import reason_and_hint
from ebbtide.state.migrations import LATEST, found_version, migrate
from ebbtide.state.reader import StateReader
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.writer import StateWriter

if TYPE_CHECKING:
    from ebbtide.state.lease import Lease


class Database:
    """Hands out readers and writers, each bound to one transaction."""

    def __init__(self, url: str, *, root: Path | None = None) -> None:
        """Relative SQLite paths count from `root`. Nothing is opened yet."""
        self._url = parse_url(url, root)
        # A server's address may come from the environment: it is not told, not even without its password.
        self.name = f"at {self._url.database}" if self.is_sqlite else "in PostgreSQL"
        self._known = False
        self._reading: Engine | None = None
        self._writing: Engine | None = None
        # SQLite's log goes into the file when the last connection ends: a copy of the file is then a whole one.
        self._engines: list[Engine] = []
        weakref.finalize(self, _dispose, self._engines)

    @property
    def is_sqlite(self) -> bool:
        """Whether the state is a file of this host."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def folder(self) -> Path | None:
        """The folder of a SQLite file; None for a server."""
        return None if self.file is None else self.file.parent

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return Path(self._url.database or "").absolute() if self.is_sqlite else None

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
        engine = self._reader_engine() if self._usable() else empty_engine()
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
        _dispose(self._engines)
        self._engines.clear()
        self._reading = self._writing = None

    def _usable(self) -> bool:
        """Whether there is a state; one of another layout is refused."""
        if not self._known:
            layout = self._found()
            if layout not in (0, LATEST):
                raise StateVersionError(found=layout, expected=LATEST)
            self._known = layout == LATEST
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
            self._reading = reading_engine(self._url)
            self._engines.append(self._reading)
        return self._reading

    def _writer_engine(self, *, create: bool = False) -> Engine:
        if self._writing is None:
            path = Path(self._url.database or "")
            if create and self.is_sqlite and not path.exists():
                create_file(path)
            self._writing = writing_engine(self._url)
            self._engines.append(self._writing)
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
            reason, hint = reason_and_hint(error.orig)
            raise StateError(f"the state {self.name} failed: {reason}", hint=hint) from None
        except StatementError as error:
            # A column's own refusal, such as a time without a zone, comes wrapped together with the row.
            if isinstance(error.orig, EbbtideError):
                raise error.orig from None
            raise StateError(f"the state {self.name} refused a value: {type(error.orig).__name__}") from None
        except SQLAlchemyError as error:
            raise StateError(f"the state {self.name} failed: {type(error).__name__}") from None


def _dispose(engines: list[Engine]) -> None:
    for engine in engines:
        engine.dispose()


def _check_version(connection: Connection, *, lock: bool = False) -> None:
    query = select(tables.version.c.version)
    found = connection.execute(query.with_for_update() if lock else query).scalar_one()
    if found != LATEST:
        raise StateVersionError(found=found, expected=LATEST)
