"""Places of requests, and erasures whose files are to go, as the state keeps them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ebbtide.state import erasure as rows
from ebbtide.state.database import Database
from ebbtide.state.erasure import ErasurePlace, PlaceState
from ebbtide.state.lease import Lease

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACE = ErasurePlace(
    request="r1", place="lake.db.t", kind="dataset", state=PlaceState.PENDING, because="begun", updated_at=NOW
)


def requested(database: Database, *ids: str) -> None:
    with database.writer() as state:
        for each in ids:
            state.add_request(
                each, law="gdpr", commitments=["c"], sealed=b"s", note="", received_at=NOW, due_at=NOW, at=NOW
            )  # fmt: skip


def test_what_is_said_of_a_place_takes_the_place_of_what_was(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/state.db")
    requested(database, "r1", "r2")
    with database.writer() as state:
        rows.put_places(state.connection, [PLACE, replace(PLACE, request="r2", act="a"), replace(PLACE, place="b")])
        rows.put_places(state.connection, [replace(PLACE, state=PlaceState.REMOVED)])
    with database.reader() as state:
        found = rows.places_of(state.connection, ["r1"])
        assert [(each.place, each.state) for each in found] == [
            ("b", PlaceState.PENDING), ("lake.db.t", PlaceState.REMOVED)
        ]  # fmt: skip


def test_the_list_of_an_erasure_is_kept_until_its_files_are_gone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/state.db")
    requested(database, "r1", "r2")
    with Lease.acquire(database, holder="test") as lease:
        with database.sweeper(lease) as state:
            state.begin_act("a", head=None, files={"one": 1})
            rows.open_erasure(state.connection, "a", "lake.db.t", ["r2", "r1"], free_from=NOW)
            rows.add_files(state.connection, "a", {"two": 2})
        with database.sweeper(lease) as state:
            state.forget_files()
            assert rows.erased_by(state.connection, "a") is None
            rows.put_off(state.connection, "a", free_from=NOW + timedelta(hours=1), erased="what was done")
            assert rows.erased_by(state.connection, "a") == "what was done"
        with database.sweeper(lease) as state:
            (found,) = rows.open_erasures(state.connection)
            assert (found.files, found.free_from) == ({"one": 1, "two": 2}, NOW + timedelta(hours=1))
            assert found.requests == {"r1", "r2"}
            rows.close_erasure(state.connection, ["a"])
            state.forget_files()
            assert rows.open_erasures(state.connection) == []
            assert state.files_of_act("a") == {}
