"""What the inventory currently knows: one entry per dataset, replaced as a whole at the end of each scan.

Readers see the state before a scan or after it, never one in between.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.errors import BusyError, InputError
from ebbtide.model.paths import is_inside, local_path

_POINTER = "CURRENT"
_LAYOUT = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One dataset in the inventory. `segment` is empty while it could never be read; `error` says why it cannot be now.

    With an error the rows of `segment` are the last that could be read: good to look at, not to act on.
    `locked_by` names the datasets whose location is the same, or inside, or around. `handle` opens the dataset as the
    scan saw it: what a sweep proves, it proves against that.
    """

    table_id: str
    catalog: str
    location: str
    token: str
    depth: str
    scan_id: str
    segment: str
    scanned_at: datetime
    error: str | None = None
    hint: str | None = None
    locked_by: tuple[str, ...] = ()
    handle: str = ""


@dataclass(frozen=True, slots=True)
class Former:
    """A dataset that its catalog listed once, and where it lay. What is still there belongs to nobody else.

    `said` are those of its properties that hold labels: what they protect, they protect in what is left of it.
    """

    table_id: str
    format: str
    location: str
    said: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogError:
    """A catalog that did not answer in the last scan."""

    catalog: str
    error: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Current:
    scan_id: str = ""
    scanned_at: datetime | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    catalog_errors: tuple[CatalogError, ...] = ()
    former: tuple[Former, ...] = ()

    @property
    def segments(self) -> set[str]:
        return {entry.segment for entry in self.entries.values() if entry.segment}

    @property
    def error_count(self) -> int:
        return len(self.catalog_errors) + sum(1 for entry in self.entries.values() if entry.error)


_SCHEMA = pa.schema(
    [(f.name, pa.string()) for f in fields(Entry) if f.name not in ("scanned_at", "locked_by")]
    + [("scanned_at", pa.timestamp("us", tz="UTC")), ("locked_by", pa.list_(pa.field("element", pa.string())))]
)


@contextmanager
def only_one(inventory: Path) -> Iterator[None]:
    """Hold the inventory for a scan or a listing: neither runs beside another, so their order is certain."""
    inventory.mkdir(parents=True, exist_ok=True)
    with (inventory / "scan.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("another scan of this project is running", hint="wait for it to finish") from None
        yield


def load(inventory: Path) -> Current | None:
    """The current state, or None where no scan has finished yet."""
    pointer = inventory / _POINTER
    if not pointer.exists():
        return None
    head = json.loads(pointer.read_text())
    if head["layout"] != _LAYOUT:
        raise InputError(
            f"{inventory} was written by another version of Ebbtide (layout {head['layout']})",
            hint="remove that folder and scan again: it holds nothing that a scan cannot read again",
        )
    rows = pq.read_table(inventory / head["entries"]).to_pylist()
    entries = {row["table_id"]: Entry(**{**row, "locked_by": tuple(row["locked_by"])}) for row in rows}
    errors = tuple(CatalogError(**error) for error in head["catalog_errors"])
    former = tuple(
        Former(**{**each, "said": tuple((key, text) for key, text in each.get("said", ()))})
        for each in head.get("former", ())
    )
    return Current(head["scan_id"], datetime.fromisoformat(head["scanned_at"]).astimezone(UTC), entries, errors, former)


def save(inventory: Path, current: Current) -> None:
    """Write the entries, then move the pointer to them in one step."""
    inventory.mkdir(parents=True, exist_ok=True)
    assert current.scanned_at is not None
    name = f"current-{current.scan_id}.parquet"
    entries = [current.entries[table_id] for table_id in sorted(current.entries)]
    columns = {f.name: [getattr(entry, f.name) for entry in entries] for f in fields(Entry)}
    columns["locked_by"] = [list(entry.locked_by) for entry in entries]
    pq.write_table(pa.table({name_: columns[name_] for name_ in _SCHEMA.names}, schema=_SCHEMA), inventory / name)
    errors = [{"catalog": e.catalog, "error": e.error, "hint": e.hint} for e in current.catalog_errors]
    head = {
        "layout": _LAYOUT,
        "scan_id": current.scan_id,
        "scanned_at": current.scanned_at.isoformat(),
        "entries": name,
        "catalog_errors": errors,
        "former": [asdict(each) for each in current.former],
    }
    draft = inventory / f"{_POINTER}.{current.scan_id}"
    draft.write_text(json.dumps(head, indent=1))
    draft.replace(inventory / _POINTER)
    for old in inventory.glob("current-*.parquet"):
        if old.name != name:
            old.unlink(missing_ok=True)


def lock_shared_locations(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Every entry with the datasets that claim its location, or one inside or around it (hazard 3).

    Locally a folder may be reached by more than one name: links are followed.
    """
    by_location: dict[str, list[Entry]] = {}
    for entry in entries:
        by_location.setdefault(_real(entry.location), []).append(entry)
    sharing: dict[str, set[str]] = {}

    def share(some: list[Entry], others: list[Entry]) -> None:
        for entry in some:
            sharing.setdefault(entry.table_id, set()).update(o.table_id for o in others if o is not entry)

    around: list[str] = []
    # With a slash at its end a folder sorts right before everything inside it, and before no sibling's children.
    for location in sorted(by_location, key=lambda path: path + "/"):
        here = by_location[location]
        share(here, here)
        while around and not is_inside(location, around[-1]):
            around.pop()
        for outer in around:
            share(here, by_location[outer])
            share(by_location[outer], here)
        around.append(location)
    return {
        entry.table_id: replace(entry, locked_by=tuple(sorted(sharing.get(entry.table_id, ()))))
        for here in by_location.values()
        for entry in here
    }


def _real(location: str) -> str:
    place = local_path(location) if location else None
    return location if place is None else f"file://{os.path.realpath(place)}"
