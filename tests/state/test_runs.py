"""Runs that another process watches and stops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ebbtide.errors import RefusedError
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def test_another_process_sees_who_runs_what_and_how_far_it_is(database: Database) -> None:
    with database.writer() as state:
        ada = state.actor("ada")
        run = state.begin_run("scan", actor=ada, at=NOW)
    with database.writer() as state:
        state.show_run(run.id, step="reading", done=3, total=7, seen_at=LATER)
    with database.reader() as reader:
        (found,) = reader.runs(only_unfinished=True)
        assert (found.verb, found.fence, reader.actor_name(found.actor or "")) == ("scan", 0, "ada")
        assert (found.step, found.done, found.total, found.seen_at) == ("reading", 3, 7, LATER)


def test_the_first_who_asks_a_run_to_stop_is_kept_and_a_finished_one_cannot_be_asked(database: Database) -> None:
    with database.writer() as state:
        ada, bob = state.actor("ada"), state.actor("bob")
        run = state.begin_run("scan", actor=ada, at=NOW)
        assert state.cancel_run(run.id, actor=bob).cancel_requested == bob
        assert state.cancel_run(run.id, actor=ada).cancel_requested == bob
        state.end_run(run.id, exit_code=130, summary="cancelled by bob", at=LATER)
        with pytest.raises(RefusedError):
            state.cancel_run(run.id, actor=ada)


def test_a_run_that_was_taken_for_dead_stays_as_it_was_found(database: Database) -> None:
    with Lease.acquire(database, holder="t") as lease, database.sweeper(lease) as state:
        run = state.start_run("sweep", at=NOW)
        dead = state.finish_run(run.id, exit_code=4, summary="it ended before its end", at=NOW)
        assert state.end_run(run.id, exit_code=0, summary="late", at=LATER) == dead
        state.show_run(run.id, step="late", done=1, total=1, seen_at=LATER)
        assert state.get_run(run.id) == dead
