"""Which retained versions reference a file, in a form that sets can be computed with.

The transactions of a dataset are put into one order in which every line of history is contiguous. A file that came in
one commit and left in another is then referenced by one run of positions, per line, and the question whether any kept
version still needs a file is a join on ranges.
"""

from __future__ import annotations

import re

from ebbtide.model.dataset import BESIDE, FileRef, Reading, Role
from ebbtide.model.history import DatasetHistory, RefKind

Run = dict[str, int]

_CONTENT = {Role.DATA, Role.DELETE_FILE, Role.DELETION_VECTOR, Role.CHANGE_DATA}
_ONES = re.compile("1+")


class Spans:
    """The positions of one dataset's transactions, and the runs of its files."""

    def __init__(self, reading: Reading, history: DatasetHistory) -> None:
        self._ids = [t.id for t in reading.transactions]
        self.positions = _positions(history)
        self._one_line = len([v for v in history.views if v.ref.kind is RefKind.BRANCH]) == 1 and all(
            history.branch_names().get(id_) for id_ in self._ids
        )
        self._in_place = all(self.positions[id_] == n for n, id_ in enumerate(self._ids))
        self._runs: dict[int, list[Run]] = {}

    def of(self, file: FileRef) -> list[Run]:
        """The runs of positions whose versions reference the file."""
        mask = self._derived(file) if file.versions is None else file.versions
        if mask not in self._runs:  # many files came and went together
            self._runs[mask] = self._to_runs(mask)
        return [*self._runs[mask], {"first": BESIDE, "last": BESIDE}] if file.outlives else self._runs[mask]

    def _derived(self, file: FileRef) -> int:
        """A mask for adapters that give none. Where it cannot be exact it names too many versions, never too few."""
        if file.role not in _CONTENT or not self._ids:
            return 0
        everything = (1 << len(self._ids)) - 1
        if not self._one_line:
            return everything
        at = {id_: n for n, id_ in enumerate(self._ids)}
        first = at.get(file.first_transaction or "", 0)
        removals = [at[id_] for id_ in file.removed_by if id_ in at]
        end = len(self._ids) if file.live or not removals else max(removals)
        return everything & ~((1 << first) - 1) & ((1 << end) - 1)

    def _to_runs(self, mask: int) -> list[Run]:
        if not self._in_place:
            moved = 0
            for n, id_ in enumerate(self._ids):
                if mask >> n & 1:
                    moved |= 1 << self.positions[id_]
            mask = moved
        bits = f"{mask:b}"[::-1]
        return [{"first": m.start(), "last": m.end() - 1} for m in _ONES.finditer(bits)]


def _positions(history: DatasetHistory) -> dict[str, int]:
    """Every line of history contiguous: main first, then what each other ref adds, then what none reaches."""
    order: dict[str, int] = {}

    def place(line: list[str]) -> None:
        for id_ in line:
            order.setdefault(id_, len(order))

    for view in sorted(history.views, key=lambda v: (not v.ref.main, v.ref.kind, v.ref.name)):
        place(list(view.line))
    parents = {t.parent_id for t in history.transactions.values()}
    for id_ in history.transactions:
        if id_ not in order and id_ not in parents:  # the end of a line that no ref reaches
            line = []
            at: str | None = id_
            while at is not None and at in history.transactions and at not in order and at not in line:
                line.append(at)
                at = history.transactions[at].parent_id
            place(line[::-1])
    place(list(history.transactions))
    return order
