"""Random histories of Iceberg tables by pyiceberg: quick enough for hundreds of them, and no session is needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from tests.property.rows import rows_for

_SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "day", StringType())
)
_BY_DAY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
_DATED = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "day", DateType()),
    NestedField(4, "k", StringType()),
)  # fmt: skip
_BY_BOTH = PartitionSpec(
    PartitionField(3, 1000, IdentityTransform(), "day"), PartitionField(4, 1001, IdentityTransform(), "k")
)
_PLAIN = PartitionSpec()
STEPS = 7


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the tables are; also what a process that builds some of them is told."""

    name: str
    database: Path
    warehouse: Path

    def open(self) -> SqlCatalog:
        return SqlCatalog(self.name, uri=f"sqlite:///{self.database}", warehouse=f"file://{self.warehouse}")


@dataclass
class History:
    """One table that is written at random."""

    table: Table
    random: Random
    done: Counter[str] = field(default_factory=Counter)
    named: int = 0

    def __post_init__(self) -> None:
        self.rows = rows_for(self.table.name()[-1], self.random)

    def _branch(self) -> str:
        return self.random.choice(
            [name for name, ref in self.table.refs().items() if ref.snapshot_ref_type == "branch"]
        )

    def _ids(self) -> list[int]:
        return [snapshot.snapshot_id for snapshot in self.table.snapshots()]

    def _name(self, letter: str) -> str:
        self.named += 1
        return f"{letter}{self.named}"

    def append(self) -> None:
        branch = self._branch() if self.table.current_snapshot() else "main"
        self.table.append(self.rows.table(), branch=branch)

    def _files(self, branch: str) -> list[Any]:
        head = self.table.refs()[branch].snapshot_id
        return [task.file for task in self.table.scan(snapshot_id=head).plan_files()]

    def _replace(self, share: float) -> None:
        """One commit that adds a file and takes some out: all of them is a SNAPSHOT, some an UPDATE."""
        branch = self._branch()
        there = self._files(branch)
        gone = there[: max(1, int(len(there) * share))] if there else []
        with self.table.transaction() as transaction, transaction.update_snapshot(branch=branch).overwrite() as change:
            for file in gone:
                change.delete_data_file(file)
            new = _dataframe_to_data_files(
                transaction.table_metadata, self.rows.table(), self.table.io, write_uuid=uuid4()
            )
            for file in new:
                change.append_data_file(file)

    def overwrite(self) -> None:
        self._replace(1)

    def update(self) -> None:
        self._replace(0.5)

    def delete(self) -> None:
        self.table.delete(f"id = {self.random.randrange(self.rows.next_id)}")

    def delete_all(self) -> None:
        self.table.delete(AlwaysTrue())

    def branch(self) -> None:
        self.table.manage_snapshots().create_branch(self.random.choice(self._ids()), self._name("b")).commit()

    def drop_branch(self) -> None:
        if (name := self._branch()) != "main":
            self.table.manage_snapshots().remove_branch(name).commit()

    def tag(self) -> None:
        self.table.manage_snapshots().create_tag(self.random.choice(self._ids()), self._name("t")).commit()

    def stage(self) -> None:
        self.table.append(self.rows.table(), snapshot_properties={"wap.id": uuid4().hex}, branch=None)

    def rollback(self) -> None:
        staged = {s.snapshot_id for s in self.table.snapshots() if s.summary and s.summary["wap.id"]}
        self.table.manage_snapshots().set_current_snapshot(
            self.random.choice([id_ for id_ in self._ids() if id_ not in staged])
        ).commit()

    def expire(self) -> None:
        named = {ref.snapshot_id for ref in self.table.refs().values()}
        if free := [id_ for id_ in self._ids() if id_ not in named]:
            self.table.maintenance.expire_snapshots().by_id(self.random.choice(free)).commit()

    def add_file(self) -> None:
        """A file without field ids, which another table may take too (`share`)."""
        path = Path(self.table.location().removeprefix("file://"), "data", f"{uuid4().hex}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(self.rows.table(), path)
        self.table.add_files([f"file://{path}"])

    def bring_back(self) -> bool:
        """Add a file again that no head has any more, as from a backup; False where there is none."""
        live = {file.file_path for name in self.table.refs() for file in self._files(name)}
        for snapshot in self.table.snapshots():
            for manifest in snapshot.manifests(self.table.io):
                for entry in manifest.fetch_manifest_entry(self.table.io):
                    file = entry.data_file
                    there = Path(file.file_path.removeprefix("file://")).exists()
                    if there and file.content == 0 and file.file_path not in live:
                        with (
                            self.table.transaction() as transaction,
                            transaction.update_snapshot().fast_append() as add,
                        ):
                            add.append_data_file(file)
                        return True
        return False

    def borrow(self, lender: Table) -> None:
        """Take over the oldest file that the other table has, live there or not."""
        manifest = lender.snapshots()[0].manifests(lender.io)[0]
        file = manifest.fetch_manifest_entry(lender.io)[0].data_file
        with self.table.transaction() as change, change.update_snapshot().fast_append() as added:
            added.append_data_file(file)

    def move(self) -> None:
        """The table gets another folder, as by `SET LOCATION`: what it has stays where it lies."""
        with self.table.transaction() as transaction:
            transaction._apply((SetLocationUpdate(location=f"{self.table.location()}_moved"),))

    def do(self, name: str) -> None:
        getattr(self, name)()
        self.done[name] += 1

    def step(self) -> None:
        names, weights = zip(*_WEIGHTS.items(), strict=True)
        self.do(self.random.choices(names, weights)[0])


_WEIGHTS = {
    "append": 6, "overwrite": 4, "update": 1, "delete": 1, "delete_all": 1, "branch": 2, "drop_branch": 1, "tag": 1,
    "stage": 1, "rollback": 1, "expire": 1,
}  # fmt: skip


def build(lake: Lake, seed: int, tables: list[tuple[str, dict[str, str]]], *, steady: bool = False) -> Counter[str]:
    """Create these tables (name, properties) with random histories (`steady`: overwrites only); how often each
    operation was done.
    """
    catalog, done = lake.open(), Counter[str]()
    for name, properties in tables:
        history = create(catalog, f"{seed}:{name}", name, properties)
        history.do("append")
        for _ in range(STEPS):
            if steady:
                history.do("overwrite")
            else:
                history.step()
        done += history.done
    return done


def nest(lake: Lake, seed: int, outside: str, inside: str) -> Counter[str]:
    """Two tables of which one lies in the folder of the other."""
    catalog, done = lake.open(), Counter[str]()
    for name, folder in ((outside, outside), (inside, f"{outside}/{inside}")):
        history = create(catalog, f"{seed}:{name}", name, {}, location=f"file://{lake.warehouse}/db/{folder}")
        for _ in range(STEPS):
            history.do("append")
        done += history.done
    return done


def create(
    catalog: SqlCatalog,
    seed: str,
    name: str,
    properties: dict[str, str],
    *,
    by_day: bool | None = None,
    location: str | None = None,
) -> History:
    """A new table; unless `by_day` says otherwise, some are partitioned."""
    random = Random(seed)
    partitioned = name.startswith("days") or random.random() < 0.3 if by_day is None else by_day
    settings = {"format-version": random.choice("12"), **properties}
    schema, spec = (_DATED, _BY_BOTH) if name.startswith("dated_") else (_SCHEMA, _BY_DAY if partitioned else _PLAIN)
    table = catalog.create_table(("db", name), schema, location, partition_spec=spec, properties=settings)
    return History(table, random)


def share(lake: Lake, seed: int, pairs: list[tuple[str, str]]) -> Counter[str]:
    """Pairs of tables of which the second one lives on a file that the first one added and then left behind."""
    catalog, done = lake.open(), Counter[str]()
    for first, second in pairs:
        one = create(catalog, f"{seed}:{first}", first, {}, by_day=False)
        one.do("append")
        one.do("overwrite")
        one.do("add_file")
        file = next(file for file in one._files("main") if "/data/0000" not in file.file_path)
        other = create(catalog, f"{seed}:{second}", second, {}, by_day=False)
        other.table.add_files([file.file_path])
        other.done["share"] += 1
        one.do("overwrite")
        done += one.done + other.done
    return done
