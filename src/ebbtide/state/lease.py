"""The lease: one sweeper per project, on whatever number of hosts (design, invariant 5).

1. Whoever acquires the lease gets a fencing number that is larger than every number before.
2. A sweeper's transaction proves number and time before it writes and again before it commits; the row stays locked
   between, so nobody can take the lease inside of it.
3. A lease that ran out is lost even when nobody else wanted it: the sweeper cannot know what others read meanwhile.
4. `check` comes before every batch of deletes and leaves at least two thirds of the time; a batch may take one third.

Time is the database's, so that hosts need not agree; `--as-of` never touches it.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, insert, select, text, update

from ebbtide.errors import EbbtideError, LeaseError
from ebbtide.model.canonical import parse_timestamp
from ebbtide.run import finishing
from ebbtide.state.database import Database
from ebbtide.state.tables import leases

_logger = logging.getLogger(__name__)
SWEEPER = "sweeper"
SECONDS = 60

_NOW = {
    "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'",
    "postgresql": """SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
}


def database_time(connection: Connection) -> datetime:
    """What the database's clock says now, not when the transaction began."""
    return parse_timestamp(connection.execute(text(_NOW[connection.dialect.name])).scalar_one())


class Lease:
    """A lease that was acquired. As a context manager it renews itself from a thread, and is released at the end."""

    def __init__(self, database: Database, *, fence: int, holder: str, seconds: float) -> None:
        self._database = database
        self.fence, self.holder, self.seconds = fence, holder, seconds
        self._done = threading.Event()
        self._renewer = threading.Thread(target=self._keep_renewing, name="ebbtide-lease", daemon=True)

    @classmethod
    def acquire(cls, database: Database, *, holder: str, seconds: float = SECONDS) -> Lease:
        """Take the lease, or refuse while another sweeper holds it. `holder` says to people who it is."""
        with database.writer() as state:
            connection = state.connection
            now = database_time(connection)
            record = state.lease()
            if record and record.released_at is None and now < record.expires_at:
                raise LeaseError(
                    f"another sweeper is at work: {record.holder}, until {record.expires_at:%H:%M:%S} UTC",
                    fence=record.fence,
                    hint="wait for it to finish; if its process is gone, its lease runs out at that time",
                )
            fence = record.fence + 1 if record else 1
            row = {
                "fence": fence,
                "holder": holder,
                "acquired_at": now,
                "expires_at": now + timedelta(seconds=seconds),
                "released_at": None,
            }
            connection.execute(
                update(leases).where(leases.c.name == SWEEPER).values(row)
                if record
                else insert(leases).values(row | {"name": SWEEPER})
            )
        _logger.debug("lease %d taken by %s", fence, holder)
        return cls(database, fence=fence, holder=holder, seconds=seconds)

    def prove(self, connection: Connection) -> timedelta:
        """The time that is left; refused when the lease is over or another sweeper has a larger number."""
        query = select(leases).where(leases.c.name == SWEEPER).with_for_update()
        row = connection.execute(query).one_or_none()
        now = database_time(connection)
        if row is None or row.fence != self.fence:
            found = row.fence if row else 0
            raise LeaseError(f"the lease {self.fence} was taken over by {found}", fence=found, hint=_AGAIN)
        if row.released_at is not None:
            raise LeaseError(f"the lease {self.fence} was released", fence=self.fence, hint=_AGAIN)
        left: timedelta = row.expires_at - now
        if left <= timedelta(0):
            raise LeaseError(
                f"the lease {self.fence} ran out {-left.total_seconds():.1f} s ago", fence=self.fence, hint=_AGAIN
            )
        return left

    def renew(self) -> None:
        """Begin the lease's time anew; one that is over stays over."""
        with self._database.sweeper(self) as state:
            expires = database_time(state.connection) + timedelta(seconds=self.seconds)
            state.connection.execute(update(leases).where(leases.c.name == SWEEPER).values(expires_at=expires))

    def check(self) -> None:
        """Refuse unless a batch may begin: the lease is ours, and at least two thirds of its time are left."""
        with self._database.sweeper(self) as state:
            left = self.prove(state.connection)
        if left < timedelta(seconds=self.seconds * 2 / 3):
            self.renew()

    def release(self) -> None:
        """Let the next sweeper in at once. Releasing a lease that is over changes nothing."""
        with self._database.writer() as state:
            connection = state.connection
            connection.execute(
                update(leases)
                .where(leases.c.name == SWEEPER, leases.c.fence == self.fence, leases.c.released_at.is_(None))
                .values(released_at=database_time(connection))
            )

    def __enter__(self) -> Self:
        self._renewer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        with finishing():
            self._renewer.join()
            self.release()

    def _keep_renewing(self) -> None:
        while not self._done.wait(self.seconds / 3):
            try:
                self.renew()
            except LeaseError as error:
                _logger.warning("%s", error.message)
                return
            except EbbtideError as error:
                _logger.info("the lease was not renewed: %s", error.message)
                # The database did not answer. The lease goes on by its own time, and every write proves it.
                continue


_AGAIN = "nothing was written; run again, which finishes what was begun"
