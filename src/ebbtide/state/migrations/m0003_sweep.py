"""Layout 3: what a sweep must know of its marks after a crash, and what history tells of objects that are gone."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE marks ADD COLUMN act TEXT",
    "ALTER TABLE marks ADD COLUMN acted_at TEXT",
    "ALTER TABLE marks ADD COLUMN facts TEXT",
)
