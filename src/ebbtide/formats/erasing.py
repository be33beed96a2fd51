"""A format's side of erasing people from one dataset (spec §4): `ERASING` of the module `erase` in its folder.

1. `foresee` says what will become of each retained version, and what stays and why; nothing is written.
2. `erase` makes one commit per branch: data files that hold somebody are rewritten without them, those in which
   something beside them only hides somebody's rows included. Where the format lets it, tags and older versions are
   rewritten in the same call and keep their ids. Nothing is removed from storage: readers in flight finish.
3. `purge`, a reader's window later: versions that still hold somebody end by the format's own operation, what metadata
   says of them is rewritten or ends too, and exactly the files that were named and that nothing references go.

Each of them may be asked again after a crash and does what is left. Before a commit lets go of files, `intend` is told
which: what dies between the two is found by that list. Values of people reach Spark as rows in memory, never as texts
of a statement, and stand in no commit, property, file name, log or error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.reasons import Reason
from ebbtide.model.removal import CheckedFolder, FileDeletion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


WAS = "ebbtide.was."
"""So begins the property of a table that keeps what a setting was before an erasure changed it for a moment."""


class VersionFate(StrEnum):
    """What may become of versions that hold somebody. Where one cannot be had, the next one below it is done."""

    REWRITE = "rewrite"
    """They are rewritten under their ids, and read as before without the person."""
    REFS = "refs"
    """Branches and tags are rewritten and re-pointed; the other versions expire."""
    EXPIRE = "expire"
    """Branches are rewritten; tags are kept as they are and say so, the other versions expire."""
    REFUSE = "refuse"
    """Only heads are rewritten: versions stay until retention takes them, and the place is retained."""


class Fate(StrEnum):
    """What becomes of one version."""

    CLEAN = "clean"
    """It holds nobody, and stays as it is."""
    REWRITTEN = "rewritten"
    EXPIRES = "expires"
    STAYS = "stays"
    """It holds somebody and stays, for a reason."""


@dataclass(frozen=True, slots=True)
class ForeseenVersion:
    """What becomes of one version, and where it is not what was asked for, why."""

    fate: Fate
    because: str | None = None


class People(Protocol):
    """Those who are erased, as one dataset shows them. Their values are in memory alone."""

    @property
    def columns(self) -> Collection[str]:
        """The columns that may hold one of them, by the path to what is inside of a nested one."""
        ...

    @property
    def redacts(self) -> bool:
        """Whether rows of theirs stay, with columns that were replaced."""
        ...

    def among(self, rows: DataFrame) -> DataFrame:
        """Those of these rows that are about one of them, all columns as they are."""
        ...

    def without(self, rows: DataFrame) -> DataFrame:
        """What is to be left of these rows: others' as they are; theirs are gone, or have columns redacted."""
        ...

    def may_lie(self, column: str, low: object, high: object) -> bool:
        """Whether a value of theirs may lie between two bounds of a column, in the types that Python has for them. True
        where that cannot be told: a bound that is None, a cut one's end, a type without an order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What is asked of one dataset. Paths are normalised (`model.paths`).

    `files` are the data files in which somebody was found, whichever versions hold them, `versions` those that only a
    reader can merge and in which somebody was found; what was committed since is looked through again. `kept` are
    versions that may neither be rewritten nor end (held, rescued), each with why.

    A writer in flight may have begun before anything that was committed after `in_flight_since`, and still be about to
    commit beside it: what keeps others from taking that commit's place stays. None where there is no writer.
    """

    found: TableHandle
    people: People
    files: frozenset[str]
    versions: frozenset[str] = frozenset()
    history: VersionFate = VersionFate.REWRITE
    kept: Mapping[str, Reason] = field(default_factory=dict)
    places: tuple[CheckedFolder, ...] = ()
    in_flight_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What `erase` did. `version` is the head of main after it, for the ledger.

    `ending` are versions that are still listed and end with `purge`: they no longer keep a file from going. `retained`
    are branches, tags and versions (`branch:x`, `tag:y`, `version:id`) that still hold somebody, each with why.
    """

    version: str | None = None
    rewritten_files: int = 0
    written_bytes: int = 0
    rewritten_versions: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()
    retained: Mapping[str, str] = field(default_factory=dict)


Intend = Callable[[Mapping[str, int]], None]
"""Told the files, with their sizes, that the next commit lets go of. Raises once the lease is lost."""


class Erasing(Protocol):
    """A format's side."""

    def mend(self, found: TableHandle, catalog: Catalog, spark: SparkSession) -> None:  # noqa: ARG002 - most change none
        """Put back settings of a table (`WAS`) that an erasure changed for a moment and died in."""
        return

    def foresee(self, erasure: Erasure, catalog: Catalog, spark: SparkSession) -> Mapping[str, ForeseenVersion]:
        """What will become of each retained version, by its id. Reads metadata only."""
        ...

    def erase(self, erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Erased:
        """Rewrite heads, and versions as far as the history asks and the format lets it. A conflict with a writer is
        tried again a few times against what the writer left (his rows of these people go, too), then `ConflictError`.
        """
        ...

    def purge(
        self,
        erasure: Erasure,
        erased: Erased,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
        intend: Intend,
    ) -> FileDeletion:
        """Let versions and traces end by the format's own operation, and remove exactly these files, which were named
        and which nothing references any more but for versions in `erased.ending`. `before_batch` raises once the
        lease is lost. Metadata files of the dataset's own that only a commit of this call lets go of are told to
        `intend` before that commit, and go, too.
        """
        ...
