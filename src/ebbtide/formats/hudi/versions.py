"""Rows of every retained version of a Hudi table.

A copy-on-write table is its base files, which are Parquet with all columns: each is read once. What is merged on read
only Hudi's reader can tell, version by version.
"""

from __future__ import annotations

from collections.abc import Collection

from ebbtide.formats.hudi.timeline import Timeline, read_timeline
from ebbtide.formats.versions import PART, VersionLook, VersionRows, decoded
from ebbtide.formats.warehouse import place_of
from ebbtide.model.paths import normalise

_OWN = "_hoodie_"
_DROPPED = "hoodie.datasource.write.drop.partition.columns"


class _HudiVersions:
    def stored(self, look: VersionLook, /) -> tuple[VersionRows, ...]:
        retained, timeline = look.retained, read_timeline(look.retained.found, look.spark)
        held = {path: bits & retained.readable for path, bits in retained.data.items() if bits & retained.readable}
        if not _is_read_as_files(timeline, held):
            return tuple(_version(look, position) for position in retained.positions(retained.readable))
        return (_files(look, held),) if held else ()

    def visible(self, _look: VersionLook, _parts: Collection[str], /) -> tuple[VersionRows, ...]:
        """No file hides rows of a base file; what a log does is merged already."""
        return ()


def _is_read_as_files(timeline: Timeline, paths: Collection[str]) -> bool:
    dropped = timeline.properties.get(_DROPPED, "false").lower() == "true"
    return not timeline.merge_on_read and not dropped and all(path.endswith(".parquet") for path in paths)


def _files(look: VersionLook, held: dict[str, int]) -> VersionRows:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    from ebbtide.spark.frames import escaped

    place = place_of(look.retained.found.id, look.catalog)
    table = look.spark.read.format("hudi").load(place)
    columns = StructType([column for column in table.schema if not column.name.startswith(_OWN)])
    inside = normalise(place)
    named = [escaped(place + path.removeprefix(inside)) for path in sorted(held)]
    frame = look.spark.read.schema(columns).parquet(*named)
    return VersionRows(frame.withColumn(PART, F.input_file_name()), held, decoded)


def _version(look: VersionLook, position: int) -> VersionRows:
    from pyspark.sql import functions as F

    id_, place = look.retained.ids[position], place_of(look.retained.found.id, look.catalog)
    frame = look.spark.read.format("hudi").option("as.of.instant", id_).load(place)
    kept = frame.drop(*(name for name in frame.columns if name.startswith(_OWN)))
    return VersionRows(kept.withColumn(PART, F.lit(id_)), {id_: 1 << position}, str)


VERSIONS = _HudiVersions()
