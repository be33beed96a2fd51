"""What an object of storage is made of, for whoever looks for a value in it: cells, bytes, and what could not be read.

All of an object comes out in pieces, none of them larger than a few dozen MiB, and what stands in none of them is said
by a `CannotTell`: an object without one has been read to its last byte that can hold a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Literal

import pyarrow as pa

How = Literal["row", "bound", "path", "bytes"]
COLUMN_NAMES = "names of columns"
"""The place of cells that name the columns of the object, in order."""
Open = Callable[[], BinaryIO]
"""Opens an object for reading from its start; what it gives can seek."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Values that stand at one place of an object: strings, binaries, integers, decimals, dates. Nulls are possible."""

    where: str
    """The place, in words and without any value: "column email", "bound of column email", "key-value footer"."""
    how: How
    """What the values are there: whole values of rows, bounds of them, parts of a path, or else bytes."""
    values: pa.Array
    """Never nested and no dictionary: structs, lists and maps are flattened (their path is in `where`)."""
    cut: int | None = None
    """Values of so many characters (bytes in binaries) or more may be prefixes of longer ones; None: all are whole."""
    raised: bool = False
    """Upper bounds: where one was cut, its last character may have been raised by one."""
    describes: str | pa.Array | None = None
    """The data file that the bounds are of, as it is named there: one for all, or one per value (strings)."""

    def described_by(self, row: int) -> str | None:
        """The data file that the value in this row is a bound of."""
        if isinstance(self.describes, pa.Array):
            file: str | None = self.describes[row].as_py()
            return file
        return self.describes


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of no known structure. The chunks of one `where` follow each other without overlap or gap.

    A value can lie across two of them: the searcher keeps the end of the last one.
    """

    where: str
    data: bytes
    offset: int
    """Where the chunk stands in what `where` names: the object itself, or what was unpacked from it."""


class Unsearched(StrEnum):
    """Why something cannot be told, where the answer hangs on why: a code of these, and its text."""

    NO_FORMAT = "its format is not known"
    GOES_ON = "records of it go on in other pages, which are searched, but not together with them"
    TOO_SHORT = "values of fewer than four characters are not looked for inside of other text"


@dataclass(frozen=True, slots=True)
class CannotTell:
    """Something of the object was not read, or cannot be searched. The reason holds no value and no path."""

    because: str


Piece = Cells | Raw | CannotTell
Pieces = Iterator[Piece]
