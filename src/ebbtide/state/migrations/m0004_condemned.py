"""Layout 4: folders that a person condemned, tables that no catalog lists."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE condemned (
        id           TEXT NOT NULL PRIMARY KEY,
        path         TEXT NOT NULL UNIQUE,
        dataset      TEXT NOT NULL,
        actor        TEXT NOT NULL REFERENCES actors (id),
        condemned_at TEXT NOT NULL
    )
    """,
)
