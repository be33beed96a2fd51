"""Layout 2: the ledger, in the same database, so that a change and its entry are one transaction."""

from __future__ import annotations

STATEMENTS = (
    """
    CREATE TABLE ledger_entries (
        idx       {count} NOT NULL PRIMARY KEY,
        leaf_hash {binary} NOT NULL,
        body      {binary}
    )
    """,
    """
    CREATE TABLE ledger_nodes (
        height {count} NOT NULL,
        idx    {count} NOT NULL,
        hash   {binary} NOT NULL,
        PRIMARY KEY (height, idx)
    )
    """,
    """
    CREATE TABLE ledger_acts (
        act     TEXT NOT NULL PRIMARY KEY,
        intent  {count} NOT NULL UNIQUE,
        outcome {count} UNIQUE
    )
    """,
    """
    CREATE TABLE ledger_keys (
        entry {count} NOT NULL PRIMARY KEY,
        key   TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE ledger_checkpoints (
        size {count} NOT NULL PRIMARY KEY,
        note {binary} NOT NULL
    )
    """,
    """
    CREATE TABLE ledger_attachments (
        digest TEXT NOT NULL,
        part   {count} NOT NULL,
        body   {binary} NOT NULL,
        PRIMARY KEY (digest, part)
    )
    """,
)
