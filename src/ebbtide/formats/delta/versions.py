"""Rows of every retained version of a Delta table, by its own reader of listed files.

The log says which file had which deletion vector in which version: it is walked back from the head, as far as it has no
gap. Each file is read once without its vectors, and one in which somebody was found once more for each vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from ebbtide.formats.delta.actions import DeltaDataFile, Vector
from ebbtide.formats.delta.java import DeltaJavaTable
from ebbtide.formats.delta.read import Replayed, replayed
from ebbtide.formats.delta.replay import runs_of
from ebbtide.formats.versions import PART, Retained, VersionLook, VersionRows, decoded

_Held = dict[str, dict[Vector | None, int]]


class _Delta:
    def stored(self, look: VersionLook, /) -> tuple[VersionRows, ...]:
        retained, table = look.retained, replayed(look.retained.found, look.catalog)
        run = {str(version) for version in runs_of(table.log)[-1]}
        for position in retained.positions(retained.readable):
            if (id_ := retained.ids[position]) not in run:
                look.untold[id_] = "the log has a gap after it"
        held = {path: _any(found) for path, found in _held(table, retained).items()}
        return (_read(look, table, dict.fromkeys(held), held),) if held else ()

    def visible(self, look: VersionLook, parts: Collection[str], /) -> tuple[VersionRows, ...]:
        table, layers = replayed(look.retained.found, look.catalog), list[dict[str, tuple[Vector, int]]]()
        for path, found in _held(table, look.retained).items():
            vectors = [(vector, bits) for vector, bits in found.items() if vector is not None and path in parts]
            for n, each in enumerate(vectors):  # of each file one vector in a frame: rows say the file only
                if n == len(layers):
                    layers.append({})
                layers[n][path] = each
        return tuple(
            _read(
                look, table, {path: vector for path, (vector, _) in layer.items()},
                {path: bits for path, (_, bits) in layer.items()},
            )
            for layer in layers
        )  # fmt: skip


def _any(found: Mapping[Vector | None, int]) -> int:
    """The versions that hold a file, with whatever vector."""
    bits = 0
    for each in found.values():
        bits |= each
    return bits


def _held(table: Replayed, retained: Retained) -> _Held:
    """In which readable versions a file was there, by its vector then: from the head back to a gap of the log."""
    at = {id_: position for position, id_ in enumerate(retained.ids)}
    run = [version for version in runs_of(table.log)[-1] if str(version) in at]
    found: _Held = {}
    if not run:
        return found
    now: dict[str, tuple[DeltaDataFile, int]] = {path: (file, run[-1]) for path, file in table.outcome.live.items()}

    def leave(path: str, first: int) -> None:
        """Going back, the file was not there before `first`."""
        file, last = now.pop(path)
        bits = ((1 << at[str(last)] + 1) - 1) & ~((1 << at[str(first)]) - 1) & retained.readable
        if bits:
            by_vector = found.setdefault(path, {})
            by_vector[file.vector] = by_vector.get(file.vector, 0) | bits

    for version in reversed(run):
        commit = table.commits[version]
        for path, file in commit.adds.items():
            if path in now and (file.data_change or commit.removes):
                leave(path, version)
        now |= {path: (file, version - 1) for path, file in commit.removes.items() if version > run[0]}
    for path in list(now):
        leave(path, run[0])
    return found


def _read(
    look: VersionLook, table: Replayed, files: Mapping[str, Vector | None], held: Mapping[str, int]
) -> VersionRows:
    from pyspark.sql import functions as F

    java = DeltaJavaTable(table.location, look.catalog, look.spark)
    frame = java.rows_of([_add(table, java, path, vector) for path, vector in files.items()])
    return VersionRows(frame.withColumn(PART, F.input_file_name()), held, decoded)


def _add(table: Replayed, java: DeltaJavaTable, path: str, vector: Vector | None) -> Mapping[str, Any]:
    life = table.outcome.data[path]
    said = {
        "path": _spelled(java, path), "partitionValues": dict(life.values), "size": life.bytes or 0,
        "modificationTime": 0, "dataChange": False,
    }  # fmt: skip
    if vector is None:
        return said
    if vector.path is None:
        stands: dict[str, Any] = {"storageType": "i", "pathOrInlineDv": vector.key.removeprefix("i")}
    else:
        offset = vector.end - vector.bytes - _AROUND
        stands = {"storageType": "p", "pathOrInlineDv": _spelled(java, vector.path), "offset": offset}
    return said | {"deletionVector": stands | {"sizeInBytes": vector.bytes, "cardinality": vector.cardinality}}


_AROUND = 8
"""Bytes around a vector in its file: its length, and a checksum."""


def _spelled(java: DeltaJavaTable, path: str) -> str:
    """As the log writes a path that does not lie under the table: percent-encoded once more."""
    return quote(java.spell(path), safe="/:")


VERSIONS = _Delta()
