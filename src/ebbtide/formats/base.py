"""The protocol that every format implements, with the capabilities that it declares (`model.capabilities`).

What is not declared is refused before anything starts (design.md, invariant 2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from ebbtide.model.capabilities import Capability, Support, no
from ebbtide.model.contract import Contract, ContractDrift
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.history import Transaction
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Depth(StrEnum):
    """How far a reading goes. `HISTORY` leaves out partitions and files and says so in `Reading.unknown`."""

    HISTORY = "history"
    FILES = "files"


class Format(Protocol):
    """One table format. Instances hold no state and are cheap to make."""

    name: str
    reads_in_tasks: bool
    """Whether `read` needs no Spark session, so that Spark tasks can run it; otherwise threads on the driver do."""

    capabilities: Mapping[Capability, Support]

    def discover(self, catalog: Catalog) -> Iterable[TableHandle | NotFound]:
        """List the datasets of a catalog with the token that tells whether each one changed, without a session.

        Costs one answer of the catalog (or a listing) and reads no manifest. A catalog that does not answer raises
        `UnreadableError`; one bad place in it is a `NotFound` among the others.
        """
        ...

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        """Read one dataset. What cannot be read whole raises `UnreadableError`: an error is never "nothing there"."""
        ...

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
        """Change metadata as asked, through the format's own operations; remove no file that a version references.

        Asked again after a crash it does what is left of it. What changed since the plan saw it is sent back, never
        forced; a conflict with a writer is tried again a few times against what the writer left, then `ConflictError`.
        """
        ...

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        """Remove exactly these files, of those that the removal names. `before_batch` raises once the lease is lost.

        Formats whose own operation removes files (Hudi, Paimon) run it here, and only where it takes nothing else.
        """
        ...

    def rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame:
        """The rows at the head of the main branch, with the columns that people know. Nothing is read yet."""
        ...

    def stored_rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame | None:
        """The rows in the data files of that head, deleted ones too, where a data file can hide rows of another
        (Paimon's tables with a key). None where only files of a kind of their own do: logs, delete files, vectors.
        """
        ...

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
        """The identity of the table that this session's statements would change, asked by the very name that they use;
        None where there is none.
        """
        ...


def _all_of(found: TableHandle, catalog: Catalog, branch: str, line: Sequence[Transaction]) -> Sequence[Transaction]:  # noqa: ARG001
    return line


@dataclass(frozen=True, slots=True)
class NewRows:
    """A format's side of reading what is new on a branch: `NEW_ROWS` of the module `appended` in its folder."""

    rows: Callable[[TableHandle, Catalog, SparkSession, Reading, str, Sequence[Transaction]], DataFrame]
    """The rows that these transactions of the branch's line brought, oldest first, and nothing of later ones. Each is
    still there and only added rows; between them lie only such as brought none. What the format cannot read as new
    raises `FullReadNeededError`.
    """

    retained: Callable[[TableHandle, Catalog, str, Sequence[Transaction]], Sequence[Transaction]] = _all_of
    """The end of the branch's line (oldest first) of which each transaction's own rows can still be read."""


class ContractTerms(Protocol):
    """A format's side of table contracts: the module `contract` in its folder."""

    def drift(
        self, contract: Contract, properties: Mapping[str, str], columns: Mapping[str, str]
    ) -> list[ContractDrift]:
        """What the table's settings do not have as the contract says. `columns` are its own, with their types."""
        ...

    def spark_type(self, native: str) -> str | None:
        """A column's type as Spark spells it; None for what cannot be compared."""
        ...

    def create(self, contract: Contract, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
        """Make the table, with the right properties from its first commit on."""
        ...

    def set_properties(
        self, properties: Mapping[str, str], id_: DatasetId, catalog: Catalog, spark: SparkSession
    ) -> None: ...


def supports(format_: Format, capability: Capability) -> Support:
    """Declared support; what a format does not mention is not supported."""
    return format_.capabilities.get(capability, no(f"{format_.name} does not declare {capability}"))
