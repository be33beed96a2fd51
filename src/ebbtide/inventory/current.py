"""What the inventory currently knows: one entry per dataset, replaced as a whole at the end of each scan.

Readers see the state before a scan or after it, never one in between.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.errors import BusyError, InputError, UnreadableError
from ebbtide.model.paths import is_inside
from ebbtide.model.times import parse_time
from ebbtide.private import private_file, private_folder, writing
from ebbtide.storage.files import without_links

_POINTER = "CURRENT"
_LAYOUT = 4
"""3: `partitions.candidates`, `tables.date_*` and `partitioned`. What older segments lack is read as NULL.
4: `tables.unknown` has doubts only, no longer the lock of every Hudi table: until a scan read them anew, those wait.
"""


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """One dataset in the inventory. `segment` is empty while it could never be read; `error` says why it cannot be now.

    With an error the rows of `segment` are the last that could be read: good to look at, not to act on.
    `locked_by` names the datasets whose location is the same, or inside, or around. `handle` opens the dataset as the
    scan saw it: what a sweep proves, it proves against that. `doubt` says why references may be missing although it was
    read; `borrowed` counts the files that it references outside of its own folders. `identity` tells it from another
    table of that name. `was_at` are folders that it lay in before, and that are nobody else's now.
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
    doubt: str | None = None
    borrowed: int = 0
    identity: str = ""
    was_at: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """The folders that are its own, the current one first."""
        return tuple(place for place in (self.location, *self.was_at) if place)


@dataclass(frozen=True, slots=True)
class Former:
    """A dataset that its catalog listed once, and where it lay. What is still there belongs to nobody else.

    `said` are those of its properties that hold labels: what they protect, they protect in what is left of it.
    """

    table_id: str
    format: str
    location: str
    said: tuple[tuple[str, str], ...] = ()
    identity: str = ""


@dataclass(frozen=True, slots=True)
class CatalogError:
    """A catalog that did not answer in the last scan, or whose tables share files though it is declared that none do
    (`shares`).
    """

    catalog: str
    error: str
    hint: str | None
    shares: bool = False


@dataclass(frozen=True, slots=True)
class Current:
    """`outdated` is what an older version of Ebbtide wrote: the next scan reads every dataset again, and until then it
    is good for nothing but to remember which datasets there were, and where.
    """

    scan_id: str = ""
    scanned_at: datetime | None = None
    entries: dict[str, DatasetEntry] = field(default_factory=dict)
    catalog_errors: tuple[CatalogError, ...] = ()
    former: tuple[Former, ...] = ()
    outdated: bool = False

    @property
    def segments(self) -> set[str]:
        return {entry.segment for entry in self.entries.values() if entry.segment}

    @property
    def error_count(self) -> int:
        return len(self.catalog_errors) + sum(1 for entry in self.entries.values() if entry.error)


_LISTS = ("locked_by", "was_at")
_SCHEMA = pa.schema(
    [(f.name, pa.string()) for f in fields(DatasetEntry) if f.name not in ("scanned_at", "borrowed", *_LISTS)]
    + [(name, pa.list_(pa.field("element", pa.string()))) for name in _LISTS]
    + [("scanned_at", pa.timestamp("us", tz="UTC")), ("borrowed", pa.int64())]
)


@contextmanager
def only_one(inventory: Path) -> Iterator[None]:
    """Hold the inventory for a scan or a listing: neither runs beside another, so their order is certain."""
    with writing(inventory, hint="let the user who runs Ebbtide write there, or set `inventory:` in ebbtide.yml"):
        private_folder(inventory)
        lock_file = private_file(inventory / "scan.lock", like=inventory)
    # Late, because commands that only read the inventory lock nothing.
    from filelock import FileLock, Timeout

    # The kernel's lock, which goes with the process however that ends. Never one by a file's mere presence: what a
    # crash leaves would lock everybody out.
    lock = FileLock(lock_file, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError("another scan of this project is running", hint="wait for it to finish") from None
    try:
        yield
    finally:
        lock.release()


def load(inventory: Path) -> Current | None:
    """The current state, or None where no scan has finished yet. What an older layout lacks is read again."""
    pointer = inventory / _POINTER
    if not pointer.exists():
        return None
    try:
        return _read(inventory, json.loads(pointer.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise UnreadableError(
            str(pointer),
            "what it points to is gone",
            hint=f"another scan replaced it: run this again; if not, {_BROKEN}",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # pyarrow's and JSON's are `ValueError`s
        raise UnreadableError(str(pointer), "it is not what a scan writes", hint=_BROKEN) from error


_BROKEN = (
    "bring the folder back from a backup; or move it away and run `ebbtide scan`, which reads every table anew. Then "
    "nobody knows any more which tables there were once and where they lay: no policy takes what is left of those, "
    "and their labels no longer protect it"
)
"""What nobody can scan again is never removed by us: a person says that it may be lost."""


def _read(inventory: Path, head: Any) -> Current:
    if head["layout"] > _LAYOUT:
        raise InputError(
            f"{inventory} was written by a newer version of Ebbtide (layout {head['layout']}, known is {_LAYOUT})",
            hint="use that version; what this folder knows of datasets that are gone cannot be scanned again",
        )
    outdated = head["layout"] < _LAYOUT
    rows = pq.ParquetFile(inventory / head["entries"]).read().to_pylist()
    for row in rows:
        row |= {name: tuple(row.get(name) or ()) for name in _LISTS}
    entries = {row["table_id"]: DatasetEntry(**row) for row in rows}
    if outdated:  # no token: every dataset has changed, for all that is known
        entries = {table_id: replace(entry, token="") for table_id, entry in entries.items()}
    errors = tuple(CatalogError(**error) for error in head["catalog_errors"])
    former = tuple(
        Former(**{**each, "said": tuple((key, text) for key, text in each.get("said", ()))})
        for each in head.get("former", ())
    )
    scanned_at = parse_time(head["scanned_at"])
    return Current(head["scan_id"], scanned_at, entries, errors, former, outdated)


def save(inventory: Path, current: Current) -> None:
    """Write the entries, then move the pointer to them in one step."""
    private_folder(inventory)
    assert current.scanned_at is not None
    name = f"current-{current.scan_id}.parquet"
    entries = [current.entries[table_id] for table_id in sorted(current.entries)]
    columns = {f.name: [getattr(entry, f.name) for entry in entries] for f in fields(DatasetEntry)}
    columns |= {name_: [list(texts) for texts in columns[name_]] for name_ in _LISTS}
    table = pa.table({name_: columns[name_] for name_ in _SCHEMA.names}, schema=_SCHEMA)
    # Never into the file that the pointer may name already: whoever dies here leaves the one from before.
    written = private_file(inventory / f"{name}.draft", like=inventory)
    pq.write_table(table, written)
    written.replace(inventory / name)
    head = {
        "layout": _LAYOUT,
        "scan_id": current.scan_id,
        "scanned_at": current.scanned_at.isoformat(),
        "entries": name,
        "catalog_errors": [asdict(each) for each in current.catalog_errors],
        "former": [asdict(each) for each in current.former],
    }
    draft = private_file(inventory / f"{_POINTER}.{current.scan_id}", like=inventory)
    draft.write_text(json.dumps(head, indent=1))
    draft.replace(inventory / _POINTER)
    for old in inventory.glob("current-*"):
        if old.name != name:
            old.unlink(missing_ok=True)


def lock_shared_locations(entries: Iterable[DatasetEntry]) -> dict[str, DatasetEntry]:
    """Every entry with the datasets that claim its location, or one inside or around it (hazard 3).

    Locally a folder may be reached by more than one name: links are followed.
    """
    by_location: dict[str, list[DatasetEntry]] = {}
    for entry in entries:
        by_location.setdefault(without_links(entry.location), []).append(entry)
    sharing: dict[str, set[str]] = {}

    def share(some: list[DatasetEntry], others: list[DatasetEntry]) -> None:
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


def without_disputed(entries: Mapping[str, DatasetEntry]) -> dict[str, DatasetEntry]:
    """The entries with those of their former folders alone that overlap no folder of anybody else."""
    owners: dict[str, set[str]] = {}
    for entry in entries.values():
        for place in entry.places:
            owners.setdefault(without_links(place), set()).add(entry.table_id)
    in_order = sorted(f"{place}/" for place in owners)

    def is_own(place: str, table_id: str) -> bool:
        begin = f"{without_links(place)}/"
        around = {begin[:n] for n, letter in enumerate(begin) if letter == "/"}
        inside = []
        for n in range(bisect_left(in_order, begin), len(in_order)):
            if not in_order[n].startswith(begin):
                break
            inside.append(in_order[n].removesuffix("/"))
        return all(owners.get(each, {table_id}) == {table_id} for each in (*around, *inside))

    return {
        table_id: replace(entry, was_at=tuple(place for place in entry.was_at if is_own(place, table_id)))
        if entry.was_at
        else entry
        for table_id, entry in entries.items()
    }
