"""The rows of random tables: ids that are never used twice, some days long past and some far away."""

from __future__ import annotations

from datetime import date
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


class DatedRows(Rows):
    """Rows whose day is a date and often NULL, beside a text that always looks like a day long past (hazard 32)."""

    def table(self, count: int = 3) -> pa.Table:
        plain = super().table(count)
        days = [date.fromisoformat(day) if self._random.random() < 0.7 else None for day in plain["day"].to_pylist()]
        texts = [self._random.choice(PAST).replace("-", "") for _ in days]
        return plain.drop_columns(["day"]).append_column("day", pa.array(days, pa.date32())).append_column("k", [texts])


def rows_for(table: str, random: Random) -> Rows:
    """What is written to the table of this name."""
    return DatedRows(random) if table.startswith("dated_") else Rows(random)
