"""Where an identity stands: its own columns, and those that column lineage carries it to (spec §4, "Plan").

Values are compared as text. A hash or a mask changes them, so a column behind one is listed and not looked at; so is
one of a table that nobody could read. What a model changed in another way cannot be told from lineage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebbtide.config.subjects import IdentityColumn, Subject
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.governance.reading import UnreadPlace
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.graph import Graph
from ebbtide.lineage.labelled import Labelled
from ebbtide.lineage.values import WHOLE, ColumnRef

INSIDE = "inside"
"""How a place is known that lies in a list or a map of a column."""
_FORMER = "its catalog lists it no more: a search reads what is left of it"


@dataclass(frozen=True, slots=True)
class Carriers:
    """The columns to look at, each with how it is known, and the places that cannot be looked at. `elsewhere` are
    columns of what no catalog lists: a view through which lineage goes on, or a table that somebody else keeps.
    """

    columns: Mapping[IdentityColumn, str]
    unread: tuple[UnreadPlace, ...]
    elsewhere: tuple[str, ...] = ()


def carriers(subject: Subject, labelled: Labelled, inventory: Inventory) -> Carriers:
    """Follow direct lineage from the subject's columns. A column that is not there is an `InputError`, but for one of a
    table that was dropped: lineage goes on from it, and everybody else's tables are looked at.
    """
    graph = labelled.lineage.graph
    there, former = _scanned(inventory), inventory.former_names
    declared = subject.in_lake(there)
    starts = [number for place in declared for number in _numbers(place, subject, graph, there, former)]
    plain = _reached(graph, starts, graph.is_direct & ~graph.is_masking)
    every = _reached(graph, starts, graph.is_direct)
    columns: dict[IdentityColumn, str] = {}
    dropped = {str(place) for place in declared if place.table_id in former}
    unread = [UnreadPlace(place, _FORMER, failed=False) for place in sorted(dropped)]
    elsewhere: list[str] = []
    for number in sorted(every, key=lambda n: graph.columns[n]):
        ref = graph.columns[number]
        entry = inventory.current.entries.get(ref.table_id)
        if ref.table_id in former:
            unread += [] if str(ref) in dropped else [UnreadPlace(str(ref), _FORMER, failed=False)]
        elif entry is None:
            elsewhere.append(str(ref))
        elif entry.error is not None:
            unread.append(UnreadPlace(str(ref), "the last scan could not read the table"))
        elif ref.column == WHOLE:
            unread.append(UnreadPlace(ref.table_id, "its columns are not known to lineage", failed=False))
        elif ref.column not in there[ref.table_id]:
            unread.append(UnreadPlace(str(ref), "lineage names it, and the table has no such column", failed=False))
        elif number not in plain:
            unread.append(
                UnreadPlace(str(ref), "a hash or a mask lies between: its values cannot be compared", failed=False)
            )
        else:
            columns[IdentityColumn(ref.table_id, ref.column)] = "own" if number in starts else "lineage"
    own = set(declared)
    for place in [place for place, how in columns.items() if how == "own" and place not in own]:
        del columns[place]  # one around: lineage goes on from it, and what is looked for is inside
    inside = (place for place in declared if (known := there.get(place.table_id)) and place.column not in known)
    columns |= dict.fromkeys(inside, INSIDE)
    return Carriers(columns, tuple(unread), tuple(elsewhere))


def enclosing(column: str, known: Collection[str]) -> str | None:
    """The column itself, or the nearest one around it; None where the table has neither."""
    while column not in known:
        column, dot, _ = column.rpartition(".")
        if not dot:
            return None
    return column


def _scanned(inventory: Inventory) -> dict[str, set[str]]:
    """The columns that each table had at the last scan: lineage and labels may name others."""
    found: dict[str, set[str]] = {table_id: set() for table_id in inventory.current.entries}
    rows = inventory.table("columns")
    for table_id, name in zip(rows["table_id"].to_pylist(), rows["column_id"].to_pylist(), strict=True):
        found[table_id].add(name)
    return found


def _numbers(
    place: IdentityColumn, subject: Subject, graph: Graph, there: Mapping[str, set[str]], former: Collection[str]
) -> list[int]:
    """The column, and those around it: who takes a struct or a list with the identity in it, takes the identity. What
    lineage knows of a table that was dropped may be none of them.
    """
    if place.table_id not in there and place.table_id not in former:
        raise InputError(
            f"{subject.name}: no catalog has {place.table_id}",
            where=subject.where,
            hint=nearest(place.table_id, list(there)),
        )
    known = there.get(place.table_id, set())
    column = enclosing(place.column, known) if known else place.column
    found: list[int] = []
    while column:
        number = graph.numbers.get(ColumnRef(place.table_id, column))
        found += [] if number is None else [number]
        column = column.rpartition(".")[0]
    if not found and place.table_id in there:
        raise InputError(
            f"{subject.name}: {place.table_id} has no column {place.column!r}",
            where=subject.where,
            hint=nearest(place.column, list(known)),
        )
    return found


def _reached(graph: Graph, starts: list[int], chosen: npt.NDArray[np.bool_]) -> set[int]:
    """The columns that can be reached along the chosen edges, the starts included."""
    after: dict[int, list[int]] = {}
    sources, targets = graph.sources[chosen].tolist(), graph.targets[chosen].tolist()
    for source, target in zip(sources, targets, strict=True):
        after.setdefault(source, []).append(target)
    found, queue = set(starts), list(starts)
    for node in queue:
        fresh = [target for target in after.get(node, ()) if target not in found]
        found.update(fresh)
        queue += fresh
    return found
