"""Layout 10: hot tables with the state of their mirrors, and their chunks."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE hot_tables (
        id TEXT NOT NULL PRIMARY KEY,
        cold TEXT,
        system TEXT NOT NULL,
        timeline {count} NOT NULL,
        slot TEXT,
        publication TEXT,
        state TEXT NOT NULL,
        because TEXT NOT NULL,
        position {count},
        passed {count},
        lag_bytes {count},
        retained_bytes {count},
        confirm {count},
        confirmed {count},
        lateness {count},
        added_at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE hot_chunks (
        hot_table TEXT NOT NULL REFERENCES hot_tables (id),
        name TEXT NOT NULL,
        oid {count} NOT NULL,
        first TEXT,
        last TEXT,
        state TEXT NOT NULL,
        sealed {count},
        changed {count},
        cold_version TEXT,
        rows {count},
        digest TEXT,
        tiered_at TEXT,
        dropped_at TEXT,
        forced_by TEXT,
        pinned {count} NOT NULL,
        act TEXT,
        waits_for TEXT NOT NULL,
        PRIMARY KEY (hot_table, name)
    )
    """,
)
