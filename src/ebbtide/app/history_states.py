"""What became of each transaction: the state and, verbatim, the two messages of spec §1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ebbtide.model.times import parse_time
from ebbtide.state.values import Mark, MarkState, Unmark
from ebbtide.sweep.values import ELSEWHERE

MARKED = "This transaction has been scheduled for deletion."
SWEPT = "Transaction data has been deleted."
_OF_HISTORY = ("transactions", "versions")
_OPEN = {MarkState.MARKED: "marked", MarkState.WAITING: "waiting", MarkState.SWEEPING: "waiting"}


@dataclass(frozen=True, slots=True)
class States:
    """The states of one dataset's transactions. `alive` are those that files of the inventory still come from, or that
    others carry on.
    """

    marks: Mapping[str, tuple[Mark, ...]]
    pinned: frozenset[str]
    alive: frozenset[str]

    @classmethod
    def of(cls, marks: Iterable[Mark], unmarks: Iterable[Unmark], alive: Iterable[str], now: datetime) -> States:
        by_id: dict[str, list[Mark]] = {}
        for mark in marks:
            if mark.key.target in _OF_HISTORY:
                by_id.setdefault(mark.key.object, []).append(mark)
        pinned = frozenset(pin.object for pin in unmarks if pin.active(now))
        carried = {id_: into for id_, found in by_id.items() if (into := _carried_into(found))}
        return cls(
            {id_: tuple(found) for id_, found in by_id.items()}, pinned, _with_carried(frozenset(alive), carried)
        )

    def of_transaction(self, id_: str, *, expired: bool) -> tuple[str, str | None]:
        """State and message. What is gone is gone, whatever was said of it since; then a person's unmark speaks."""
        marks = self.marks.get(id_, ())
        gone = expired and id_ not in self.alive and any(mark.state is MarkState.SWEPT for mark in marks)
        if id_ in self.pinned and not gone:
            return "unmarked", None
        for mark in marks:
            if mark.is_open:
                return _OPEN[mark.state], MARKED
        if not expired:
            return "live", None
        return ("swept", SWEPT) if gone else ("expired", None)

    def gone(self, listed: Iterable[str]) -> list[dict[str, Any]]:
        """Rows of transactions that were swept and that the format lists no longer, from what their marks remember."""
        there = set(listed)
        rows = []
        for id_, marks in self.marks.items():
            told = [mark.facts for mark in marks if mark.facts and (mark.is_open or mark.state is MarkState.SWEPT)]
            if id_ not in there and told:
                facts = json.loads(told[-1])
                facts["committed_at"] = parse_time(facts["committed_at"])
                facts.setdefault("carried_into", _carried_into(marks))
                rows.append({"transaction_id": id_, "expired": True, "in_views_of": [], **facts})
        return rows


def _carried_into(marks: Iterable[Mark]) -> list[str]:
    """Who had the files of a transaction when it was swept."""
    return sorted({name for mark in marks for name in mark.carried_into})


def _with_carried(alive: frozenset[str], carried: Mapping[str, list[str]]) -> frozenset[str]:
    """With what lives on in a transaction that does. What another dataset has, nobody here can tell: it counts."""
    while more := {id_ for id_, into in carried.items() if id_ not in alive and {*into} & {*alive, ELSEWHERE}}:
        alive |= more
    return alive
