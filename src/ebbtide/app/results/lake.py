"""What `scan`, `tables`, `history`, `orphans` and `runs` answer. The keys of their JSON are the fields here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.app.results.shown import Shown

if TYPE_CHECKING:
    from ebbtide.app.results.governance import Drift, Repair


@dataclass(frozen=True, slots=True, repr=False)
class ScanError(Shown):
    """A catalog that did not answer (`table_id` is None), or a dataset that could not be read."""

    catalog: str
    table_id: str | None
    error: str
    hint: str | None


@dataclass(frozen=True, slots=True, repr=False)
class ScanResult(Shown):
    """What a scan read, what no catalog lists any more, what shares its location, and what could not be read.

    `changed_in_place` names datasets of which `verify` found that a commit says something else than it did. `repaired`
    is what tables with `enforce: true` had repaired by it, `drift` where tables differ from contracts still. `warnings`
    are labels of tables/*.yml, or of a table's own, that are on nothing.
    """

    scan_id: str
    scanned_at: datetime | None
    datasets: int
    read: tuple[str, ...]
    gone: tuple[str, ...]
    locked: Mapping[str, tuple[str, ...]]
    errors: tuple[ScanError, ...]
    drift: tuple[Drift, ...]
    repaired: tuple[Repair, ...]
    changed_in_place: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Table(Shown):
    """A dataset of the inventory with its sizes. One that was never read has a name and a reason only.

    Labels are in `labels()` and in the information schema.
    """

    table_id: str
    format: str | None = None
    location: str | None = None
    depends: str | None = None
    classifiers: str | None = None
    labels: tuple[str, ...] | None = None
    schedule: str | None = None
    time_grain: str | None = None
    is_pii: bool | None = None
    is_root: bool | None = None
    properties: Mapping[str, str] | None = None
    floors: Mapping[str, str] | None = None
    capabilities: tuple[str, ...] | None = None
    unknown: tuple[str, ...] | None = None
    scanned_at: datetime | None = None
    date_column: str | None = None
    date_by: str | None = None
    date_doubt: str | None = None
    partitioned: bool | None = None
    branches: int = 0
    tags: int = 0
    transactions: int = 0
    last_commit: datetime | None = None
    rows: int | None = None
    data_files: int = 0
    data_bytes: int = 0
    files: int = 0
    bytes: int = 0
    locked_by: tuple[str, ...] = ()
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class TransactionRow(Shown):
    """One commit, and what retention makes of it."""

    id: str
    parent_id: str | None
    kind: str
    operation: str | None
    committed_at: str
    in_latest_view: bool
    state: str
    staged: bool
    carried_into: tuple[str, ...]
    message: str | None
    rows_added: int | None
    rows_removed: int | None
    files_added: int | None
    files_removed: int | None
    bytes_added: int | None
    bytes_removed: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Branch(Shown):
    """A branch with its transactions, from oldest to newest."""

    name: str
    main: bool
    view_start: str | None
    transactions: tuple[TransactionRow, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Tag(Shown):
    name: str
    head: str
    view_start: str | None


@dataclass(frozen=True, slots=True, repr=False)
class History(Shown):
    """The transactions of a dataset, branch by branch, and those that no branch reaches."""

    dataset: str
    branches: tuple[Branch, ...]
    tags: tuple[Tag, ...]
    unreachable: tuple[TransactionRow, ...]
    scanned_at: str
    error: str | None


@dataclass(frozen=True, slots=True, repr=False)
class OrphanFolder(Shown):
    """Files of one folder that nothing references."""

    dataset: str
    folder: str
    files: int
    bytes: int
    newest: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class UnregisteredTable(Shown):
    """A table that no catalog lists."""

    path: str
    format: str
    formerly: str | None
    files: int
    bytes: int
    newest: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class OrphansResult(Shown):
    """What lies in the storage and nothing references; with anything in `unread`, nothing of it is an orphan yet."""

    listed_at: datetime
    orphans: tuple[OrphanFolder, ...]
    unregistered: tuple[UnregisteredTable, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class CondemnedTable(UnregisteredTable):
    """A table that no catalog lists, whose files policies treat as orphans of `dataset`."""

    dataset: str
    dry_run: bool


@dataclass(frozen=True, slots=True, repr=False)
class RunRow(Shown):
    """A run of a verb: how far it is, or how it ended."""

    id: str
    verb: str
    actor: str | None
    state: str
    step: str | None
    done: int | None
    total: int | None
    started_at: str
    seen_at: str | None
    finished_at: str | None
    exit_code: int | None
    summary: str | None
    cancel_requested: bool


@dataclass(frozen=True, slots=True, repr=False)
class StateUpgrade(Shown):
    """The layout of the state before and after; the same when there was nothing to do. 0 is no state at all."""

    before: int
    after: int
    dry_run: bool
