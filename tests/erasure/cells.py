"""The cells: 16 variants of tables, 17 kinds of place, four types of value. What is planted where, or why it cannot be.

A cell that exists says in which files its value stands: a pattern for their paths below the table's folder, and the
layers in which `tests.oracle.bytes_by_hand` sees it there. The search has to name the same files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.erasure.people import TYPES

PLACES = (
    "data",
    "delete file",
    "vector",
    "old version",
    "branch",
    "tag",
    "manifest bound",
    "partition summary",
    "statistics",
    "partition path",
    "log",
    "checkpoint",
    "change data",
    "archive",
    "orphan",
    "staged",
    "metadata property",
)


@dataclass(frozen=True, slots=True)
class Planted:
    """Files that hold the value, and what the search has to call one of them.

    `cut` is the length that texts are cut to where a bound is all that there is, `gone` says that the file that it
    describes is not there any more, and `by` is part of the name of what references the file.
    """

    what: str
    files: re.Pattern[str]
    layers: frozenset[str]
    role: frozenset[str]
    how: str
    by: str = ""
    cut: int | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Cannot:
    reason: str


Cell = Planted | Cannot


def planted(
    what: str, files: str, layers: str, called: str, *, by: str = "", cut: int | None = None, gone: bool = False
) -> Planted:
    """`layers` are words; `called` is roles and the way of finding, as in `data row` or `metadata|log bytes`."""
    roles, _, how = called.rpartition(" ")
    return Planted(what, re.compile(files), frozenset(layers.split()), frozenset(roles.split("|")), how, by, cut, gone)


@dataclass(frozen=True, slots=True)
class Variant:
    """A table of a lake. `cells` has a line for each place; `but` is where types differ."""

    format: str
    name: str
    title: str
    cells: Mapping[str, Cell]
    but: Mapping[tuple[str, str], Cell]
    binary_uuid: bool = False
    """The UUID is kept as 16 bytes, not as text."""
    untold: frozenset[str] = frozenset()
    """Why a search for somebody who was never there ends as B and not as A: what this format cannot tell."""

    @property
    def id(self) -> str:
        return f"{self.format}-{self.name}"

    def cell(self, place: str, type_: str) -> Cell:
        return self.but.get((place, type_), self.cells[place])

    def planted(self, place: str) -> dict[str, Planted]:
        """The types that this place of the variant can hold, with their cells."""
        found = {type_: self.cell(place, type_) for type_ in TYPES}
        return {type_: cell for type_, cell in found.items() if isinstance(cell, Planted)}
