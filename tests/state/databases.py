"""Every test of state and ledger runs on both databases: import these fixtures into a conftest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.state.database import Database
from tests.state.postgres import server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a state."""
    return f"sqlite:///{tmp_path}/state/state.db" if request.param == "sqlite" else server().new_url()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """An empty state."""
    database = Database(url)
    yield database
    database.close()
