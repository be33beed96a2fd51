"""The people of a batch, as the rows of one dataset show them: what a format erases by (`formats.erasing.People`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ebbtide.config.subjects import Identities
from ebbtide.erasure.matching import all_keys, column_keys
from ebbtide.ledger.commitment import Identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY, _KEYS = "__ebbtide_key", "__ebbtide_keys_"


class PeopleBatch:
    """Everybody in a batch, for one dataset. `columns` are its columns that carry identities, with their names.

    Rows of somebody go whole; or, where `redact` names columns, stay with these replaced: by a text, or by NULL.
    """

    def __init__(
        self,
        spark: SparkSession,
        people: Iterable[Iterable[Identifier]],
        columns: Mapping[str, tuple[str, ...]],
        identities: Identities,
        redact: Mapping[str, str | None] | None = None,
    ) -> None:
        self._spark, self._by_path, self._identities = spark, columns, identities
        self._redact = dict(redact or {})
        self._known = sorted({(one.type, one.value) for person in people for one in person})

    @property
    def columns(self) -> Collection[str]:
        return tuple(self._by_path)

    @property
    def redacts(self) -> bool:
        return bool(self._redact)

    def among(self, rows: DataFrame) -> DataFrame:
        return self._chosen(rows, "")

    def without(self, rows: DataFrame) -> DataFrame:
        others = self._chosen(rows, "NOT ")
        if not self._redact:
            return others
        from pyspark.sql import functions as F

        from ebbtide.spark.session import quote

        theirs = self.among(rows)
        types = {field.name: field.dataType for field in rows.schema.fields}
        redacted = [
            F.lit(self._redact[name]).cast(types[name]).alias(name) if name in self._redact else F.col(quote(name))
            for name in rows.columns
        ]
        return others.unionByName(theirs.select(*redacted))

    def may_lie(self, column: str, low: object, high: object) -> bool:
        if column not in self._by_path or low is None or high is None:
            return True
        for name in self._by_path[column]:
            values = self._in_order(name, low)
            if values is None:
                return True
            try:
                at = bisect_left(values, low)
                if at < len(values) and values[at] <= high:
                    return True
            except TypeError:
                return True
        return False

    def _in_order(self, name: str, like: object) -> list[Any] | None:
        """Their values of an identity, in the type of a bound; None where values that are not equal may be the same."""
        if self._identities.subjects[name].match != "exact":
            return None
        try:
            return self._sorted[name, type(like)]
        except KeyError:
            made = [_typed(value, like) for type_, value in self._known if type_ == name]
            found = None if any(value is None for value in made) else sorted(made)
            self._sorted[name, type(like)] = found
            return found

    @cached_property
    def _sorted(self) -> dict[tuple[str, type], list[Any] | None]:
        return {}

    @cached_property
    def _needles(self) -> DataFrame:
        from ebbtide.spark.people import people_frame

        return people_frame(self._spark, [(key,) for key in sorted(all_keys(self._known))], (_KEY,))

    def _chosen(self, rows: DataFrame, not_: str) -> DataFrame:
        """Rows that are theirs, or that are not. A value is compared as a row of a table in memory, never in a text."""
        from pyspark.sql import functions as F

        found = [
            keys
            for path, names in self._by_path.items()
            for name in names
            if (keys := column_keys(rows, path, name, self._identities.subjects[name].match)) is not None
        ]
        if not found:
            return rows if not_ else rows.limit(0)
        with_keys = rows.select("*", *(keys.alias(f"{_KEYS}{n}") for n, (keys, _) in enumerate(found)))
        theirs = " OR ".join(_is_theirs(n, many=many) for n, (_, many) in enumerate(found))
        asked = f"SELECT * FROM {{rows}} WHERE {not_}({theirs})"  # noqa: S608  # names of ours alone
        chosen = self._spark.sql(asked, rows=with_keys, needles=F.broadcast(self._needles))
        return chosen.drop(*(f"{_KEYS}{n}" for n in range(len(found))))


def _is_theirs(n: int, *, many: bool) -> str:
    """Whether the n-th key of a row, or one of its keys, is one of the people's."""
    same = f"array_contains({_KEYS}{n}, {_KEY})" if many else f"{_KEYS}{n} = {_KEY}"
    return f"EXISTS (SELECT 1 FROM {{needles}} WHERE {same})"  # noqa: S608  # names of ours alone


def _typed(value: str, like: object) -> Any:
    """A canonical value as Python has values of a bound's type; None where that has no order of its own."""
    try:
        if isinstance(like, bool):
            return None
        if isinstance(like, int):
            return int(value)
        if isinstance(like, Decimal):
            return Decimal(value)
        if isinstance(like, UUID):
            return UUID(value)
        if isinstance(like, date):
            return date.fromisoformat(value)
        return value if type(like) is str else None
    except (ValueError, ArithmeticError):
        return None
