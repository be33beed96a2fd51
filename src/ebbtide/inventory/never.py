"""What is never an orphan, whoever references it (formats.md, "Never an orphan"; hazards 7, 9).

A file is a candidate only where its owner's format writes such files: whatever else lies there was put there by someone
else, and stays. A folder that a person condemned goes whole, but for what nobody may touch.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.inventory.areas import Kind

# A segment that begins with `_` or `.`, unless it is a partition (`_day=1`) or Delta's change data.
_HIDDEN = r"(?s)(?:^|/)(?!_change_data/)[_.][^=/]*(?:/|$)"
_DATABASE = r"(?i)\.(?:db|sqlite3?|duckdb|mv\.db)(?:-wal|-shm|-journal)?$|(?:^|/)(?:metastore_db/|derby\.log$)"
_OURS = r"(?:^|/)\.ebbtide/"
_METADATA = r"^metadata/(?:v(\d+)|(\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?$"
_WRITES = {
    "iceberg": r"(?s)^data/.*\.(?:parquet|orc|avro|puffin)$|^metadata/[^/]*\.(?:avro|stats|puffin|parquet)$",
    "delta": r"(?s)\.(?:parquet|bin)$",
    "paimon": r"(?s)^(?:manifest|index|statistics)/[^/]+$|(?:^|/)bucket-[^/]+/(?:data|changelog)-[^/]+$",
}
_KEPT = {
    "iceberg": r"(?:^|/)version-hint\.text$",
    "paimon": r"^(?:schema|tag|branch|snapshot|changelog|consumer)/|(?:^|/)(?:EARLIEST|LATEST)$",
}


def candidates(owned: DataFrame) -> DataFrame:
    """The listed files that are orphans if nothing references them. `owned` has each file with its innermost owner."""
    inside = F.expr("substring(path, length(location) + 2)")
    rows = owned.where("exact AND table_id IS NOT NULL").withColumn("inside", inside)
    theirs = F.col("kind").isin(str(Kind.LIVE), str(Kind.FORMER)) & _written() & ~F.col("inside").rlike(_HIDDEN)
    condemned = (F.col("kind") == str(Kind.CONDEMNED)) & (F.col("modified_at") < F.col("before"))
    untouchable = F.col("inside").rlike(_DATABASE) | F.col("path").rlike(_OURS)
    return rows.where((theirs | condemned) & ~untouchable)


def _written() -> Column:
    """Whether the owner's format writes such a file, and does not keep it by name. Hudi's are its own (formats.md)."""
    found = F.lit(False)
    for format_, pattern in _WRITES.items():
        here = F.col("inside").rlike(pattern)
        if format_ == "iceberg":
            here = here | _older_metadata()
        if format_ in _KEPT:
            here = here & ~F.col("inside").rlike(_KEPT[format_])
        found = found | ((F.col("format") == format_) & here)
    return found


def _older_metadata() -> Column:
    """Iceberg's metadata files from before the current one. Where that is not known, none is."""
    found = [F.regexp_extract("inside", _METADATA, n) for n in (1, 2)]
    number = F.coalesce(*(F.when(text != "", text.cast("bigint")) for text in found))
    return F.coalesce(number < F.col("metadata"), F.lit(False))
