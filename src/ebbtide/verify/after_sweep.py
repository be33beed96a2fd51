"""The proof after a sweep: every file that a touched dataset references is there, whole, and can be read.

It reads the datasets again and looks at the storage itself. It knows neither the plan nor the sweep, and takes nothing
from them but the names of the datasets (design.md, `verify/`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.orc as orc
import pyarrow.parquet as pq

from ebbtide.errors import UnreadableError, keep_trace, told
from ebbtide.formats.reading import load_reader
from ebbtide.model.dataset import Catalog, FileRef, Reading, Role, TableHandle
from ebbtide.storage.files import Store, open_store
from ebbtide.verify.roles import versions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS = 16
_DATASETS = 4
_LOOKS = 3
_COMES_AND_GOES = (Role.TEMPORARY, Role.REMOVED)
"""What no version needs: writers rename their drafts, and what was removed goes when its time has come."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A referenced file that is not there."""

    dataset: str
    path: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that cannot be read or has another size than recorded, or a dataset (`path` is None)."""

    dataset: str
    path: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What was looked at, and what is wrong. Nothing looked at proves nothing."""

    datasets: int
    files: int
    missing: tuple[Missing, ...]
    unreadable: tuple[Unreadable, ...]

    def __bool__(self) -> bool:
        return self.datasets > 0 and not self.missing and not self.unreadable

    @property
    def wrong(self) -> frozenset[tuple[str, str | None]]:
        """Datasets and files of which something is wrong."""
        named: tuple[Missing | Unreadable, ...] = (*self.missing, *self.unreadable)
        return frozenset((each.dataset, each.path) for each in named)

    def only(self, wrong: Collection[tuple[str, str | None]]) -> Findings:
        """The same with what is wrong of these alone."""
        return replace(
            self,
            missing=tuple(each for each in self.missing if (each.dataset, each.path) in wrong),
            unreadable=tuple(each for each in self.unreadable if (each.dataset, each.path) in wrong),
        )


Work = tuple[Catalog, TableHandle]


def check_datasets(work: Sequence[Work], spark: SparkSession | None) -> Findings:
    """Read each dataset again, then look at every file that any of its versions references.

    Writers commit, clean up and compact between the reading and the look. So what seems wrong is looked at again, as
    the catalog has the dataset by then, and is a finding where it is wrong each time.
    """
    found = _look_at(work, spark)
    for _ in range(_LOOKS - 1):
        if not found.wrong:
            break
        datasets = {dataset for dataset, _ in found.wrong}
        again = _as_listed_now([item for item in work if str(item[1].id) in datasets])
        found = found.only(_look_at(again, spark).wrong)
    return found


def _as_listed_now(work: Sequence[Work]) -> list[Work]:
    """The datasets with what opens them now; those that their catalog does not name as they were."""
    now: dict[str, TableHandle] = {}
    for catalog in {catalog.name: catalog for catalog, _ in work}.values():
        try:
            answers = list(load_reader(catalog.format).discover(catalog))
        except Exception as error:  # then it is looked at as it was
            keep_trace(error)
            continue
        now |= {str(answer.id): answer for answer in answers if isinstance(answer, TableHandle)}
    return [(catalog, now.get(str(found.id), found)) for catalog, found in work]


def _look_at(work: Sequence[Work], spark: SparkSession | None) -> Findings:
    """One look, at many files at a time."""
    checked: list[tuple[str, Store, FileRef]] = []
    unreadable: list[Unreadable] = []
    with ThreadPoolExecutor(_DATASETS) as pool:
        for (catalog, found), files in zip(work, pool.map(lambda item: _references(item, spark), work), strict=True):
            if isinstance(files, str):
                unreadable.append(Unreadable(str(found.id), None, files))
                continue
            stores: dict[str, Store] = {}
            for file in files:
                store = stores.setdefault(file.path.split("/", 1)[0], open_store(file.path, catalog.options))
                checked.append((str(found.id), store, file))
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(lambda item: _look(*item), checked))
    missing = [answer for answer in answers if isinstance(answer, Missing)]
    unreadable += [answer for answer in answers if isinstance(answer, Unreadable)]
    return Findings(len(work), len(checked), tuple(missing), tuple(unreadable))


def _references(item: Work, spark: SparkSession | None) -> Sequence[FileRef] | str:
    catalog, found = item
    try:
        return list(_needed(load_reader(catalog.format).read_files(found, catalog, spark)))
    except Exception as error:
        known = UnreadableError.of(str(found.id), error)
        return known.message


def _needed(reading: Reading) -> Iterator[FileRef]:
    """The files that some version can still be read with: what only expired ones reference may be gone."""
    expired = [t.expired for t in reading.transactions]
    gone = sum(1 << n for n, is_gone in enumerate(expired) if is_gone)
    for file in reading.files:
        versions = versions_of(file, reading)
        if file.role not in _COMES_AND_GOES and (file.live or not versions or versions & ~gone):
            yield file


def _look(dataset: str, store: Store, file: FileRef) -> Missing | Unreadable | None:
    try:
        entry = store.stat(file.path)
        if entry is None or entry.is_folder:
            return Missing(dataset, file.path)
        if file.bytes is not None and entry.bytes != file.bytes:
            return Unreadable(dataset, file.path, f"it has {entry.bytes} bytes, recorded are {file.bytes}")
        reason = next((check(store, file.path) for kind, check in _CHECKS if kind(file.path)), None)
    except Exception as error:
        return Unreadable(dataset, file.path, told(error))
    return None if reason is None else Unreadable(dataset, file.path, reason)


def _ends(*names: str) -> Callable[[str], bool]:
    return lambda path: path.endswith(names)


def _parquet(store: Store, path: str) -> str | None:
    with store.open(path) as file:
        pq.read_metadata(file)
    return None


def _orc(store: Store, path: str) -> str | None:
    with store.open(path) as file:
        orc.ORCFile(file)
    return None


def _avro(store: Store, path: str) -> str | None:
    from fastavro import reader

    with store.open(path) as file:
        reader(io.BytesIO(file.read())).writer_schema  # noqa: B018 - reading the header is the check
    return None


def _puffin(store: Store, path: str) -> str | None:
    with store.open(path) as file:
        size = file.size()
        first, last = file.read(4), file.read_at(4, size - 4)
    return None if first == last == b"PFA1" else "it is no Puffin file"


_CHECKS: tuple[tuple[Callable[[str], bool], Callable[[Store, str], str | None]], ...] = (
    (_ends(".parquet"), _parquet),
    (_ends(".orc"), _orc),
    (_ends(".avro"), _avro),
    (_ends(".puffin", ".stats"), _puffin),
)
