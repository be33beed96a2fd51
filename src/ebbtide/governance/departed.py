"""Who left and is still in a table: counted per place, set-based (spec §3, "Promises").

Whoever has a `left_at` must be gone within the promise: by themselves where partitions age out, by an erasure request
elsewhere. Ids are hashed with a salt of the run before anything is shuffled, so no plan, log or spill holds one in the
clear; only what is to be filed comes to the driver's memory (spec §4).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from ebbtide.config.policies import PolicySet
from ebbtide.config.subjects import IdentityColumn, Subject
from ebbtide.errors import InputError, UnreadableError
from ebbtide.governance.carriers import INSIDE, Carriers
from ebbtide.governance.reading import UnreadPlace, column_name, fault_of, rows_of, together
from ebbtide.model.durations import Duration, add, as_interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ebbtide.model.dataset import Catalog
    from ebbtide.plan.world import World

ERASURE_TAKES = Duration(28, "d")
"""From the end of the notice to the last byte (spec §4): a request is filed early enough for that."""


@dataclass(frozen=True, slots=True)
class DepartedStanding:
    """How many people who left are still in a place, and how many of them should be gone by now."""

    place: IdentityColumn
    how: str
    ages_out: bool
    departed: int
    overdue: int
    earliest_due: date | None


@dataclass(frozen=True, slots=True)
class Leaver:
    """Somebody for whom a request is needed. It never shows who."""

    value: str
    due_at: datetime

    def __repr__(self) -> str:
        return f"Leaver(<hidden>, due_at={self.due_at:%Y-%m-%d})"


class Departed:
    """The people of one subject who left, against the places that may still have them. `departed` makes it."""

    def __init__(
        self,
        spark: SparkSession,
        users: DataFrame,
        subject: Subject,
        gone_within: Duration,
        now: datetime,
    ) -> None:
        from pyspark.sql import functions as F

        from ebbtide.governance.durations import add_to_day, add_to_instant

        assert subject.key
        assert subject.left_at
        self.spark, self.subject, self.gone_within = spark, subject, gone_within
        self._salt = secrets.token_hex(16)
        key, left_at = (F.col(column_name(users, place.column)) for place in (subject.key, subject.left_at))
        kind = users.select(left_at).schema.fields[0].dataType.simpleString()
        if kind not in ("date", "timestamp", "timestamp_ntz"):
            raise InputError(
                f"{subject.left_at} is a {kind}", where=subject.where, hint="left_at is a date or a timestamp"
            )
        is_day = kind == "date"
        moment = F.lit(now.astimezone(UTC).date()) if is_day else F.lit(now)
        horizon = add(add(now, subject.notice_before), ERASURE_TAKES)
        left_at = left_at if is_day else left_at.cast("timestamp")
        self._people = users.where(key.isNotNull()).select(
            self._hash(key).alias("who"), key.cast("string").alias("value"), left_at.alias("left_at")
        )
        # Somebody with several rows is here while one of them says so.
        by_person = self._people.groupBy("who").agg(
            F.bool_or(F.col("left_at").isNull() | (F.col("left_at") > moment)).alias("here"),
            F.max("left_at").alias("left_at"),
        )
        due = add_to_day(F.col("left_at"), gone_within) if is_day else add_to_instant(F.col("left_at"), gone_within)
        self._standing = by_person.select("who", "here", due.alias("due"))
        self._left = self._standing.where(~F.col("here")).select(
            "who",
            "due",
            (F.col("due") < moment).alias("overdue"),
            (F.col("due") <= (F.lit(horizon.date()) if is_day else F.lit(horizon))).alias("urgent"),
        )
        self._found: DataFrame | None = None

    def look(
        self, catalogs: Mapping[str, Catalog], carriers: Carriers, ages_out: Collection[str]
    ) -> tuple[list[DepartedStanding], list[UnreadPlace]]:
        """Count in every place, in one job."""
        from pyspark.sql import functions as F

        parts: dict[str, DataFrame] = {}
        unread = list(carriers.unread)
        for place, how in carriers.columns.items():
            if how == INSIDE:
                unread.append(UnreadPlace(str(place), "it lies in a list or a map", failed=False))
                continue
            try:
                rows = rows_of(self.spark, catalogs, place.table_id)
                column = F.col(column_name(rows, place.column))
                here = rows.where(column.isNotNull()).select(self._hash(column).alias("who")).distinct()
            except Exception as error:
                unread.append(UnreadPlace(str(place), fault_of(error)))
                continue
            implied = F.lit(place.table_id in ages_out)
            parts[str(place)] = here.select("who", F.lit(str(place)).alias("place"), implied.alias("ages_out"))
        try:
            counted, broken = together(parts, self._count)
        except Exception as error:  # every place can be read, so it is the users table that cannot
            raise UnreadableError(str(self.subject.left_at), fault_of(error), hint="`ebbtide scan` says more") from None
        by_place = {row["place"]: row for row in counted or []}
        standings = [
            _standing(place, how, place.table_id in ages_out, by_place.get(str(place)))
            for place, how in carriers.columns.items()
            if str(place) in parts and str(place) not in {one.place for one in broken}
        ]
        return standings, sorted([*unread, *broken])

    def _count(self, places: DataFrame) -> list[Any]:
        from pyspark.sql import functions as F

        self.close()
        found = places.join(self._left, "who").persist()
        self._found = found
        counts = (F.count("who"), F.sum(F.col("overdue").cast("long")), F.min(F.to_date("due")))
        named = [count.alias(name) for count, name in zip(counts, ("departed", "overdue", "due"), strict=True)]
        return found.groupBy("place").agg(*named).collect()

    def to_file(self, known: Collection[str]) -> list[Leaver]:
        """Those who need a request: nothing takes them away by itself, or what should have did not. Not the `known`."""
        from pyspark.sql import functions as F

        if self._found is None:
            return []
        needed = (F.col("urgent") & ~F.col("ages_out")) | F.col("overdue")
        hashes = {self._hash_text(value) for value in known}
        rows = self._found.where(needed).groupBy("who").agg(F.min("due").alias("due")).collect()
        due = {row["who"]: row["due"] for row in rows if row["who"] not in hashes}
        if not due:
            return []
        named = self._people.join(F.broadcast(self._frame(due)), "who", "left_semi").select("who", "value").collect()
        values = {row["who"]: row["value"] for row in named}
        return sorted(
            (Leaver(values[who], _instant(due[who])) for who in due if who in values), key=lambda one: one.due_at
        )

    def returned(self, known: Collection[str]) -> set[str]:
        """Those of the `known` who are here again: `left_at` is NULL, or lies ahead."""
        from pyspark.sql import functions as F

        if not known:
            return set()
        values = {self._hash_text(value): value for value in known}
        asked = self._standing.where("here").join(F.broadcast(self._frame(values)), "who", "left_semi")
        return {values[row["who"]] for row in asked.select("who").collect()}

    def close(self) -> None:
        """Give back what was kept."""
        if self._found is not None:
            self._found.unpersist()
            self._found = None

    def _frame(self, hashes: Collection[str]) -> DataFrame:
        return self.spark.createDataFrame([(one,) for one in sorted(hashes)], "who string")

    def _hash(self, column: Column) -> Column:
        from pyspark.sql import functions as F

        return F.sha2(F.concat(F.lit(self._salt), column.cast("string")), 256)

    def _hash_text(self, value: str) -> str:
        return hashlib.sha256((self._salt + value).encode()).hexdigest()


@contextmanager
def departed(
    spark: SparkSession, catalogs: Mapping[str, Catalog], subject: Subject, gone_within: Duration, *, now: datetime
) -> Iterator[Departed]:
    """The people of one subject who left. A users table that cannot be read is an error: nobody is told from it."""
    assert subject.key
    try:
        users = rows_of(spark, catalogs, subject.key.table_id)
    except Exception as error:
        raise UnreadableError(subject.key.table_id, fault_of(error), hint="`ebbtide scan` says more") from None
    found = Departed(spark, users, subject, gone_within, now)
    try:
        yield found
    finally:
        found.close()


def _standing(place: IdentityColumn, how: str, ages_out: bool, row: Any) -> DepartedStanding:
    if row is None:
        return DepartedStanding(place, how, ages_out, 0, 0, None)
    return DepartedStanding(place, how, ages_out, row["departed"], row["overdue"], row["due"])


def _instant(due: date) -> datetime:
    """The first moment of a day; an instant as it is."""
    if isinstance(due, datetime):
        return due.replace(tzinfo=UTC) if due.tzinfo is None else due.astimezone(UTC)
    return datetime.combine(due, time.min, UTC)


def promised(subject: Subject, policies: PolicySet, tables: World) -> Duration:
    """How long after leaving: what the subject says, else the strictest promise that selects one of its tables."""
    from ebbtide.plan.sections import selected_by

    if subject.gone_within is not None:
        return subject.gone_within
    numbers = {number for _, number in selected_by("promises", policies, tables)}
    found = [promise.gone_within for n, promise in enumerate(policies.promises) if n in numbers]
    if not found:
        raise InputError(
            f"nothing says when people who left must be gone ({subject.name})",
            where=subject.where,
            hint="write `gone_within: 90d` here, or a promise that selects its tables",
        )
    return min(found, key=as_interval)
