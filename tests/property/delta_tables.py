"""Random histories of Delta tables by delta-rs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Literal

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tests.property.rows import rows_for

STEPS = 6
_WEIGHTS = {"append": 5, "overwrite": 3, "delete": 2, "compact": 1, "restore": 1, "checkpoint": 1}


class History:
    """One table that is written at random."""

    def __init__(self, folder: Path, random: Random, settings: dict[str, str], by: list[str] | None) -> None:
        self.folder, self.random, self.done = folder, random, Counter[str]()
        self.rows, self._settings, self._by = rows_for(folder.name, random), settings, by

    def _write(self, mode: Literal["append", "overwrite"]) -> None:
        by, settings = self._by, None if self.folder.exists() else self._settings
        if mode == "append":
            write_deltalake(self.folder, self.rows.table(), mode="append", partition_by=by, configuration=settings)
        else:
            write_deltalake(self.folder, self.rows.table(), mode="overwrite", partition_by=by)

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable(str(self.folder))

    def append(self) -> None:
        self._write("append")

    def overwrite(self) -> None:
        self._write("overwrite")

    def delete(self) -> None:
        self._table.delete(f"id % 3 = {self.random.randint(0, 2)}")

    def compact(self) -> None:
        self._table.optimize.compact()

    def restore(self) -> None:
        table = self._table
        if newest := table.version():
            table.restore(self.random.randrange(newest))

    def checkpoint(self) -> None:
        self._table.create_checkpoint()

    def do(self, name: str) -> None:
        getattr(self, name)()
        self.done[name] += 1

    def step(self) -> None:
        names, weights = zip(*_WEIGHTS.items(), strict=True)
        self.do(self.random.choices(names, weights)[0])


def build(warehouse: Path, seed: int, tables: list[tuple[str, dict[str, str]]]) -> Counter[str]:
    """Create these tables (name, configuration) with random histories; how often each operation was done."""
    done = Counter[str]()
    for name, settings in tables:
        random = Random(f"{seed}:{name}")
        by = ["day"] if name.startswith("days") or random.random() < 0.3 else None
        history = History(warehouse / "db" / name, random, settings, ["day", "k"] if name.startswith("dated_") else by)
        history.do("append")
        for _ in range(STEPS):
            history.step()
        done += history.done
    return done


def restore(warehouse: Path, name: str, version: int) -> bool:
    """A person restores a version; False where Delta says that files of it are gone."""
    try:
        DeltaTable(str(warehouse / "db" / name)).restore(version)
    except DeltaError:
        return False
    return True


def append(warehouse: Path, name: str, random: Random) -> None:
    rows = rows_for(name, random)
    rows.next_id = 1_000_000 + random.randrange(1_000_000)
    write_deltalake(str(warehouse / "db" / name), rows.table(), mode="append")
