"""What a table must be made of and how it must be set: the contract, and what differs from it (spec §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

IS_PII = "ebbtide.is_pii"
"""The table property, in every format."""

SHORTEST, LONGEST, USUAL = 7, 30, 7
"""The band of the version window of a table with personal data, and what it gets where nobody says, in days."""


class Aspect(StrEnum):
    """What differs."""

    TABLE = "table"  # it is not there
    IS_PII = "is_pii"
    WINDOW = "window"
    STATISTICS = "statistics"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class Contract:
    """What a table has to be. `window` is in days; None leaves it to the band, or open where nothing is personal.

    `columns` maps names to Spark's types, in order; empty where the contract says nothing of them. `pii_columns` must
    not have readable statistics.
    """

    table_id: str
    is_pii: bool
    window: int | None = None
    pii_columns: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    enforce: bool = False
    keeps_versions: bool = False
    """Versions may stay as long as they like, because a legal hold covers the table."""

    def allows(self, days: float | None) -> bool:
        """Whether a version window is right; None is one that is not set."""
        if self.keeps_versions:
            return True
        if self.window is not None:
            return days == self.window
        return not self.is_pii or (days is not None and SHORTEST <= days <= LONGEST)

    @property
    def wanted(self) -> int:
        """The window to set, in days."""
        return USUAL if self.window is None else self.window


@dataclass(frozen=True, slots=True)
class ContractDrift:
    """One thing that is not as the contract says. `fix` are the properties that repair it; empty where a person must.

    `shortens` says that the fix lets versions go earlier than the table's settings do now. `readable` are the columns
    whose statistics hold personal values, each with what is kept of it.
    """

    table_id: str
    aspect: Aspect
    found: str
    wanted: str
    fix: Mapping[str, str] = field(default_factory=dict)
    shortens: bool = False
    readable: Mapping[str, str] = field(default_factory=dict)


def is_pii_drift(contract: Contract, properties: Mapping[str, str]) -> list[ContractDrift]:
    """The same in every format: the property says what the contract says."""
    said, wanted = properties.get(IS_PII), str(contract.is_pii).lower()
    if said == wanted or (said is None and not contract.is_pii):
        return []
    return [ContractDrift(contract.table_id, Aspect.IS_PII, said or "not set", wanted, {IS_PII: wanted})]


def window_drift(contract: Contract, days: float | None, fix: Mapping[str, str]) -> list[ContractDrift]:
    """The same in every format, once its settings are understood as days."""
    if contract.allows(days):
        return []
    found = "not set" if days is None else f"{days:g} d"
    wanted = f"{contract.window} d" if contract.window is not None else f"{SHORTEST}–{LONGEST} d"
    return [
        ContractDrift(
            contract.table_id, Aspect.WINDOW, found, wanted, fix, shortens=days is None or days > contract.wanted
        )
    ]


def statistics_drift(contract: Contract, readable: Mapping[str, str], fix: Mapping[str, str]) -> list[ContractDrift]:
    """The same in every format, once it is known of which columns statistics hold values."""
    if not readable:
        return []
    found = f"kept for {', '.join(readable)}"
    return [ContractDrift(contract.table_id, Aspect.STATISTICS, found, "none", fix, readable=readable)]
