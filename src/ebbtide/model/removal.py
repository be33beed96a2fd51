"""What a sweep asks of one dataset: exactly this, or nothing (spec §2).

The order is the same for every format: `commit` changes metadata, then the sweep reads all references again, then
`delete_files` removes files. A file goes only when the plan named it and nothing referenced it at that second reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide.model.dataset import TableHandle


@dataclass(frozen=True, slots=True)
class Drop:
    """Data files that leave the head of a branch: all that a partition had when it was planned, or what a transaction
    added. Any other live file in that partition is a late write, and stops the drop.
    """

    branch: str
    object: str
    paths: tuple[str, ...]
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class RowDelete:
    """Rows that leave main: those whose `column` is before `cutoff` (a date or an instant as text), or that match."""

    object: str
    column: str | None = None
    cutoff: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A local folder as it was when somebody looked: `location` by its name, `real` without links, as a plain path.

    What lies in it is reached by `real`, and through no other link (hazard 37).
    """

    location: str
    real: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Everything that one sweep asks of one dataset. Paths are normalised (`model.paths`), sizes in bytes.

    `versions` are native ids that are to be no version any more; `files` is every file that the plan named for any of
    it. `table` asks for the whole table, and stands alone. `places` are the dataset's folders and those around them, as
    they were when the sweep began; without them no link is followed at all.
    """

    found: TableHandle
    branches: tuple[str, ...] = ()
    drops: tuple[Drop, ...] = ()
    rows: tuple[RowDelete, ...] = ()
    versions: tuple[str, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    table: bool = False
    places: tuple[CheckedFolder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What became of a removal's metadata. `version` is the head of main after it, for the ledger.

    `sent_back` gives for an object (a drop's, a version, a branch) why it was not done: it changed since it was planned
    (a late write, a new reference), or the format refused it.
    """

    version: str | None = None
    done: tuple[str, ...] = ()
    sent_back: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeletion:
    """What became of files. Who asks lists them afterwards: this is what was said, not what is.

    `failed` are paths with the store's or the format's own error, empty folders that stayed among them; `because` says
    why nothing was tried.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    because: str | None = None
