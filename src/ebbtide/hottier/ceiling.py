"""The ceiling on the log that a mirror holds back: whatever keeps it from reading, it fills no server's disk.

It is asked after every run of a table, also where nothing of it could be looked at. What the slot would have told is
lost by it, and said loudly: the mirror is `DEGRADED`, what waits to be confirmed waits on.
"""

from __future__ import annotations

import logging
from typing import Any

from psycopg import Connection

from ebbtide.config.hottier import HotTable
from ebbtide.hottier.mirror import Book, StoppedError
from ebbtide.hottier.setup import drop_slot, slot_state
from ebbtide.state.hottier import MirrorState


def enforce(connection: Connection[tuple[Any, ...]], table: HotTable, book: Book, logger: logging.Logger) -> None:
    """Give the server's log free where a slot holds more of it than `max_retained`; a `StoppedError` then."""
    record = book.record()
    slot = None if record.slot is None else slot_state(connection, record.slot)
    if slot is None or record.slot is None:
        return
    retained = slot[1]
    book.set_table(retained_bytes=retained)
    if retained <= table.max_retained:
        return
    drop_slot(connection, record.slot)
    before = f"{record.because}; " if record.because else ""
    because = f"{before}its slot was dropped at {retained:,} bytes of log, before the disk was full"
    book.set_table(state=MirrorState.DEGRADED, because=because, retained_bytes=0)
    logger.error("%s: %s", table.id, because)
    raise StoppedError(table.id, because, MirrorState.DEGRADED)
