"""The rows of random tables: ids that are never used twice, some days long past and some far away."""

from __future__ import annotations

from random import Random

import pyarrow as pa

PAST = ("2026-01-01", "2026-02-01", "2026-03-01")
FUTURE = ("2099-01-01", "2099-02-01")


class Rows:
    """Makes the rows of one table."""

    def __init__(self, random: Random) -> None:
        self._random, self.next_id = random, 0

    def tuples(self, count: int = 3) -> list[tuple[int, str, str]]:
        made = [
            (self.next_id + n, f"n{self._random.randint(0, 99)}", self._random.choice(PAST + FUTURE))
            for n in range(count)
        ]
        self.next_id += count
        return made

    def table(self, count: int = 3) -> pa.Table:
        ids, names, days = zip(*self.tuples(count), strict=True)
        return pa.table({"id": pa.array(ids, pa.int64()), "name": list(names), "day": list(days)})
