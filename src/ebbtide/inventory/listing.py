"""`list_storage`: one listing of everything, kept beside the inventory as Parquet.

It is made before a scan, so that whatever a writer commits meanwhile is referenced by the time references are read
(hazard 21). Folders are listed by several threads, which wait for the store side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.errors import UnreadableError
from ebbtide.inventory import current as currents
from ebbtide.inventory.current import Current
from ebbtide.kernel.engine import table_of
from ebbtide.model.paths import is_inside
from ebbtide.model.times import parse_time
from ebbtide.private import private_file
from ebbtide.run import RunContext, quiet
from ebbtide.storage.listing import ListedObject, clock_of, list_below, list_folder

_SCHEMA = pa.schema(
    [
        ("root", pa.string()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("modified_at", pa.timestamp("us", tz="UTC")),
        ("exact", pa.bool_()),
    ]
)
_POINTER, _START = "LISTING", "listing-"
_THREADS = 16
_WORTH_SPLITTING = 64
_LEVELS = 3
_ROWS = 50_000

Options = Mapping[str, str]
Work = tuple[str, str]
"""A folder to be listed, after the root that it lies in."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lay under `roots` at `listed_at`, by the store's clock. `failed` says which root could not be listed, and
    why: what the listing holds of such a one is not the whole of it. `after_scan` is the scan that was the last one.
    """

    file: Path
    listed_at: datetime
    roots: tuple[str, ...]
    failed: Mapping[str, str]
    after_scan: str

    def is_before(self, current: Current) -> bool:
        """Whether the inventory was read after the listing. Only then does it know what the listing shows."""
        return current.scan_id not in ("", self.after_scan)


def outermost(places: Mapping[str, Options]) -> dict[str, Options]:
    """The folders that lie in no other one: each place is listed once."""
    kept: dict[str, Options] = {}
    last = None
    for place in sorted(places, key=lambda path: path + "/"):
        if last is None or not is_inside(place, last):
            kept[place], last = places[place], place
    return kept


def list_storage(places: Mapping[str, Options], inventory: Path, context: RunContext | None = None) -> Listing:
    """List every folder of `places` (normalised, with the options of its store). One that fails leaves the others."""
    context = quiet(context)
    with currents.only_one(inventory):
        last = currents.load(inventory)
        listing = _list(outermost(places), inventory, last.scan_id if last else "", context.advance)
        _save(inventory, listing)
        return listing


def _list(roots: Mapping[str, Options], inventory: Path, after_scan: str, seen: Callable[[int], None]) -> Listing:
    file = private_file(inventory / f"{_START}{uuid4().hex[:12]}.parquet", like=inventory)
    with ThreadPoolExecutor(_THREADS) as pool, pq.ParquetWriter(file, _SCHEMA) as writer:
        sheet = _Sheet(writer, seen)
        clocks = dict(zip(roots, pool.map(partial(_clock, roots), roots), strict=True))
        failed = {root: told for root, told in clocks.items() if isinstance(told, str)}
        work = [(root, root) for root in roots if root not in failed]
        for _ in range(_LEVELS):
            if not work or len(work) >= _WORTH_SPLITTING:
                break
            deeper: list[Work] = []
            for (root, _folder), found in zip(work, pool.map(partial(_one, roots, sheet), work), strict=True):
                if isinstance(found, str):
                    failed[root] = found
                else:
                    deeper += [(root, folder) for folder in found]
            work = deeper
        told = pool.map(partial(_rest, roots, sheet), work)
        failed |= {root: error for (root, _), error in zip(work, told, strict=True) if error is not None}
        sheet.close()
    listed_at = min([datetime.now(UTC), *(clock for clock in clocks.values() if isinstance(clock, datetime))])
    return Listing(file, listed_at, tuple(roots), failed, after_scan)


class _Sheet:
    """Takes objects from several threads, and writes them some ten thousand at a time. `seen` hears how many came."""

    def __init__(self, writer: pq.ParquetWriter, seen: Callable[[int], None]) -> None:
        self._writer, self._lock, self._seen = writer, Lock(), seen
        self._rows: list[tuple[str, str, int, datetime, bool]] = []

    def add(self, root: str, objects: Iterable[ListedObject]) -> None:
        rows = [(root, each.path, each.bytes, each.modified, each.exact) for each in objects]
        with self._lock:
            self._rows += rows
            if len(self._rows) >= _ROWS:
                self.close()
        self._seen(len(rows))

    def close(self) -> None:
        self._writer.write_table(table_of(self._rows, _SCHEMA))
        self._rows = []


def last_listing(inventory: Path) -> Listing | None:
    """The listing that was made last, or None."""
    pointer = inventory / _POINTER
    if not pointer.exists():
        return None
    head = json.loads(pointer.read_text())
    at = parse_time(head["listed_at"])
    return Listing(inventory / head["file"], at, tuple(head["roots"]), head["failed"], head["after_scan"])


def forget_listings(inventory: Path) -> None:
    """There is no last listing any more; the pointer goes first, so that nobody follows it to a file that is gone."""
    (inventory / _POINTER).unlink(missing_ok=True)
    for old in inventory.glob(f"{_START}*.parquet"):
        old.unlink(missing_ok=True)


def _save(inventory: Path, listing: Listing) -> None:
    head = {
        "file": listing.file.name,
        "listed_at": listing.listed_at.isoformat(),
        "roots": listing.roots,
        "failed": listing.failed,
        "after_scan": listing.after_scan,
    }
    before = last_listing(inventory)
    draft = private_file(inventory / f"{_POINTER}.{listing.file.stem}", like=inventory)
    draft.write_text(json.dumps(head, indent=1))
    draft.replace(inventory / _POINTER)
    for old in inventory.glob(f"{_START}*.parquet"):
        # Whoever opened the one before may still be reading it.
        if old != listing.file and (before is None or old.name != before.file.name):
            old.unlink(missing_ok=True)


def _clock(roots: Mapping[str, Options], root: str) -> datetime | str:
    try:
        return clock_of(root, roots[root])
    except Exception as error:
        return _told(root, error)


def _one(roots: Mapping[str, Options], sheet: _Sheet, work: Work) -> list[str] | str:
    root, folder = work
    try:
        found = list_folder(folder, roots[root])
    except Exception as error:
        return _told(folder, error)
    sheet.add(root, found.objects)
    return found.folders


def _rest(roots: Mapping[str, Options], sheet: _Sheet, work: Work) -> str | None:
    root, folder = work
    try:
        for some in list_below(folder, roots[root]):
            sheet.add(root, some)
    except Exception as error:
        return _told(folder, error)
    return None


def _told(subject: str, error: Exception) -> str:
    known = UnreadableError.of(subject, error)
    return known.message


def look_again(expected: Mapping[str, int], options: Options) -> dict[str, str]:
    """Why these files are not to be removed after all: each was written since it was listed, or cannot be looked at.

    The last look before a removal. `expected` has each file's modification time as the listing gave it, in microseconds
    since 1970. A file that is gone has no reason to stay.
    """
    inside: dict[str, list[str]] = {}
    for path in expected:
        inside.setdefault(path.rpartition("/")[0], []).append(path)
    kept: dict[str, str] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for paths, found in zip(inside.values(), pool.map(partial(_seen, options), inside), strict=True):
            kept |= dict(_changes(paths, expected, found))
    return kept


def _seen(options: Options, folder: str) -> dict[str, ListedObject] | str:
    try:
        return {each.path: each for each in list_folder(folder, options).objects}
    except Exception as error:
        return _told(folder, error)


def _changes(
    paths: Iterable[str], expected: Mapping[str, int], found: dict[str, ListedObject] | str
) -> Iterator[tuple[str, str]]:
    for path in paths:
        if isinstance(found, str):
            yield path, found
            continue
        now = found.get(path)
        if now is not None and (round(now.modified.timestamp() * 1e6) != expected[path] or not now.exact):
            yield path, "it was written again since it was listed"
