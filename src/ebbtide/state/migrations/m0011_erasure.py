"""Layout 11: what becomes of each place of a request, and erasures whose files are still to go."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE erasure_places (
        request TEXT NOT NULL REFERENCES requests (id),
        place TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        because TEXT NOT NULL,
        until TEXT,
        act TEXT,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (request, place)
    )
    """,
    "CREATE INDEX erasure_places_act ON erasure_places (act)",
    """
    CREATE TABLE erasure_acts (
        act TEXT NOT NULL PRIMARY KEY REFERENCES acts (id) DEFERRABLE INITIALLY DEFERRED,
        dataset TEXT NOT NULL,
        free_from TEXT NOT NULL
    )
    """,
)
