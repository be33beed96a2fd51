"""The rows of the planted tables, alike in all formats.

Every table has four columns for what a person is called (`c_…`), one per type of value, and is partitioned by four of
the same types (`p_…`). Rows of nobody's partition lie in lanes: a lane is a data file of its own in a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ebbtide.model.dataset import Catalog
from tests.erasure.cells import PLACES, Variant
from tests.erasure.people import WHO, Values, Who, values_of

PARTITIONS = "p_text, p_bigint, p_decimal, p_uuid"
Row = tuple[object, ...]
Read = Callable[[], DataFrame]


@dataclass(frozen=True, slots=True)
class Made:
    """A variant's table as it was built: where it lies, how SQL and the adapters name it."""

    variant: Variant
    catalog: Catalog
    location: Path
    sql: str
    refs: Mapping[str, Read]
    """The head, branches, tags and versions, by a name: what an erasure must not change for all others."""
    before_erasing: Callable[[], None] = lambda: None
    """What its own writers do before anybody erases from it."""

    def rows(self) -> dict[str, list[str]]:
        """What each of them reads, in an order of its own."""
        return {name: sorted(map(str, read().collect())) for name, read in self.refs.items()}


def reading(spark: SparkSession, from_: str) -> Read:
    """What SQL calls by this name."""
    return lambda: spark.sql(f"SELECT * FROM {from_}")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a variant's people. Whoever is planted has his neighbour beside him."""

    variant: Variant

    @property
    def columns(self) -> str:
        uuid = "BINARY" if self.variant.binary_uuid else "STRING"
        return (
            f"id BIGINT, c_text STRING, c_bigint BIGINT, c_decimal DECIMAL(20,0), c_uuid {uuid}, "
            "p_text STRING, p_bigint BIGINT, p_decimal DECIMAL(20,0), p_uuid STRING"
        )

    def values(self, place: str, who: Who = "person") -> Values:
        return values_of(self.variant.id, place, who)

    def both(self, place: str, *, lane: int = 0) -> list[Row]:
        """The person and the neighbour, in one lane."""
        return [self.one(place, lane=lane), self.one(place, "neighbour", lane=lane)]

    def one(self, place: str, who: Who = "person", *, lane: int = 0) -> Row:
        return (self.id_of(place, who), *self._called(place, who), *_lane(lane))

    def folders(self, place: str, *, shift: int = 0, crowd: int = 1) -> list[Row]:
        """Partitions of their own, with a row that is theirs and some of nobody; ids `shift` beyond those of `one`."""
        return [row for who in WHO[:2] for row in self._folder(place, who, shift, crowd)]

    def _folder(self, place: str, who: Who, shift: int, crowd: int) -> list[Row]:
        values, id_ = self.values(place, who), self.id_of(place, who) + shift
        folder = (values.text, values.bigint, values.decimal, str(values.uuid))
        others = range(2000 + 1000 * id_, 2000 + 1000 * id_ + crowd)
        return [(id_, *self._called(place, who), *folder), *((n, *self._nobody(n), *folder) for n in others)]

    def id_of(self, place: str, who: Who = "person") -> int:
        """Below 1000, as those of nobody are not."""
        return PLACES.index(place) * 10 + WHO.index(who) * 2

    def filler(self, *, lane: int = 0) -> list[Row]:
        return [(id_, *self._nobody(id_), *_lane(lane)) for id_ in range(1000 + 10 * lane, 1004 + 10 * lane)]

    def _nobody(self, id_: int) -> Row:
        """What may be a key is never NULL."""
        name = f"nobody {id_}"
        return (name, id_, Decimal(id_), name.encode() if self.variant.binary_uuid else name)

    def _called(self, place: str, who: Who) -> Row:
        values = self.values(place, who)
        uuid = values.uuid.bytes if self.variant.binary_uuid else str(values.uuid)
        return (values.text, values.bigint, values.decimal, uuid)

    def note(self, place: str, who: Who) -> str:
        """The values as somebody writes them into a property."""
        return " ".join(self.values(place, who).canonical(type_) for type_ in ("text", "bigint", "decimal", "uuid"))

    def write_orphan(self, path: Path) -> None:
        """A file as a writer leaves it that died before its commit."""
        uuid = pa.binary() if self.variant.binary_uuid else pa.string()
        types = {"id": pa.int64(), "c_text": pa.string(), "c_bigint": pa.int64(), "c_decimal": pa.decimal128(20, 0)}
        columns = zip(*(row[:5] for row in self.both("orphan")), strict=True)
        arrays = [pa.array(each, type_) for each, type_ in zip(columns, [*types.values(), uuid], strict=True)]
        pq.write_table(pa.table(arrays, names=[*types, "c_uuid"]), path, compression="zstd")


def _lane(number: int) -> Row:
    return ("-", number, Decimal(0), "-")
