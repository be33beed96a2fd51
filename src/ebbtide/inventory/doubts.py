"""Who may reference files of others without anybody knowing it (spec §7, hazard 33).

A dataset or a catalog that cannot be read now, or never could be, may reference any file of any other: Iceberg's
`add_files`, a shallow clone. While there is one, no file of another dataset goes. Two ways lead out, both a person's
word: a catalog whose tables never share files, and a dataset, or a catalog that is gone, that is to be ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ebbtide.config.project import Ignored
from ebbtide.formats.base import Depth
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.unnamed import not_named
from ebbtide.model.dataset import Catalog
from ebbtide.model.times import as_text

WAY_OUT = (
    "repair it: nothing of it goes until then, and files of other datasets wait for it, unless its catalog is declared "
    "`shares_files: false`, or it is named under `ignore` in ebbtide.yml"
)
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Doubt:
    """A dataset or a catalog whose references are not known, and why."""

    name: str
    reason: str

    @property
    def text(self) -> str:
        """In a line. What a catalog or a dataset says of itself begins with its name already."""
        return self.reason if self.reason.startswith(f"{self.name}: ") else f"{self.name}: {self.reason}"


def doubts(
    current: Current, catalogs: Mapping[str, Catalog], ignored: Iterable[Ignored], *, now: datetime
) -> tuple[Doubt, ...]:
    """Everyone that may reference files of others, catalogs first.

    A catalog that does not answer names itself and none of its datasets: it may have more of them by now.
    """
    passed = {each.dataset for each in ignored if each.holds(now)}
    sharing = {name for name, catalog in catalogs.items() if catalog.shares_files}
    # Its tables were seen to share files: what it says of itself does not count.
    sharing |= {failed.catalog for failed in current.catalog_errors if failed.shares}
    # The project no longer says anything of it.
    sharing |= {entry.catalog for entry in current.entries.values()} - catalogs.keys() - passed
    silent = [failed for failed in current.catalog_errors if failed.catalog in sharing]
    found = [Doubt(failed.catalog, failed.error) for failed in silent]
    named = {failed.catalog for failed in silent}
    for entry in sorted(current.entries.values(), key=lambda entry: entry.table_id):
        if entry.catalog not in sharing or entry.catalog in named or entry.table_id in passed:
            continue
        reason = entry.error or entry.doubt or ("" if entry.depth == Depth.FILES else "its files were not read")
        if entry.catalog not in catalogs:
            reason = reason or not_named(entry.catalog)
        if reason:
            found.append(Doubt(entry.table_id, reason))
    return tuple(found)


def names_to_wait_for(found: Iterable[Doubt]) -> tuple[str, ...]:
    """What an object waits for, in the words of a plan: the first few by name."""
    names = [doubt.name for doubt in found]
    more = len(names) - _MOST_NAMES
    return (*(f"unread:{name}" for name in names[:_MOST_NAMES]), *([f"unread:{more} more"] if more > 0 else []))


def unread(inventory: Inventory, in_doubt: Iterable[Doubt], ignored: Iterable[Ignored], *, now: datetime) -> list[str]:
    """What could not be read, whole or in part, in a line each, but for what is ignored.

    A catalog that did not answer has one line, and none for each of its datasets.
    """
    passed = {each.dataset for each in ignored if each.holds(now)}
    silent = {failed.catalog for failed in inventory.current.catalog_errors if not failed.shares}
    reasons = {
        row["table_id"] or row["catalog"]: row["error"]
        for row in inventory.errors()
        if row["catalog"] not in passed and (row["table_id"] is None or row["catalog"] not in silent)
    }
    reasons = {doubt.name: doubt.reason for doubt in in_doubt} | reasons
    return [Doubt(name, reason).text for name, reason in reasons.items() if name not in passed]


def declarations(catalogs: Mapping[str, Catalog], ignored: Iterable[Ignored], *, now: datetime) -> list[str]:
    """What people said that lifts a protection, for every plan to show."""
    lines = [
        f"catalog {name} is declared `shares_files: false`: where it cannot be read, others do not wait for it"
        for name, catalog in sorted(catalogs.items())
        if not catalog.shares_files
    ]
    for each in ignored:
        until = "" if each.until is None else f" until {as_text(each.until)}"
        if each.is_catalog:
            lines.append(
                f"catalog {each.dataset} is ignored ({each.reason}): it is gone, and others do not wait for it"
            )
        elif each.holds(now):
            said = f"{each.dataset} is ignored{until} ({each.reason})"
            lines.append(f"{said}: where it cannot be read, others do not wait for it")
    return lines
