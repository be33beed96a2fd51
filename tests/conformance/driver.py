"""How the conformance suite writes real tables: one driver per format.

A driver does what a user of the format does, by SQL and the format's own procedures. It knows nothing of Ebbtide's
adapters, and whatever it cannot do is a declared capability that the adapter lacks.
Every table has the columns `id BIGINT, name STRING, day STRING` (Hudi adds what it needs) unless a test says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId

Rows = Sequence[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    id: DatasetId
    location: str
    sql: str
    """The table's name in SQL statements, quoted."""


class Driver(ABC):
    format: str
    variants: tuple[str, ...]
    """The table types of this format: v1, v2, v3; plain, vectors; cow, mor; append, key."""

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self.spark, self.catalog = spark, catalog

    @abstractmethod
    def create(
        self,
        name: str,
        *,
        variant: str = "",
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        columns: str | None = None,
    ) -> Table:
        """Create an empty table in namespace `db`; `partitioned` by `day`. `variant` defaults to the first one."""

    @abstractmethod
    def append(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        """One commit that adds the rows, in one data file per partition."""

    @abstractmethod
    def overwrite(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        """One commit that replaces everything by the rows."""

    @abstractmethod
    def delete(self, table: Table, where: str) -> None:
        """One commit that deletes single rows, leaving others in the same files."""

    @abstractmethod
    def delete_all(self, table: Table) -> None:
        """One commit that leaves no row and no live data file."""

    @abstractmethod
    def compact(self, table: Table) -> None:
        """One commit of compaction that rewrites what is there into fewer files."""

    @abstractmethod
    def set_property(self, table: Table, key: str, value: str) -> None: ...

    @abstractmethod
    def add_column(self, table: Table, name: str, type_: str) -> None: ...

    @abstractmethod
    def expire(self, table: Table) -> None:
        """The format's own cleanup: nothing but the newest version stays."""

    @abstractmethod
    def drop(self, table: Table) -> None: ...

    # What only some formats can do: the suite asks the adapter's capabilities before it calls these.

    def create_branch(self, table: Table, branch: str, at: str | None = None) -> None:
        raise NotImplementedError

    def drop_branch(self, table: Table, branch: str) -> None:
        raise NotImplementedError

    def create_tag(self, table: Table, tag: str, at: str | None = None) -> None:
        """Pin a transaction (by native id; the newest when None). A Hudi savepoint is a tag."""
        raise NotImplementedError

    def drop_tag(self, table: Table, tag: str) -> None:
        raise NotImplementedError

    def rollback(self, table: Table, to: str) -> None:
        """Make an older version the current one again, the format's own way (Delta: RESTORE)."""
        raise NotImplementedError

    def replace(self, table: Table, rows: Rows) -> None:
        """`CREATE OR REPLACE TABLE … AS SELECT`."""
        raise NotImplementedError

    def stage(self, table: Table, rows: Rows) -> str:
        """Write without publishing (write-audit-publish) and return the staged native id."""
        raise NotImplementedError

    def cherry_pick(self, table: Table, staged: str) -> None:
        raise NotImplementedError

    def add_partition_field(self, table: Table) -> None:
        """Evolve the partitioning of a table that is partitioned by `day`."""
        raise NotImplementedError

    # Reading back, for oracles.

    @abstractmethod
    def rows(self, table: Table, *, version: str | None = None, branch: str | None = None) -> list[Row]:
        """All rows of the current table, of a version by native id, or of a branch, sorted."""

    @abstractmethod
    def native_ids(self, table: Table) -> list[str]:
        """Native ids of the retained transactions, oldest first, by the format's own listing."""
