"""What became of each transaction: the state and, verbatim, the two messages of spec §1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ebbtide.state.values import Mark, MarkState, Unmark

MARKED = "This transaction has been scheduled for deletion."
SWEPT = "Transaction data has been deleted."
_OF_HISTORY = ("transactions", "versions")
_OPEN = {MarkState.MARKED: "marked", MarkState.WAITING: "waiting", MarkState.SWEEPING: "waiting"}


@dataclass(frozen=True, slots=True)
class States:
    """The states of one dataset's transactions. `alive` are those that files of the inventory still come from."""

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
        return cls({id_: tuple(found) for id_, found in by_id.items()}, pinned, frozenset(alive))

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
                facts["committed_at"] = datetime.fromisoformat(facts["committed_at"])
                rows.append({"transaction_id": id_, "carried_into": [], "expired": True, "in_views_of": [], **facts})
        return rows
