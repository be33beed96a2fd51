"""Rows of every retained version of a Paimon table, by its own reader.

Where files hide nothing of each other each is read with a version that has it, and rows say their file. What has a key
or deletion vectors is merged by the reader, version by version. A version is read from the branch whose folder has its
snapshot; one that only a tag keeps, by the tag.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.paimon.appended import read_branch
from ebbtide.formats.paimon.java import open_library
from ebbtide.formats.paimon.lines import BranchLines, parse_lines
from ebbtide.formats.versions import PART, Retained, VersionLook, VersionRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "__paimon_file_path"


class _Paimon:
    def stored(self, look: VersionLook, /) -> tuple[VersionRows, ...]:
        retained = look.retained
        answer = open_library(retained.found, look.catalog, look.spark).history()
        merges = bool(json.loads(answer["schema"])["primaryKeys"]) or bool(retained.hiding)
        readers = _readers(parse_lines(str(retained.found.id), answer["branches"]))
        made: list[VersionRows] = []
        for position, files in _wanted(retained, merges=merges):
            if (reader := readers.get(retained.ids[position])) is None:
                look.untold[retained.ids[position]] = "no branch and no tag has its snapshot any more"
                continue
            made.append(_stored(retained, read_branch(retained.found, look.spark, *reader), position, files))
        return tuple(made)

    def visible(self, _look: VersionLook, _parts: Collection[str], /) -> tuple[VersionRows, ...]:
        """What hides rows is merged already."""
        return ()


def _wanted(retained: Retained, *, merges: bool) -> Iterator[tuple[int, set[str] | None]]:
    """The versions to read, each with the files that are counted there; None where rows of files are merged."""
    if merges:
        yield from ((position, None) for position in retained.positions(retained.readable))
    else:
        yield from retained.covering()


def _stored(retained: Retained, frame: DataFrame, position: int, files: set[str] | None) -> VersionRows:
    from pyspark.sql import functions as F

    if files is None:
        id_ = retained.ids[position]
        return VersionRows(frame.withColumn(PART, F.lit(id_)), {id_: 1 << position}, str)
    held = {path: retained.data[path] & retained.readable for path in files}
    return VersionRows(frame.withColumn(PART, F.col(_FILE)), held)


def _readers(lines: BranchLines) -> dict[str, tuple[str, Mapping[str, str]]]:
    """For each version a branch whose folder has it, and how to ask for it there."""
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for line in lines.lines:
        for name, commit in line.tags.items():
            found.setdefault(lines.id_of_commit(line.name, commit), (line.name, {"scan.tag-name": name}))
    for line in lines.lines:
        for number in line.snapshots:
            found[lines.id_of(line.name, number)] = (line.name, {"scan.snapshot-id": str(number)})
    return found


VERSIONS = _Paimon()
