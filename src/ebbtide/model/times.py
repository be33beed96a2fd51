"""Times as text, and from what people write. Everything is UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from ebbtide.errors import InputError


def as_text(time: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ`, the one spelling in JSON and in the ledger (spec §5)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def in_utc(time: datetime) -> datetime:
    """A time that a program hands in: one without a zone is UTC, as on the command line."""
    if not isinstance(time, datetime):
        raise InputError(f"not a time: {time!r}", hint="pass a datetime, such as datetime(2026, 11, 15, tzinfo=UTC)")
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def parse_time(text: str, *, needs_zone: bool = False) -> datetime:
    """What people write: a date (its first moment in UTC) or an instant. An instant without a zone is UTC, and refused
    where it says what is removed for good (`needs_zone`).
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"not a time: {text!r}", hint="write 2026-11-15 or 2026-11-15T12:00:00Z") from None
    if len(text) == len(date.min.isoformat()) and time.time() == datetime.min.time():
        return time.replace(tzinfo=UTC)
    if time.tzinfo is None and needs_zone:
        raise InputError("an instant without a time zone", hint="end it with Z for UTC")
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def parse_day(text: str) -> date:
    """A day, as people write it."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"not a day: {text!r}", hint="write 2026-11-15") from None


def parse_days(text: str) -> list[date]:
    """A day, or `A..B` for every day from A to B."""
    first, dots, last = text.partition("..")
    try:
        start = parse_day(first)
        end = parse_day(last) if dots else start
    except InputError:
        raise InputError(f"not a date or a range: {text!r}", hint="2026-01-31, or 2026-01-01..2026-01-31") from None
    if end < start:
        raise InputError(f"{text!r} ends before it begins", hint=f"write {last}..{first}")
    return [start + timedelta(days=n) for n in range((end - start).days + 1)]
