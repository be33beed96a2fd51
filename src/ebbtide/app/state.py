"""The project's state: opening it, and `ebbtide state upgrade`."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.config import Project
from ebbtide.state.database import Database
from ebbtide.state.migrations import LATEST


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The layout before and after; the same when there was nothing to do. 0 is no state at all."""

    before: int
    after: int


def open_state(project: Project) -> Database:
    """The state of a project. A state that is lost is refused, not read as an empty one (design, invariant 2)."""
    from ebbtide.app.ledger import open_ledger

    ledger = open_ledger(project)
    with ledger.reading() as log:
        if log.size == 0:
            # No holds and no marks would follow from an empty state: make sure that there never were any.
            ledger.check_never_signed()
    return ledger.database


def upgrade_state(project: Project, *, dry_run: bool = False) -> Upgrade:
    """Bring the state's tables to this version, or say what would be done."""
    database = Database(project.state)
    try:
        if dry_run:
            before = database.version()
            return Upgrade(before, max(before, LATEST))
        return Upgrade(*database.upgrade())
    finally:
        database.close()
