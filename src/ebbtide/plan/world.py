"""What a plan is made from: the information schema and the orders of people and earlier runs, handed in (spec §2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.kernel.engine import Parquet, table_of

_TEXT, _LONG, _DAY, _TIME = pa.string(), pa.int64(), pa.date32(), pa.timestamp("us", tz="UTC")

MARKS = pa.schema(
    {
        "table_id": _TEXT, "target": _TEXT, "object_id": _TEXT, "policy": _TEXT, "fingerprint": _TEXT,
        "marked_at": _TIME, "grace_until": _TIME, "cutoff": _TEXT, "acted_at": _TIME, "act": _TEXT,
    }
)  # fmt: skip
UNMARKS = pa.schema({"table_id": _TEXT, "target": _TEXT, "object_id": _TEXT, "until": _TIME, "reason": _TEXT})
HOLDS = pa.schema({"table_id": _TEXT, "partition_from": _DAY, "partition_to": _DAY, "owner": _TEXT, "reason": _TEXT})
DAYS = pa.schema({"table_id": _TEXT, "partition": _TEXT, "first_day": _DAY, "last_day": _DAY})
ORPHANS = pa.schema({"table_id": _TEXT, "folder": _TEXT, "path": _TEXT, "bytes": _LONG, "modified_at": _TIME})

CHUNKS = pa.schema(
    {
        "table_id": _TEXT, "object_id": _TEXT, "cold": _TEXT, "rule": _TEXT, "state": _TEXT, "fingerprint": _TEXT,
        "rows": _LONG, "first_us": _LONG, "last_us": _LONG, "first_day": _DAY, "last_day": _DAY,
        "pinned": pa.bool_(), "shut": pa.list_(_TEXT), "people": pa.list_(_TEXT),
        "tier_months": pa.int32(), "tier_micros": _LONG, "tier_text": _TEXT,
        "drop_months": pa.int32(), "drop_micros": _LONG, "drop_text": _TEXT,
    }
)  # fmt: skip

ORPHANS_ONLY = "frees bytes by orphan removal only"
"""Declared by a format that leaves files to orphan removal when it expires versions; promises then take longer."""

SECTIONS = ("columns", "partitions", "branches", "transactions", "files")
Section: TypeAlias = pa.Table | Parquet
"""Rows at hand, or in the Parquet files of the inventory: there only those of the scan that `tables` names count."""


@dataclass(frozen=True, slots=True)
class World:
    """The information schema of one scan. `tables` carries labels, locks and errors, and `scan_id` where the other
    sections are files.

    An ancestor's `transactions.position` is less than its descendants'. `orphans` are files that the caller's listing
    found and no dataset references, with the area's owner; `listed_at` is that listing's time by the store's clock.
    `former` are owners that are no datasets any more, in the columns of `tables`. `errors` are the reasons why nothing
    is an orphan for now; `unread` names who may reference files of others unknown to anybody, as `unread:NAME`: while
    there is one, no file of a dataset goes (spec §7).
    `declared_days` are the days of partitions as people declared them, in place of those that the scan chose.
    `chunks` are those of hot tables as the registry has them, with the ages at which their tables' files let them go:
    `shut` says why the gate to the lake is, `people` who holds rows of persons that nobody has traced there.
    """

    tables: pa.Table
    columns: Section
    partitions: Section
    branches: Section
    transactions: Section
    files: Section
    orphans: pa.Table | None = None
    listed_at: datetime | None = None
    errors: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    former: pa.Table | None = None
    declared_days: pa.Table = field(default_factory=DAYS.empty_table)
    chunks: pa.Table = field(default_factory=CHUNKS.empty_table)

    def only(self, table_ids: Iterable[str]) -> World:
        """The same, with the objects of some datasets. Sections stay as they are: `tables` says what counts of them."""
        wanted = pa.array(sorted(table_ids), _TEXT)
        return replace(
            self,
            tables=_some(self.tables, wanted),
            orphans=None if self.orphans is None else _some(self.orphans, wanted),
            former=None if self.former is None else _some(self.former, wanted),
            declared_days=_some(self.declared_days, wanted),
            chunks=_some(self.chunks, wanted),
        )


@dataclass(frozen=True, slots=True)
class Orders:
    """What is ordered: the open marks, and the unmarks and holds that were not released.

    `marked_days` are the days that marked partitions covered when they were marked: a sweep's own commit takes them out
    of `partitions`.
    """

    marks: pa.Table = field(default_factory=MARKS.empty_table)
    unmarks: pa.Table = field(default_factory=UNMARKS.empty_table)
    holds: pa.Table = field(default_factory=HOLDS.empty_table)
    marked_days: pa.Table = field(default_factory=DAYS.empty_table)

    @classmethod
    def of(
        cls,
        marks: Iterable[Sequence[object]] = (),
        unmarks: Iterable[Sequence[object]] = (),
        holds: Iterable[Sequence[object]] = (),
        marked_days: Iterable[Sequence[object]] = (),
    ) -> Orders:
        """From rows in the order of the columns."""
        return cls(
            table_of(marks, MARKS), table_of(unmarks, UNMARKS), table_of(holds, HOLDS),
            table_of(marked_days, DAYS),
        )  # fmt: skip

    def only(self, table_ids: Iterable[str]) -> Orders:
        """Those on some datasets, and every hold: one on a cold table keeps the chunks of the hot one, too."""
        wanted = pa.array(sorted(table_ids), _TEXT)
        return Orders(
            _some(self.marks, wanted), _some(self.unmarks, wanted), self.holds, _some(self.marked_days, wanted)
        )


def _some(rows: pa.Table, table_ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["table_id"], table_ids))
