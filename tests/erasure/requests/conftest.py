"""A ledger of its own for each test, as in `tests/ledger`."""

from __future__ import annotations

from tests.ledger.conftest import Ticking, home, ledger
from tests.state.databases import database, migrated_file
from tests.state.databases import migrated_url as url

__all__ = ["Ticking", "database", "home", "ledger", "migrated_file", "url"]
