from __future__ import annotations

from tests.state.databases import database, url

__all__ = ["database", "url"]
