"""People in a Hudi table's head, by the keys and the files that rows carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import Column

from ebbtide.formats.hudi.holding import Hits, group_named
from ebbtide.formats.hudi.replay import Group
from ebbtide.formats.hudi.timeline import java_path
from ebbtide.formats.hudi.writer import completed
from ebbtide.model.dataset import TableHandle
from ebbtide.model.paths import normalise
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.formats.erasing import People

_KEY = ("_hoodie_record_key", "_hoodie_partition_path")
_PLACE = (*_KEY, "_hoodie_file_name", "_hoodie_commit_time")
_SHARED = "rows that are to stay have the key of rows that are to go, and Hudi writes by key: deduplicate the table"


@dataclass(frozen=True, slots=True, repr=False)
class Theirs:
    """Rows that are to change. `redacted` are those that take their place; None where they go."""

    keys: frozenset[tuple[str, str]] = frozenset()
    hits: Hits = field(default_factory=Hits)
    oldest: str = ""
    newest: str = ""
    """The first and the last instant that wrote one of them."""
    redacted: DataFrame | None = None
    changed: frozenset[str] = frozenset()
    """The columns that a redaction changes."""
    cannot: str | None = None
    after: frozenset[str] = frozenset()
    """What was completed when they were looked for: where anything more is, they may be others' rows by now."""

    @property
    def is_somebody(self) -> bool:
        return bool(self.keys)


def theirs_in_head(found: TableHandle, people: People, spark: SparkSession) -> Theirs:
    """Rows of the head that are theirs, but for those that are redacted already."""
    after = completed(found, spark)
    table = spark.read.format("hudi").load(java_path(found.location))
    rows = people.among(table)
    left = people.without(rows)
    is_redaction = not left.isEmpty()
    changed: frozenset[str] = frozenset()
    if is_redaction:
        rows, left, changed = _changing(rows, left)
    places = [tuple(row) for row in rows.select(*_PLACE).collect()]
    if not places:
        return Theirs()
    return Theirs(
        keys=frozenset((key, folder) for key, folder, _, _ in places),
        hits=_hits(found, {(folder, name) for _, folder, name, _ in places}),
        oldest=min(instant for *_, instant in places),
        newest=max(instant for *_, instant in places),
        redacted=left if is_redaction else None,
        changed=changed,
        after=after,
        cannot=_SHARED if _shares_keys(table, rows, len(places), redacted=is_redaction) else None,
    )


def _changing(rows: DataFrame, left: DataFrame) -> tuple[DataFrame, DataFrame, frozenset[str]]:
    """The rows that a redaction changes, as they are and as they are to be, and the columns that it changes. What was
    redacted before is not changed.
    """
    from pyspark.sql import functions as F

    columns = [name for name in rows.columns if not name.startswith("_hoodie_")]

    def texts(prefix: str) -> list[Column]:
        """Columns as texts: those of some types cannot be compared."""
        all_ = {"ignoreNullFields": "false"}
        return [F.to_json(F.struct(F.col(quote(name))), all_).alias(f"{prefix}{n}") for n, name in enumerate(columns)]

    before, after = rows.select(*_PLACE, *texts("b")), left.select(*_PLACE, *texts("a"))
    both = before.join(after, list(_PLACE))
    differs = [F.col(f"b{n}") != F.col(f"a{n}") for n in range(len(columns))]
    changing = both.where(reduce(or_, differs)).select(*_PLACE).distinct()
    seen = both.select(*(F.bool_or(each).alias(f"d{n}") for n, each in enumerate(differs))).collect()[0]
    changed = frozenset(name for name, is_changed in zip(columns, seen, strict=True) if is_changed)
    by_place = list(_PLACE)
    return rows.join(changing, by_place, "left_semi"), left.join(changing, by_place, "left_semi"), changed


def _hits(found: TableHandle, places: set[tuple[str, str]]) -> Hits:
    groups: frozenset[Group] = frozenset(group_named(folder, name) for folder, name in places)
    paths = (f"{found.location}/{folder}/{name}" if folder else f"{found.location}/{name}" for folder, name in places)
    return Hits(files=frozenset(normalise(path) for path in paths), groups=groups)


def _shares_keys(table: DataFrame, rows: DataFrame, count: int, *, redacted: bool) -> bool:
    """Whether other rows have the key of one of these: inserts that look for no other row let keys come twice."""
    from pyspark.sql import functions as F

    keys = rows.select(*_KEY).distinct()
    if redacted and keys.count() != count:
        return True
    return table.select(*_KEY).join(F.broadcast(keys), list(_KEY), "left_semi").count() != count
