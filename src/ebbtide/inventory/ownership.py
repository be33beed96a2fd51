"""Who owns which folder. A file belongs to the innermost owner around it, and to nobody where that one owns nothing.

Owners come from catalogs (datasets that are there), from earlier scans (datasets that were), from people (folders that
they condemned) and from the listing itself: a folder that looks like a table, or like the checkpoint of a stream, keeps
everything inside from its neighbours, whoever it belongs to (hazards 3, 9, 18).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ebbtide.inventory.current import Current
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import is_inside, normalise

# What only a table format writes, deepest folder first. Each is looked for in the listing.
SHAPES = {
    "iceberg": r"^(.*)/metadata/[^/]*\.metadata\.json(?:\.gz)?$",
    "delta": r"^(.*?)/_delta_log/.*$",
    "hudi": r"^(.*?)/\.hoodie/.*$",
    "paimon": r"^(.*?)(?:/branch/branch-[^/]+)?/(?:schema/schema-|snapshot/snapshot-)\d+$",
    "checkpoint": r"^(.*)/(?:offsets|commits)/\d+$",
}
_NUMBER = re.compile(r"/(?:v(\d+)|(\d+)-[^/]*)(?:\.gz)?\.metadata\.json(?:\.gz)?$")


class PrefixKind(StrEnum):
    """What a folder is. Only the files of the first three are ever candidates."""

    LIVE = "live"
    FORMER = "former"
    CONDEMNED = "condemned"
    UNREGISTERED = "unregistered"
    BORDER = "border"


@dataclass(frozen=True, slots=True)
class Condemned:
    """A folder that a person condemned, and when: what came later is not meant."""

    path: str
    table_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class OwnedPrefix:
    """A folder and its owner. `metadata` is the number of an Iceberg table's current metadata file, where it has one:
    that file and newer ones are never touched. `before` is when a folder was condemned.
    """

    location: str
    kind: PrefixKind
    format: str
    table_id: str | None = None
    metadata: int | None = None
    before: datetime | None = None


def places(current: Current, catalogs: Mapping[str, Catalog], exclusive: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """The folders to list, with the options of their stores: where datasets lie, and exclusive prefixes."""
    found = {
        place: catalogs[entry.catalog].options
        for entry in current.entries.values()
        if entry.catalog in catalogs
        for place in entry.places
    }
    for prefix in exclusive:
        found[prefix] = options_near(prefix, catalogs.values())
    return found


def options_near(place: str, catalogs: Iterable[Catalog]) -> Mapping[str, str]:
    """How to open the store of a place: as the catalog does whose warehouse is nearest to it."""
    near = sorted(catalogs, key=lambda catalog: -_common(normalise(catalog.warehouse), place))
    return near[0].options if near else {}


def _common(one: str, other: str) -> int:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(one.count("/"), other.count("/")) + 1)


def areas(
    current: Current,
    catalogs: Mapping[str, Catalog],
    exclusive: Sequence[str],
    condemned: Iterable[Condemned],
    shaped: Mapping[str, str],
) -> dict[str, OwnedPrefix]:
    """Every owner by its folder. `shaped` are the folders that look like something, with what they look like.

    Stronger ones replace weaker ones on the same folder: a dataset that is there, then a person's word, then what a
    folder looks like, then a dataset that was. The last two of these owners count under exclusive prefixes only.
    """
    found: dict[str, OwnedPrefix] = {}
    for former in current.former:
        if any(is_inside(former.location, prefix) for prefix in exclusive):
            found[former.location] = OwnedPrefix(former.location, PrefixKind.FORMER, former.format, former.table_id)
    for location, shape in shaped.items():
        kind = PrefixKind.BORDER if shape == "checkpoint" else PrefixKind.UNREGISTERED
        known = found.get(location)
        found[location] = OwnedPrefix(location, kind, shape, known.table_id if known else None)
    for folder in condemned:
        if any(is_inside(folder.path, prefix) for prefix in exclusive):
            shape = shaped.get(folder.path, "")
            found[folder.path] = OwnedPrefix(
                folder.path, PrefixKind.CONDEMNED, shape, folder.table_id, before=folder.at
            )
    for entry in current.entries.values():
        if not entry.location:
            continue
        format_ = catalogs[entry.catalog].format if entry.catalog in catalogs else ""
        metadata = None
        if format_ == "iceberg":
            # Metadata may lie elsewhere: that folder looks like a table, and is part of this one.
            beside = entry.token.rpartition("/")[0].removesuffix("/metadata")
            if beside and beside != entry.location and found.get(beside, _NOBODY).kind is not PrefixKind.LIVE:
                found[beside] = OwnedPrefix(beside, PrefixKind.BORDER, format_)
            match = _NUMBER.search(entry.token)
            metadata = int(match.group(1) or match.group(2)) if match else None
        for place in entry.places:
            found[place] = OwnedPrefix(place, PrefixKind.LIVE, format_, entry.table_id, metadata)
    return found


_NOBODY = OwnedPrefix("", PrefixKind.BORDER, "")


def owner_of(path: str, format_: str, current: Current, catalogs: Mapping[str, Catalog]) -> str:
    """The dataset that a folder belongs to in plans: the one that lay there, or what a catalog would call it there."""
    for former in current.former:
        if former.location == path:
            return former.table_id
    around = [
        c for c in catalogs.values() if is_inside(path, normalise(c.warehouse)) and path != normalise(c.warehouse)
    ]
    around.sort(key=lambda catalog: (catalog.format != format_, -len(catalog.warehouse), catalog.name))
    if not around:
        *_, namespace, name = path.split("/")
        return str(DatasetId("unregistered", (namespace or "root",), name))
    rest = path.removeprefix(normalise(around[0].warehouse) + "/").split("/")
    if around[0].format == "paimon":
        rest[0] = rest[0].removesuffix(".db")
    namespace_ = tuple(rest[:-1]) or ("root",)
    return str(DatasetId(around[0].name, namespace_, rest[-1]))
