"""From the names that SQL, dbt and OpenLineage use to datasets: by catalog name, location and symlinks (spec §3)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from ebbtide.errors import InputError
from ebbtide.model.ids import DatasetId, encode_part
from ebbtide.model.paths import is_inside, normalise

Parts = tuple[str, ...]


def written(parts: Sequence[str]) -> str:
    """A name as a dataset id spells it."""
    return ".".join(encode_part(part) for part in parts)


class Names:
    """Every dataset by its names. What matches nothing, or two things, is None: never a guess.

    `also` holds the names that the project maps by hand (`lineage.names`), `models` those that lineage itself defines
    (views, and tables that no catalog has).
    """

    def __init__(self, locations: Mapping[str, str], also: Mapping[str, str], models: Iterable[str] = ()) -> None:
        self._also = {name.lower(): _known_id(name, table_id) for name, table_id in also.items()}
        self._ids: dict[Parts, list[str]] = {}
        self._short: dict[Parts, list[str]] = {}
        for table_id in {*locations, *models}:
            full = _folded([unquote(part) for part in table_id.split(".")])
            self._ids.setdefault(full, []).append(table_id)
            if len(full) > 2:
                self._short.setdefault(full[1:], []).append(table_id)
        self._places: dict[str, list[str]] = {}
        for table_id, location in locations.items():
            if location:
                self._places.setdefault(normalise(location), []).append(table_id)

    def find(self, parts: Sequence[str], near: DatasetId | None = None) -> str | None:
        """The dataset of a name in SQL. Short names are completed from `near`, the table that is being filled."""
        folded = _folded(parts)
        if mapped := self._also.get(".".join(folded)):
            return mapped
        if len(folded) == 2 and folded[0] in ("delta", "iceberg", "hudi", "paimon", "parquet") and "/" in parts[1]:
            return self.at(parts[1])
        candidates = [folded]
        if near is not None:
            candidates.append(_folded((near.catalog, *parts)) if len(folded) > 1 else _folded(_sibling(near, parts)))
        for candidate in candidates:
            if found := self._one(self._ids.get(candidate), parts):
                return found
        return self._one(self._short.get(folded), parts) if len(folded) > 1 else None

    def at(self, place: str) -> str | None:
        """The dataset whose location this is, or around it (a partition's folder)."""
        here = normalise(place)
        if found := self._places.get(here):
            return found[0] if len(found) == 1 else None
        around = [(location, ids) for location, ids in self._places.items() if is_inside(here, location)]
        if not around:
            return None
        ids = max(around, key=lambda pair: len(pair[0]))[1]
        return ids[0] if len(ids) == 1 else None

    def mapped(self, name: str) -> str | None:
        """What the project maps a name to by hand."""
        return self._also.get(name.lower())

    def hint(self, parts: Sequence[str]) -> str:
        """What to do about a name that matches nothing."""
        known = [table_id for ids in self._ids.values() for table_id in ids]
        close = difflib.get_close_matches(written(parts), known, 1)
        return f"did you mean {close[0]}?" if close else "write it in full, or map it under `lineage: names:`"

    def _one(self, ids: list[str] | None, parts: Sequence[str]) -> str | None:
        if not ids:
            return None
        if len(ids) > 1:  # two tables whose names differ in case only: the exact spelling decides
            text = written(parts)
            ids = [table_id for table_id in ids if table_id == text or table_id.endswith("." + text)]
        return ids[0] if len(ids) == 1 else None


def _folded(parts: Sequence[str]) -> Parts:
    return tuple(part.lower() for part in parts)


def _sibling(near: DatasetId, parts: Sequence[str]) -> Parts:
    return (near.catalog, *near.namespace, *parts)


def _known_id(name: str, table_id: str) -> str:
    try:
        return str(DatasetId.parse(table_id))
    except InputError as error:
        raise InputError(f"lineage.names: {name}: {error.message}", hint=error.hint) from None
