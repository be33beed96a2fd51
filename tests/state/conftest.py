from __future__ import annotations

from tests.state.databases import database, url
from tests.state.postgres import stop_server

__all__ = ["database", "url"]


def pytest_sessionfinish() -> None:
    stop_server()
