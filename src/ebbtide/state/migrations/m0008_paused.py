"""Layout 8: acts that wait between two stages for a later run. Recovery leaves them alone."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE paused_acts (
        act TEXT NOT NULL PRIMARY KEY REFERENCES acts (id)
    )
    """,
)
