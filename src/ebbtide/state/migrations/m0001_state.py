"""Layout 1: marks, unmarks, holds, requests, runs and leases."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE actors (
        id   TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TABLE marks (
        id             TEXT NOT NULL PRIMARY KEY,
        dataset        TEXT NOT NULL,
        target         TEXT NOT NULL,
        object         TEXT NOT NULL,
        policy         TEXT NOT NULL,
        because        TEXT NOT NULL,
        fingerprint    TEXT NOT NULL,
        frozen         TEXT,
        files          TEXT,
        rows           {count} NOT NULL,
        bytes          {count} NOT NULL,
        run            TEXT NOT NULL,
        marked_at      TEXT NOT NULL,
        grace_until    TEXT NOT NULL,
        state          TEXT NOT NULL CHECK (state IN ('marked', 'waiting', 'sweeping', 'swept', 'unmarked')),
        waits_for      TEXT NOT NULL,
        closed_at      TEXT,
        closed_because TEXT,
        salt           {binary} NOT NULL,
        CHECK ((closed_at IS NULL) = (state IN ('marked', 'waiting', 'sweeping')))
    )
    """,
    "CREATE UNIQUE INDEX marks_open ON marks (dataset, target, object) WHERE closed_at IS NULL",
    "CREATE INDEX marks_object ON marks (dataset, object)",
    """
    CREATE TABLE unmarks (
        id          TEXT NOT NULL PRIMARY KEY,
        dataset     TEXT NOT NULL,
        object      TEXT NOT NULL,
        actor       TEXT NOT NULL REFERENCES actors (id),
        reason      TEXT NOT NULL,
        salt        {binary} NOT NULL,
        created_at  TEXT NOT NULL,
        until       TEXT,
        released_at TEXT,
        released_by TEXT REFERENCES actors (id)
    )
    """,
    "CREATE INDEX unmarks_object ON unmarks (dataset, object)",
    """
    CREATE TABLE holds (
        id          TEXT NOT NULL PRIMARY KEY,
        scope       TEXT NOT NULL CHECK (scope IN ('dataset', 'partitions', 'subject')),
        dataset     TEXT,
        first_day   TEXT,
        last_day    TEXT,
        commitments TEXT NOT NULL,
        sealed      {binary},
        owner       TEXT NOT NULL REFERENCES actors (id),
        reason      TEXT NOT NULL,
        salt        {binary} NOT NULL,
        created_at  TEXT NOT NULL,
        released_at TEXT,
        released_by TEXT REFERENCES actors (id),
        CHECK ((scope = 'subject') = (dataset IS NULL))
    )
    """,
    """
    CREATE TABLE requests (
        id          TEXT NOT NULL PRIMARY KEY,
        law         TEXT NOT NULL,
        state       TEXT NOT NULL,
        commitments TEXT NOT NULL,
        sealed      {binary},
        note        TEXT NOT NULL,
        salt        {binary} NOT NULL,
        received_at TEXT NOT NULL,
        due_at      TEXT NOT NULL,
        extended_to TEXT,
        updated_at  TEXT NOT NULL,
        closed_at   TEXT
    )
    """,
    """
    CREATE TABLE runs (
        id          TEXT NOT NULL PRIMARY KEY,
        verb        TEXT NOT NULL,
        fence       {count} NOT NULL,
        started_at  TEXT NOT NULL,
        finished_at TEXT,
        exit_code   {count},
        summary     TEXT
    )
    """,
    """
    CREATE TABLE leases (
        name        TEXT NOT NULL PRIMARY KEY,
        fence       {count} NOT NULL,
        holder      TEXT NOT NULL,
        acquired_at TEXT NOT NULL,
        expires_at  TEXT NOT NULL,
        released_at TEXT
    )
    """,
)
