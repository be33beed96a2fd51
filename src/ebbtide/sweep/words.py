"""What the ledger may hold of an object: never a value that may name a person (spec §5, "No personal data")."""

from __future__ import annotations

import re

from ebbtide.ledger.entries import salted
from ebbtide.state.values import Mark

_DATES = re.compile(r"\d{4}(-?\d{2}(-?\d{2}([T ]\d{2}.*)?)?)?", re.ASCII)


def object_in_ledger(mark: Mark) -> str:
    """The object's id, or its salted hash where a partition's value is anything but a date or a time.

    Row objects are named by their policy, orphans by their folder, whose segments may be partition values too.
    """
    key = mark.key
    if key.target == "orphans" or (key.target == "partitions" and not _only_dates(key.object)):
        return salted(mark.salt, key.object)
    return key.object


def because_in_ledger(mark: Mark) -> str:
    """Why it goes. A predicate of a rows target is free text, and may hold a value of anybody."""
    return salted(mark.salt, mark.because) if mark.key.target in ("rows", "orphans") else mark.because


def _only_dates(partition: str) -> bool:
    values = [segment.partition("=")[2] for segment in partition.split("/")[1:]]
    return bool(values) and all(value == "%00" or _DATES.fullmatch(value.replace("%3A", ":")) for value in values)
