"""Layout 6: what the ledger holds in keyed forms only, in plain words and with the salts.

Condemned folders, the files of acts that are not over, and what the project file declares.
"""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE condemned_with_salt (
        id           TEXT NOT NULL PRIMARY KEY,
        path         TEXT NOT NULL UNIQUE,
        dataset      TEXT NOT NULL,
        actor        TEXT NOT NULL REFERENCES actors (id),
        condemned_at TEXT NOT NULL,
        salt         {binary} NOT NULL
    )
    """,
    """
    INSERT INTO condemned_with_salt (id, path, dataset, actor, condemned_at, salt)
    SELECT id, path, dataset, actor, condemned_at, {random} FROM condemned
    """,
    "DROP TABLE condemned",
    "ALTER TABLE condemned_with_salt RENAME TO condemned",
    """
    CREATE TABLE acts (
        id   TEXT NOT NULL PRIMARY KEY,
        head TEXT,
        salt {binary} NOT NULL
    )
    """,
    """
    CREATE TABLE act_files (
        act  TEXT NOT NULL,
        part {count} NOT NULL,
        body {binary} NOT NULL,
        PRIMARY KEY (act, part)
    )
    """,
    """
    CREATE TABLE declarations (
        id          TEXT NOT NULL PRIMARY KEY,
        kind        TEXT NOT NULL CHECK (kind IN ('catalog', 'dataset')),
        name        TEXT NOT NULL,
        reason      TEXT NOT NULL,
        until       TEXT,
        salt        {binary} NOT NULL,
        actor       TEXT NOT NULL REFERENCES actors (id),
        declared_at TEXT NOT NULL,
        ended_at    TEXT,
        ended_by    TEXT REFERENCES actors (id)
    )
    """,
)
