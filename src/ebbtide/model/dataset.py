"""What one dataset is made of: the values that an adapter yields for it (spec §1, §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date as Day
from datetime import datetime
from enum import StrEnum

from ebbtide.model.history import Ref, Transaction
from ebbtide.model.ids import DatasetId


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


@dataclass(frozen=True, slots=True)
class Catalog:
    """One catalog of the project. Paths are absolute; `options` go to the engine as they are."""

    name: str
    format: str
    warehouse: str
    type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A dataset that a catalog lists. While `token` stays equal the dataset has not changed.

    `handle` is what the adapter needs to open it again (a metadata location, say); it crosses process borders.
    """

    id: DatasetId
    location: str
    token: str
    handle: str = ""


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
    """One partition of the current main branch. `date` is None where none can be told: such a one is never due."""

    id: str
    date: Day | None
    first_day: Day | None
    last_day: Day | None
    landed_at: datetime | None
    rows: int | None
    files: int
    bytes: int
    last_transaction: str | None


BESIDE = 2**62
"""The position of what keeps a file beside the versions: behind all of them, so the end of none frees it."""
CHANGELOG = "a changelog"
"""What that is, in the words of plans and sweeps."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """One physical file that some retained version references. `path` is normalised (`model.paths`).

    `first_transaction` added it (None where nothing says so any more), each of `removed_by` took it out of its
    parent's version, and `live` says whether the head of any branch references it. Bit n of `versions` says whether
    the n-th transaction of the reading references it; None where the adapter leaves that to `inventory.spans`.
    `outlives` says that something beside the versions keeps it when they have gone (Paimon's changelogs).
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


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that one dataset says about itself.

    `unknown` lists the reasons why its references are not fully known; while there is one, nothing that the dataset
    might reference may be removed. `floors` are the format's own settings that limit cleanup.
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
