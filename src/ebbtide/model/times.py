"""Times as text. Everything is UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def as_text(time: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ`, the one spelling in JSON and in the ledger (spec §5)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
