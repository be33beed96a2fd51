"""Files that nothing references (spec §2, `orphans`; formats.md, "Never an orphan").

1. The storage was listed first (`listing.py`), then references were read (`scan.py`).
2. Folders that look like tables or checkpoints are found in the listing, and every file gets its innermost owner.
3. What the owner's format never writes, and what is never an orphan, is left out.
4. One anti-join against the references of all datasets of all formats. A path counts as referenced also when it only
   differs in percent-encoding (hazard 5): that keeps more, never less.

Ages are the plan's to judge: it knows the policy's guard, and the listing's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from ebbtide.inventory.areas import SHAPES, Area, Condemned, Kind, areas
from ebbtide.inventory.current import Current
from ebbtide.inventory.listing import Listing
from ebbtide.inventory.markers import are_views, without_taken
from ebbtide.inventory.never import candidates
from ebbtide.model.dataset import Catalog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_AREA = "location string, kind string, format string, table_id string, metadata long, before timestamp"
_ESCAPED = r"(?:%(?:25)*[0-9A-Fa-f]{2}|[^A-Za-z0-9/._-])+"


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A folder that looks like a table and that no catalog lists. `table_id` was there once, where that is known."""

    path: str
    format: str
    table_id: str | None
    files: int
    bytes: int
    newest: datetime


@dataclass(frozen=True)
class Orphans:
    """`files` has `table_id, folder, path, bytes, modified_at`: candidates, whatever their age. `former` are the owners
    that are no datasets any more, with their formats. `owned` is what was listed, with its owners.
    """

    files: DataFrame
    former: Mapping[str, str]
    owned: DataFrame
    owners: Mapping[str, Area]
    catalogs: Mapping[str, Catalog]

    @cached_property
    def unregistered(self) -> tuple[Unregistered, ...]:
        """What looks like a table and is none that a catalog lists. For people: no plan asks."""
        return _unregistered(self.owned, self.owners, self.catalogs)


def find_orphans(
    spark: SparkSession,
    listing: Listing,
    references: DataFrame,
    current: Current,
    catalogs: Mapping[str, Catalog],
    exclusive: Sequence[str],
    condemned: Sequence[Condemned] = (),
) -> Orphans:
    """`references` are the files of every dataset, read after the listing; `exclusive` are normalised prefixes.

    What a format keeps for a while after its removal is referenced until that time, by the store's clock.
    """
    from pyspark.sql import functions as F

    listed = listing.frame(spark).withColumn("folder", _folder(F.col("path")))
    current = without_taken(listed, references, current, catalogs)
    owners = areas(current, catalogs, exclusive, condemned, _shaped(listed))
    owned = _with_owner(spark, listed, owners)
    found = candidates(owned).withColumn("key", _loosely(F.col("path")))
    known = references.where(referenced_at(listing.listed_at)).select(_loosely(F.col("path")).alias("key"))
    # A store that has no times gives the first moment there is: nothing says how old such a file is (hazard 22).
    age_known = F.col("modified_at") >= F.lit("1971-01-01T00:00:00Z").cast("timestamp")
    orphans = found.join(known, "key", "left_anti").select(
        "table_id", "folder", "path", "bytes", F.when(age_known, F.col("modified_at")).alias("modified_at")
    )
    gone = {
        area.table_id: area.format
        for area in owners.values()
        if area.kind in (Kind.FORMER, Kind.CONDEMNED) and area.table_id and area.table_id not in current.entries
    }
    return Orphans(orphans, gone, owned, owners, catalogs)


def referenced_at(moment: datetime) -> Column:
    """Whether a file of the inventory is one that somebody references, or that its format keeps at that moment."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col("kept_until") >= F.lit(moment), F.lit(True))


def _folder(path: Column) -> Column:
    from pyspark.sql import functions as F

    return F.regexp_extract(path, r"(?s)^(.*)/[^/]*$", 1)


def _loosely(path: Column) -> Column:
    """A path without what percent-encoding changes, however often it was encoded."""
    from pyspark.sql import functions as F

    return F.regexp_replace(path, _ESCAPED, "?")


def _shaped(listed: DataFrame) -> dict[str, str]:
    """The folders that look like a table or a checkpoint; where one looks like two, a table's format wins."""
    from pyspark.sql import functions as F

    looks = F.array(
        *(
            F.struct(F.regexp_extract("path", rf"(?s){pattern}", 1).alias("location"), F.lit(name).alias("shape"))
            for name, pattern in SHAPES.items()
        )
    )
    rows = listed.select(F.explode(F.filter(looks, lambda look: look["location"] != "")).alias("look"))
    found = rows.select("look.*").distinct().collect()
    order = {name: n for n, name in enumerate(SHAPES)}
    return {row.location: row.shape for row in sorted(found, key=lambda row: -order[row.shape])}


def _with_owner(spark: SparkSession, listed: DataFrame, owners: Mapping[str, Area]) -> DataFrame:
    """The listed files with the columns of their innermost owner; those of nobody are left out."""
    from pyspark.sql import functions as F

    from ebbtide.spark.frames import small_frame

    rows = [(a.location, str(a.kind), a.format, a.table_id, a.metadata, a.before) for a in owners.values()]
    known = F.broadcast(small_frame(spark, rows, _AREA))
    parts = F.split("folder", "/")
    # `file:///a/b` has the parts `file:`, ``, ``, `a`, `b`: the store itself is never an owner.
    around = F.transform(F.sequence(F.lit(4), F.size(parts)), lambda n: F.array_join(F.slice(parts, F.lit(1), n), "/"))
    folders = listed.select("folder").distinct().where(F.size(parts) >= 4)
    innermost = (
        folders.select("folder", F.explode(around).alias("location"))
        .join(known, "location")
        .groupBy("folder")
        .agg(F.max_by(F.struct(*known.columns), F.length("location")).alias("owner"))
        .select("folder", "owner.*")
    )
    return listed.join(innermost, "folder")


def _unregistered(
    owned: DataFrame, owners: Mapping[str, Area], catalogs: Mapping[str, Catalog]
) -> tuple[Unregistered, ...]:
    from pyspark.sql import functions as F

    rows = (
        owned.where(F.col("kind") == str(Kind.UNREGISTERED))
        .groupBy("location")
        .agg(
            F.count("*").alias("files"),
            F.sum("bytes").alias("bytes"),
            F.max(F.unix_micros("modified_at")).alias("newest"),
            F.max(F.when(F.col("path").rlike(SHAPES["iceberg"]), F.col("path"))).alias("metadata"),
        )
        .collect()
    )
    named = [row.metadata for row in rows if row.metadata is not None]
    # What cannot be read is reported as what it looks like.
    views = {path for path, is_view in zip(named, are_views(named, catalogs), strict=True) if is_view}
    return tuple(
        Unregistered(
            row.location, owners[row.location].format, owners[row.location].table_id, row.files, row.bytes,
            datetime.fromtimestamp(row.newest / 1e6, UTC),
        )
        for row in sorted(rows, key=lambda row: row.location)
        if row.metadata not in views
    )  # fmt: skip
