from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from tests.state.databases import database, migrated_file
from tests.state.databases import migrated_url as url  # how a state comes to be is a test of the state
from tests.state.postgres import stop_server

__all__ = ["database", "home", "ledger", "migrated_file", "url"]


def pytest_sessionfinish() -> None:
    stop_server()


class Ticking:
    """A clock that moves on by a second whenever it is read."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(
        keys=KeyFolder(tmp_path / "project" / "keys"),
        folder=tmp_path / "outside",
        project="acme",
        origin="example.org/acme",
    )


@pytest.fixture
def ledger(database: Database, home: Home) -> Iterator[Ledger]:
    # Nobody else writes: there is no signature to wait for.
    yield Ledger(database, home, Clock(Ticking().now), patience=())
    database.close()
