"""What became of datasets that are no longer listed by their name: the same table may be there under another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ebbtide.inventory.current import Current, DatasetEntry
from ebbtide.inventory.information_schema import Inventory


def called_now(current: Current) -> dict[str, tuple[str, ...]]:
    """For a dataset that was, the ones that are it now: of its identity, or in its place.

    A rename keeps the identity, wherever the files lie; so does a copy of a whole folder, which then counts as well.
    """
    by_identity: dict[str, set[str]] = {}
    by_place: dict[str, set[str]] = {}
    for entry in current.entries.values():
        by_place.setdefault(entry.location, set()).add(entry.table_id)
        if entry.identity:
            by_identity.setdefault(entry.identity, set()).add(entry.table_id)
    found: dict[str, set[str]] = {}
    for former in current.former:
        here = by_place.get(former.location, set()) | by_identity.get(former.identity, set())
        found.setdefault(former.table_id, set()).update(here - {former.table_id})
    return {table_id: tuple(sorted(names)) for table_id, names in found.items() if names}


def called_before(current: Current) -> dict[str, tuple[str, ...]]:
    """For a dataset that is, the names that it had: what was ordered by one of them was ordered for it."""
    found: dict[str, set[str]] = {}
    for before, names in called_now(current).items():
        for name in names:
            found.setdefault(name, set()).add(before)
    return {table_id: tuple(sorted(names)) for table_id, names in found.items()}


def with_identities(before: Inventory, entries: Mapping[str, DatasetEntry]) -> Inventory:
    """The last inventory, where it is of a layout that knew no identities, with those that its datasets had.

    Who has a dataset's commits now is that dataset, whatever it is called; its own name comes first.
    """
    if not before.current.outdated:
        return before
    now: dict[tuple[str, object, object], set[str]] = {}
    for table_id, id_, at in _commits(Inventory(before.folder, Current(entries=dict(entries)))):
        now.setdefault((entries[table_id].catalog, id_, at), set()).add(table_id)
    known = before.current.entries
    names: dict[str, set[str]] = {}
    for table_id, id_, at in _commits(before):
        names.setdefault(table_id, set()).update(now.get((known[table_id].catalog, id_, at), ()))

    def identified(entry: DatasetEntry) -> DatasetEntry:
        found = names.get(entry.table_id, set())
        name = entry.table_id if entry.table_id in found else min(found, default=None)
        return entry if entry.identity or name is None else replace(entry, identity=entries[name].identity)

    identities = {table_id: identified(entry) for table_id, entry in known.items()}
    return Inventory(before.folder, replace(before.current, entries=identities))


def _commits(inventory: Inventory) -> Iterator[tuple[str, object, object]]:
    rows = inventory.table("transactions").select(["table_id", "transaction_id", "committed_at"])
    yield from zip(*(column.to_pylist() for column in rows.columns), strict=True)
