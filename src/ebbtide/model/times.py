"""Times as text, and from what people write. Everything is UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime

from ebbtide.errors import InputError


def as_text(time: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ`, the one spelling in JSON and in the ledger (spec §5)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """What people write: a date (its first moment in UTC) or an instant. An instant without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"not a time: {text!r}", hint="write 2026-11-15 or 2026-11-15T12:00:00Z") from None
    if len(text) == len(date.min.isoformat()) and time.time() == datetime.min.time():
        return time.replace(tzinfo=UTC)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
