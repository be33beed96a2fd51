"""Layout 7: who runs what, how far it is, and who asked it to stop. Runs that write nothing else have fence 0."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE runs ADD COLUMN actor TEXT REFERENCES actors (id)",
    "ALTER TABLE runs ADD COLUMN step TEXT",
    "ALTER TABLE runs ADD COLUMN done {count}",
    "ALTER TABLE runs ADD COLUMN total {count}",
    "ALTER TABLE runs ADD COLUMN seen_at TEXT",
    "ALTER TABLE runs ADD COLUMN cancel_requested TEXT REFERENCES actors (id)",
)
