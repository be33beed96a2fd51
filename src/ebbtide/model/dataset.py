"""What one dataset is made of: the values that an adapter yields for it (spec §1, §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date as Day
from datetime import datetime
from enum import StrEnum

from ebbtide.model.history import Ref, Transaction
from ebbtide.model.ids import DatasetId
from ebbtide.model.partition_dates import Candidate, DateSource
from ebbtide.model.paths import is_inside


class Role(StrEnum):
    """What a physical file is to its dataset."""

    DATA = "data"
    DELETE_FILE = "delete file"
    DELETION_VECTOR = "deletion vector"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    LOG = "log"
    CHECKPOINT = "checkpoint"
    STATISTICS = "statistics"
    CHANGELOG = "changelog"
    CHANGE_DATA = "change data"
    INDEX = "index"
    METADATA = "metadata"
    REMOVED = "removed"
    """No version has it any more, and the format still keeps it for a while (`FileRef.kept_until`)."""
    TEMPORARY = "temporary"
    """A writer's own, on its way to be something else: it comes and goes, and nobody's version needs it."""


ICEBERG_CATALOGS = ("jdbc", "hadoop", "rest", "hive", "glue")
"""The types of Iceberg catalogs whose tables can be listed."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """One catalog of the project. Paths are absolute; `options` go to the engine as they are.

    `shares_files` says whether its tables may reference files outside of their own folders (spec §7).
    """

    name: str
    format: str
    warehouse: str
    type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    shares_files: bool = True

    @property
    def lists_folders(self) -> bool:
        """Whether its tables are what lies in its warehouse: no service knows then which ones were dropped."""
        return self.format != "iceberg" or self.type in (None, "hadoop")


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A dataset that a catalog lists. While `token` stays equal the dataset has not changed.

    `handle` is what the adapter needs to open it again (a metadata location, say); it crosses process borders.
    `identity` is what the reading that a plan was made from said of it: a name may be another table's by now.
    """

    id: DatasetId
    location: str
    token: str
    handle: str = ""
    identity: str = ""


@dataclass(frozen=True, slots=True)
class NotFound:
    """A place in a catalog that should be a dataset and cannot be opened: it becomes a row of `scan_errors`."""

    name: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct column as `parent.child`."""

    name: str
    type: str
    position: int


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of the current main branch. `date` is None where none can be told: such a one is never due.

    Its days are those of the reading's `date_source`; `candidates` is what every column says that may hold a date, for
    people who declare another one.
    """

    id: str
    date: Day | None
    first_day: Day | None
    last_day: Day | None
    landed_at: datetime | None
    rows: int | None
    files: int
    bytes: int
    last_transaction: str | None
    candidates: tuple[Candidate, ...] = ()


BESIDE = 2**62
"""The position of what keeps a file beside the versions: behind all of them, so the end of none frees it."""
OF_CHANGELOG = r"/changelog/([0-9]+)$"
"""How the id of a changelog ends that outlived its snapshot, which was called the same without that folder."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """One physical file that some retained version references. `path` is normalised (`model.paths`).

    `first_transaction` added it (None where nothing says so any more), each of `removed_by` took it out of its
    parent's version, and `live` says whether the head of any branch references it. Bit n of `versions` says whether
    the n-th transaction of the reading references it; None where the adapter leaves that to `inventory.spans`.
    `outlives` says that something beside the versions keeps it when they have gone (Paimon's changelogs). `kept_until`
    is when a file that was removed from the table may go as if nobody had ever referenced it.
    """

    path: str
    role: Role
    bytes: int | None
    first_transaction: str | None
    live: bool
    removed_by: tuple[str, ...] = ()
    partition: str | None = None
    rows: int | None = None
    versions: int | None = None
    outlives: bool = False
    kept_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that one dataset says about itself.

    `unknown` lists the reasons why its references are not fully known; while there is one, nothing that the dataset
    might reference may be removed. Where those might lie anywhere, `doubt` says why: then no file of others goes, too.
    `floors` are the format's own settings that limit cleanup. `partitioned` says whether it is, or ever was.
    `identity` is what tells the table from another one of the same name; empty where nothing does. `was_at` are the
    folders that were its location before, as far as its metadata still shows: what it has there is its own.
    """

    id: DatasetId
    format: str
    location: str
    properties: Mapping[str, str]
    columns: tuple[Column, ...]
    refs: tuple[Ref, ...]
    transactions: tuple[Transaction, ...]
    partitions: tuple[Partition, ...] = ()
    files: tuple[FileRef, ...] = ()
    floors: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    date_source: DateSource = field(default_factory=DateSource)
    partitioned: bool = True
    doubt: str | None = None
    identity: str = ""
    was_at: tuple[str, ...] = ()

    @property
    def borrowed(self) -> int:
        """How many of its files lie elsewhere than in its own folders."""
        places = (self.location, *self.was_at)
        return sum(1 for file in self.files if not any(is_inside(file.path, place) for place in places))
