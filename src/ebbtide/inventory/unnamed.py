"""Datasets of catalogs that the project no longer names (spec §7, hazard 33): nobody can be asked about them.

What they reference is as unknown as if their catalog did not answer, so it counts as one that does not. It ends when
the catalog is back, when another catalog lists the very tables (it got another name), or by a person's word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ebbtide.inventory.current import CatalogError, Current, DatasetEntry
from ebbtide.model.dataset import Catalog


@dataclass(frozen=True, slots=True)
class Unnamed:
    """`entries` are kept as they were known, with an error. `formats` are those of datasets that another catalog has
    taken over, by their old names.
    """

    entries: tuple[DatasetEntry, ...]
    errors: tuple[CatalogError, ...]
    formats: Mapping[str, str]


def of_unnamed_catalogs(
    before: Current, catalogs: Iterable[Catalog], entries: Collection[DatasetEntry], given_up: Collection[str]
) -> Unnamed:
    """What the last inventory has of catalogs that are neither among `catalogs` nor given up. `entries` are of now."""
    formats = {catalog.name: catalog.format for catalog in catalogs}
    gone = [entry for entry in before.entries.values() if entry.catalog not in {*formats, *given_up}]
    taken_over = {place: entry.catalog for place, entry in _new(before, entries)} if gone else {}
    kept: defaultdict[str, list[DatasetEntry]] = defaultdict(list)
    found: dict[str, str] = {}
    for entry in gone:
        if entry.identity and (by := taken_over.get((entry.location, entry.identity))):
            found[entry.table_id] = formats[by]
        else:
            kept[entry.catalog].append(replace(entry, error=not_named(entry.catalog), hint=_way_out(entry.catalog)))
    errors = tuple(
        CatalogError(name, f"{not_named(name)}, and {len(of_it)} datasets of it are known", _way_out(name))
        for name, of_it in sorted(kept.items())
    )
    return Unnamed(tuple(entry for of_it in kept.values() for entry in of_it), errors, found)


def _new(before: Current, entries: Iterable[DatasetEntry]) -> Iterator[tuple[tuple[str, str], DatasetEntry]]:
    """By place and identity what is read for the first time. A table that two catalogs listed at once is not: each of
    them may know of another head.
    """
    for entry in entries:
        known = before.entries.get(entry.table_id)
        if entry.error is None and (known is None or not known.segment):
            yield (entry.location, entry.identity), entry


def not_named(catalog: str) -> str:
    return f"catalog {catalog} is no longer in ebbtide.yml"


def _way_out(catalog: str) -> str:
    return f"put it back, or let nobody wait for its tables: `ignore: [{{catalog: {catalog}, reason: …}}]`"
