"""Layout 11: what becomes of each place of a request, and erasures whose files are still to go."""

from __future__ import annotations

# An owner says that it wants an act in the transaction that writes the act down, and before that.
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
    """
    CREATE TABLE erasure_acts (
        act TEXT NOT NULL PRIMARY KEY REFERENCES acts (id) DEFERRABLE INITIALLY DEFERRED,
        dataset TEXT NOT NULL,
        free_from TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE erasure_act_requests (
        act TEXT NOT NULL REFERENCES erasure_acts (act),
        request TEXT NOT NULL REFERENCES requests (id),
        PRIMARY KEY (act, request)
    )
    """,
)
