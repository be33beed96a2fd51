"""The rows of every retained version of a dataset, each data file read once however many versions hold it.

A format's side of it is the module `versions` in its folder with `VERSIONS`: it hands out DataFrames whose column
`PART` says which part of the dataset a row is of (a data file, or a whole version where only the format's reader can
merge one), and says of each part which versions hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from ebbtide.formats.erasing import People
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = "__ebbtide_part"


@dataclass(frozen=True, slots=True)
class Retained:
    """What a reading knows of a dataset's versions. Bit n of every number is the n-th of `ids`.

    `readable` are the versions that can be read, `heads` the bits of branches and tags by `branch:x` and `tag:y`,
    `data` the versions that hold each data file, by its normalised path, and `hiding` those in which something beside
    data files says that rows are deleted.
    """

    found: TableHandle
    ids: Sequence[str]
    readable: int
    heads: Mapping[str, int]
    data: Mapping[str, int]
    hiding: int

    def positions(self, bits: int) -> Iterator[int]:
        """The versions of a number, oldest first."""
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def covering(self) -> Iterator[tuple[int, set[str]]]:
        """Versions that hold all data files between them, each with the files that none before it had; heads first."""
        left = {path for path, bits in self.data.items() if bits & self.readable}
        heads = {position for bits in self.heads.values() for position in self.positions(bits & self.readable)}
        newest = [*sorted(heads, reverse=True), *range(len(self.ids) - 1, -1, -1)]
        for position in newest:
            if not left:
                return
            if self.readable >> position & 1:
                new = {path for path in left if self.data[path] >> position & 1}
                if new:
                    left -= new
                    yield position, new


@dataclass(frozen=True, slots=True)
class VersionRows:
    """Rows to look through once. `held` says which versions hold a part, by what `part_of` makes of its name."""

    frame: DataFrame
    held: Mapping[str, int]
    part_of: Callable[[str], str] = field(default=normalise)


def decoded(path: str) -> str:
    """A file as Spark's own readers name it: percent-encoded once."""
    return normalise(unquote(path))


@dataclass(frozen=True, slots=True)
class VersionLook:
    """A dataset that is looked through in a session. What is opened for a frame lives until `until` is closed; `untold`
    is filled with why a version cannot be looked at. Parts that cannot hold any of `people`, as what metadata says of
    their values tells, need not be handed out.
    """

    retained: Retained
    catalog: Catalog
    spark: SparkSession
    until: ExitStack
    untold: dict[str, str] = field(default_factory=dict)
    people: People | None = None
    all_parts: bool = False
    """Read also those that by what metadata says of their values hold nobody."""


class VersionReader(Protocol):
    """A format's side."""

    def stored(self, look: VersionLook, /) -> tuple[VersionRows, ...]:
        """Every part once that may hold somebody. Rows that something beside data files hides are among those of data
        files.
        """
        ...

    def visible(self, look: VersionLook, parts: Collection[str], /) -> tuple[VersionRows, ...]:
        """The same parts as readers of versions see them in which something hides rows of theirs. What is not named by
        `held` is as it is stored.
        """
        ...
