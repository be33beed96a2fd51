"""Runs as anybody may write them: that one is at work, how far it is, and that it should stop.

None of it is needed to be safe, so none of it needs the lease; what only a sweeper says of its run is in `sweeper.py`.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import insert, update

from ebbtide.errors import RefusedError
from ebbtide.state import tables
from ebbtide.state.reader import StateReader
from ebbtide.state.values import RunRecord


class RunWriter(StateReader):
    """The part of a writer that keeps runs."""

    def begin_run(self, verb: str, *, actor: str | None, at: datetime, fence: int = 0) -> RunRecord:
        """A run begins; without a lease its fence is 0."""
        run = RunRecord(
            id=secrets.token_hex(16), verb=verb, fence=fence, started_at=at, finished_at=None, exit_code=None,
            summary=None, actor=actor,
        )  # fmt: skip
        self.connection.execute(insert(tables.runs), [asdict(run)])
        return run

    def show_run(self, run_id: str, *, step: str, done: int, total: int | None, seen_at: datetime) -> None:
        """How far a run is, and that its process lives."""
        at_work = (tables.runs.c.id == run_id, tables.runs.c.finished_at.is_(None))
        values = {"step": step, "done": done, "total": total, "seen_at": seen_at}
        self.connection.execute(update(tables.runs).where(*at_work).values(values))

    def cancel_run(self, run_id: str, *, actor: str) -> RunRecord:
        """Ask a run to stop at its next boundary. The first who asks is kept."""
        found = self.get_run(run_id)
        if found.finished_at is not None:
            raise RefusedError(f"run {run_id} is finished already", hint="`ebbtide runs list` shows those at work")
        if found.cancel_requested is None:
            self.connection.execute(
                update(tables.runs).where(tables.runs.c.id == run_id).values(cancel_requested=actor)
            )
        return self.get_run(run_id)

    def end_run(self, run_id: str, *, exit_code: int, summary: str, at: datetime) -> RunRecord:
        """A run says how it ended. One that somebody else took for dead stays as it was found."""
        at_work = (tables.runs.c.id == run_id, tables.runs.c.finished_at.is_(None))
        values = {"finished_at": at, "exit_code": exit_code, "summary": summary}
        self.connection.execute(update(tables.runs).where(*at_work).values(values))
        return self.get_run(run_id)
