"""What became of datasets that are no longer listed by their name: the same table may be there under another one."""

from __future__ import annotations

from ebbtide.inventory.current import Current


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
