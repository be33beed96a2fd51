"""What an Iceberg table is, told by Spark's metadata tables and Iceberg's own Java library.

The oracle of the property test. It shares nothing with what it checks: no line of the package under test, and none of
the library that the package reads Iceberg with (`test_random_histories` makes sure).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Observed:
    """Facts collected while a table's history grew. Kinds of snapshots that were expired later stay here."""

    kinds: dict[str, str] = field(default_factory=dict)
    starts: set[str] = field(default_factory=set)
    parents: dict[str, str | None] = field(default_factory=dict)
    retained: set[str] = field(default_factory=set)
    _files: dict[str, frozenset[str]] = field(default_factory=dict)
    _deletes: dict[str, frozenset[str]] = field(default_factory=dict)

    def look(self, spark: Any, name: str) -> None:
        """Take in every snapshot that is new since the last look."""
        rows = spark.sql(
            f"SELECT snapshot_id, parent_id, operation FROM {name}.snapshots ORDER BY committed_at, snapshot_id"
        ).collect()
        self.retained = {str(row.snapshot_id) for row in rows}
        for row in rows:
            id_ = str(row.snapshot_id)
            if id_ not in self.kinds:
                self._take(spark, name, id_, None if row.parent_id is None else str(row.parent_id), row.operation)

    def _take(self, spark: Any, name: str, id_: str, parent: str | None, operation: str) -> None:
        self.parents[id_] = parent
        now = self._files[id_] = _paths(spark, f"{name}.data_files", id_)
        deletes = self._deletes[id_] = _paths(spark, f"{name}.delete_files", id_)
        before = self._files[parent] if parent else frozenset()
        new_deletes = deletes - (self._deletes[parent] if parent else frozenset())
        added, removed, kept = now - before, before - now, now & before
        if not added and not removed and not new_deletes:
            kind = "METADATA"
        elif operation == "replace":
            kind = "REWRITE"
        elif removed and not kept and added:
            kind = "SNAPSHOT"
        elif added and not removed and not new_deletes:
            kind = "APPEND"
        elif not added:
            kind = "DELETE"
        else:
            kind = "UPDATE"
        self.kinds[id_] = kind
        earlier = frozenset().union(*(files for other, files in self._files.items() if other != id_))
        if removed and not kept and not (now & earlier):
            self.starts.add(id_)

    def latest_view(self, head: str) -> set[str]:
        """The latest view of a branch: from its head back to where it starts, or to the oldest that is left."""
        members: set[str] = set()
        at: str | None = head
        while at is not None and at in self.retained:
            members.add(at)
            if at in self.starts:
                break
            at = self.parents[at]
        return members


def _paths(spark: Any, table: str, snapshot: str) -> frozenset[str]:
    rows = spark.read.format("iceberg").option("snapshot-id", snapshot).load(table).select("file_path").collect()
    return frozenset(row.file_path for row in rows)


def refs(spark: Any, name: str) -> dict[str, tuple[str, str]]:
    """Kind and head of each ref, by name."""
    rows = spark.sql(f"SELECT name, type, snapshot_id FROM {name}.refs").collect()
    return {row.name: (row.type.lower(), str(row.snapshot_id)) for row in rows}


def referenced(spark: Any, name: str) -> set[str]:
    """Every file that a retained version references, without scheme."""
    jvm = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    reachable = jvm.org.apache.iceberg.ReachableFileUtil
    found = {str(path) for path in reachable.metadataFileLocations(table, True)}
    found |= {str(path) for path in reachable.manifestListLocations(table)}
    found |= {str(path) for path in reachable.statisticsFilesLocations(table)}
    found |= {row.path for row in spark.sql(f"SELECT path FROM {name}.all_manifests").collect()}
    found |= {row.file_path for row in spark.sql(f"SELECT file_path FROM {name}.all_files").collect()}
    return {path.removeprefix("file:").replace("///", "/") for path in found}


def live(spark: Any, name: str) -> set[str]:
    """The data and delete files that the head of any branch references, without scheme."""
    found: set[str] = set()
    for kind, head in refs(spark, name).values():
        if kind == "branch":
            found |= _paths(spark, f"{name}.files", head)
    return {path.removeprefix("file:").replace("///", "/") for path in found}
