"""Layout 12: what an erasure that waits for readers let end."""

from __future__ import annotations

STATEMENTS = ("ALTER TABLE erasure_acts ADD COLUMN erased TEXT",)
