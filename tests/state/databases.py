"""Every test of state and ledger runs on both databases: import these fixtures into a conftest.

Those of the ledger run on PostgreSQL in the deep tier: what it asks of a database is tested on both with the state.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.state.database import Database
from tests.state.postgres import server
from tests.tiers import deep_after_first


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a state."""
    return f"sqlite:///{tmp_path}/state/state.db" if request.param == "sqlite" else server().new_url()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("migrated")
    database = Database(f"sqlite:///{folder}/state.db")
    database.upgrade()
    database.close()
    return folder / "state.db"


@pytest.fixture(params=deep_after_first("sqlite", "postgresql"))
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A state with all its tables and no rows: a copy, since making the tables takes longer than most tests."""
    if request.param == "sqlite":
        path = tmp_path / "state" / "state.db"
        path.parent.mkdir(mode=0o700)
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        yield f"sqlite:///{path}"
    else:
        with server().migrated() as url:
            yield url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """An empty state."""
    database = Database(url)
    yield database
    database.close()
