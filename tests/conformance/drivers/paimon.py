"""Paimon tables: append-only without buckets, and with a primary key in one bucket."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pyspark.sql import Row

from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote, quote_text
from tests.conformance.driver import Driver, Rows, Table

_NAMESPACE = "db"
# Writers would otherwise expire snapshots and compact files on their own, behind a test's back.
_QUIET = {"write-only": "true"}
_VARIANTS = {"append": {"bucket": "-1"}, "key": {"bucket": "1", "primary-key": "id"}}


class PaimonDriver(Driver):
    format = "paimon"
    variants = ("append", "key")

    def create(
        self,
        name: str,
        *,
        variant: str = "",
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        columns: str | None = None,
    ) -> Table:
        options = {**_QUIET, **_VARIANTS[variant or self.variants[0]]}
        if partitioned and "primary-key" in options:
            options["primary-key"] = "id,day"  # a key must name the partition
        options |= properties or {}
        table = self._table(name)
        pairs = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in options.items())
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(self.catalog.name, _NAMESPACE)}")
        self.spark.sql(
            f"CREATE TABLE {table.sql} ({columns or 'id BIGINT, name STRING, day STRING'})"
            f" {'PARTITIONED BY (day)' if partitioned else ''} TBLPROPERTIES ({pairs})"
        )
        return table

    def _table(self, name: str) -> Table:
        return Table(
            DatasetId(self.catalog.name, (_NAMESPACE,), name),
            f"{self.catalog.warehouse}/{_NAMESPACE}.db/{name}",
            quote(self.catalog.name, _NAMESPACE, name),
        )

    def _part(self, table: Table, branch: str | None = None, system: str | None = None) -> str:
        """The name of a branch of the table, or of a system table of it."""
        parts = [table.id.table, *([f"branch_{branch}"] if branch else []), *([system] if system else [])]
        return quote(self.catalog.name, _NAMESPACE, "$".join(parts))

    def _call(self, procedure: str, table: Table, **arguments: str) -> list[Row]:
        named = quote_text(quote(_NAMESPACE, table.id.table))
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        rows: list[Row] = self.spark.sql(
            f"CALL {quote(self.catalog.name)}.sys.{procedure}(table => {named}{given})"
        ).collect()
        return rows

    def append(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        # One task, so that the rows lie in one file on any number of executors.
        self.spark.sql(
            f"INSERT INTO {self._part(table, branch)} SELECT /*+ COALESCE(1) */ * FROM VALUES {_values(rows)}"
        )

    def overwrite(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        self.spark.sql(f"INSERT OVERWRITE {self._part(table, branch)} VALUES {_values(rows)}")

    def delete(self, table: Table, where: str) -> None:
        self.spark.sql(f"DELETE FROM {table.sql} WHERE {where}")

    def delete_all(self, table: Table) -> None:
        self.spark.sql(f"TRUNCATE TABLE {table.sql}")

    def compact(self, table: Table) -> None:
        files = self.spark.sql(f"SELECT count(*) AS n FROM {self._part(table, system='files')} GROUP BY partition")
        counts = [row.n for row in files.collect() if row.n > 1]
        # Small files are packed once there are this many of them in a partition.
        packed = f"compaction.min.file-num=2,compaction.max.file-num={min(counts, default=2)}"
        self._call("compact", table, options=quote_text(packed))

    def set_property(self, table: Table, key: str, value: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({quote_text(key)} = {quote_text(value)})")

    def add_column(self, table: Table, name: str, type_: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} ADD COLUMNS ({quote(name)} {type_})")

    def expire(self, table: Table) -> None:
        future = "TIMESTAMP '2100-01-01 00:00:00'"
        self._call("expire_snapshots", table, retain_max="1", retain_min="1", older_than=future, max_deletes="1000000")

    def drop(self, table: Table) -> None:
        self.spark.sql(f"DROP TABLE {table.sql}")

    def create_branch(self, table: Table, branch: str, at: str | None = None) -> None:
        """A branch hangs on a tag; on a table without a commit it can only be empty."""
        if at is None and not self.native_ids(table):
            self._call("create_branch", table, branch=quote_text(branch))
            return
        self.create_tag(table, _tag_of(branch), at)
        self._call("create_branch", table, branch=quote_text(branch), tag=quote_text(_tag_of(branch)))

    def drop_branch(self, table: Table, branch: str) -> None:
        """The branch goes with the tag that it hangs on (spec §1, the worked example)."""
        self._call("delete_branch", table, branch=quote_text(branch))
        if _tag_of(branch) in self._tags(table):
            self.drop_tag(table, _tag_of(branch))

    def create_tag(self, table: Table, tag: str, at: str | None = None) -> None:
        snapshot = {} if at is None else {"snapshot": at.rpartition("/")[2]}
        self._call("create_tag", table, tag=quote_text(tag), **snapshot)

    def drop_tag(self, table: Table, tag: str) -> None:
        self._call("delete_tag", table, tag=quote_text(tag))

    def rollback(self, table: Table, to: str) -> None:
        number = to.rpartition("/")[2]
        kept = [str(row.snapshot_id) for row in self._snapshots(table)]
        tags = [tag for tag, snapshot in self._tags(table).items() if str(snapshot) == number]
        self._call("rollback", table, version=quote_text(number if number in kept else tags[0]))

    def _tags(self, table: Table) -> dict[str, int]:
        rows = self.spark.sql(f"SELECT tag_name, snapshot_id FROM {self._part(table, system='tags')}").collect()
        return {row.tag_name: row.snapshot_id for row in rows}

    def rows(self, table: Table, *, version: str | None = None, branch: str | None = None) -> list[Row]:
        # By path, because the catalog gives a version the columns of today.
        reader = self.spark.read.format("paimon")
        if version is not None:
            line, _, number = version.rpartition("/")
            branch = branch or (None if line == "main" else line)
            tags = [tag for tag, snapshot in self._tags(table).items() if branch is None and str(snapshot) == number]
            # A tag still reads what an expired snapshot held.
            reader = reader.option("scan.tag-name", tags[0]) if tags else reader.option("scan.snapshot-id", number)
        if branch is not None:
            reader = reader.option("branch", branch)
        return sorted(reader.load(table.location).collect(), key=str)

    def native_ids(self, table: Table) -> list[str]:
        branches = self.spark.sql(f"SELECT * FROM {self._part(table, system='branches')}").collect()
        found = {("main", row.snapshot_id): row.commit_time for row in self._snapshots(table)}
        for tag in self.spark.sql(f"SELECT * FROM {self._part(table, system='tags')}").collect():
            found.setdefault(("main", tag.snapshot_id), tag.commit_time)
        for branch in branches:
            for row in self._snapshots(table, branch.branch_name):
                if branch.created_from_tag is None or row.snapshot_id != branch.created_from_snapshot:
                    found[(branch.branch_name, row.snapshot_id)] = row.commit_time
        ordered = sorted(found, key=lambda key: (found[key], key[1]))
        return [f"{branch}/{number}" for branch, number in ordered]

    def _snapshots(self, table: Table, branch: str | None = None) -> list[Row]:
        rows: list[Row] = self.spark.sql(f"SELECT * FROM {self._part(table, branch, 'snapshots')}").collect()
        return rows


def _tag_of(branch: str) -> str:
    return f"from-{branch}"


def _values(rows: Rows) -> str:
    return ", ".join(f"({', '.join(_literal(value) for value in row)})" for row in rows)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return quote_text(str(value))


DRIVER = PaimonDriver
