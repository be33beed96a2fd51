"""What `ebbtide doctor` found of one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"
    OPTIONAL = "optional"
    """Not there, and Ebbtide works without it."""
    MISSING = "missing"
    BROKEN = "broken"
    """There, and not as it has to be."""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One row. `command` is what to type, None where there is nothing to do."""

    what: str
    health: Health
    found: str
    command: str | None = None

    @property
    def is_trouble(self) -> bool:
        return self.health in (Health.MISSING, Health.BROKEN)


def ok(what: str, found: str) -> HealthRow:
    return HealthRow(what, Health.OK, found)


def missing(what: str, found: str, command: str) -> HealthRow:
    return HealthRow(what, Health.MISSING, found, command)


def broken(what: str, found: str, command: str) -> HealthRow:
    return HealthRow(what, Health.BROKEN, found, command)
