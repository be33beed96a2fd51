"""What people and writers do between mark and sweep: rescue, hold, name, go back to and write to what is marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from random import Random
from urllib.parse import quote

from pyiceberg.table import Table

from ebbtide.app.hold import add_hold
from ebbtide.app.unmark import unmark_object
from ebbtide.state.values import ObjectKey
from tests.property import delta_tables
from tests.property.iceberg_tables import History
from tests.property.lake import RandomLake
from tests.property.rows import rows_for

_HISTORY = ("transactions", "versions")


@dataclass
class People:
    """Remembers what was asked for, so that what was held can be looked at afterwards."""

    lake: RandomLake
    held: set[str] = field(default_factory=set)
    """Datasets of which nothing at all may go any more."""
    held_days: dict[str, tuple[str, str]] = field(default_factory=dict)
    rescued: set[ObjectKey] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)

    def act(self, marked: Iterable[ObjectKey], days: float, random: Random) -> None:
        """Something happens to the datasets of some of the marked objects."""
        by_dataset: dict[str, list[ObjectKey]] = {}
        for key in marked:
            by_dataset.setdefault(key.dataset, []).append(key)
        formats = {name: format_ for format_, name in self.lake.names.items()}
        for dataset, keys in sorted(by_dataset.items()):
            if random.random() < 0.45:
                format_ = formats[dataset.partition(".")[0]]
                in_parts = ("hold days", "hold days") if ".days_" in dataset else ()
                moves = ("bring back", "move", "rename") if format_ == "iceberg" else ()
                what = random.choice(("unmark", "hold", "name", "return", "write", *in_parts, *moves))
                self._one(what, format_, dataset, random.choice(self._in_order(format_, keys)), days, random)

    def _in_order(self, format_: str, keys: list[ObjectKey]) -> list[ObjectKey]:
        """As the table's history has them: Iceberg's ids are random, and a seed must choose the same again."""
        order: dict[str, int] = {}
        if format_ == "iceberg":
            table = self.lake.iceberg.open().load_table(("db", keys[0].dataset.rpartition(".")[2]))
            order = {str(snapshot.snapshot_id): n for n, snapshot in enumerate(table.snapshots())}
        return sorted(keys, key=lambda key: (key.target, order.get(key.object, -1), len(key.object), key.object))

    def _one(self, what: str, format_: str, dataset: str, key: ObjectKey, days: float, random: Random) -> None:
        name = dataset.rpartition(".")[2]
        project, at = self.lake.tide.project, self.lake.tide.at(days)
        if what == "unmark":
            unmark_object(project, f"{dataset}#{key.target}:{quote(key.object)}", reason="needed", as_of=at)
            self.rescued.add(key)
        elif what == "hold":
            add_hold(project, dataset, owner="counsel", reason="case 7", as_of=at)
            self.held.add(dataset)
        elif what == "hold days":
            first, last = "2026-01-15", "2026-02-15"
            add_hold(
                project, dataset, owner="counsel", reason="case 8", first_day=date.fromisoformat(first),
                last_day=date.fromisoformat(last), as_of=at,
            )  # fmt: skip
            self.held_days[dataset] = (first, last)
        elif format_ == "iceberg" and not name.rpartition("_")[2].startswith("x"):
            if not self._iceberg(what, name, key, random):
                return
        elif format_ == "delta":
            if not self._delta(what, name, key, random):
                return
        else:
            return
        self.done[what] += 1

    def _iceberg(self, what: str, name: str, key: ObjectKey, random: Random) -> bool:
        table = self.lake.iceberg.open().load_table(("db", name))
        if what == "write":
            rows = rows_for(name, random)
            rows.next_id = 1_000_000 + random.randrange(1_000_000)
            table.append(rows.table())
            return True
        if what == "bring back":
            return History(table, random).bring_back()
        if what == "move":
            History(table, random).move()
            return True
        if what == "rename":
            return self._rename(name)
        if key.target == "orphans":
            return self._add_what_was_left(table, key, random)
        if key.target not in _HISTORY or table.snapshot_by_id(int(key.object)) is None:
            return False
        if what == "name":
            manage = table.manage_snapshots()
            create = random.choice((manage.create_tag, manage.create_branch))
            create(int(key.object), f"late{random.randrange(1_000_000)}").commit()
            return True
        if what == "return":
            table.manage_snapshots().set_current_snapshot(int(key.object)).commit()
            return True
        return False

    def _rename(self, name: str) -> bool:
        """The catalog calls the table otherwise; what was said of it holds for it by any name."""
        if name.rpartition("_")[2].startswith(("s", "o", "i", "u")):
            return False  # pairs, nested tables, and the one that another engine writes
        new = f"{name}r"
        self.lake.iceberg.open().rename_table(("db", name), ("db", new))
        place = self.lake.names["iceberg"]
        old_id, new_id = f"{place}.db.{name}", f"{place}.db.{new}"
        if old_id in self.held:
            self.held.add(new_id)
        if old_id in self.held_days:
            self.held_days[new_id] = self.held_days[old_id]
        self.lake.planted = [
            replace(file, dataset=new_id) if file.dataset == old_id else file for file in self.lake.planted
        ]
        return True

    def _add_what_was_left(self, table: Table, key: ObjectKey, random: Random) -> bool:
        """Somebody adds a file to the table that nothing referenced when it was marked."""
        left = [
            file.path for file in self.lake.planted if file.dataset == key.dataset and file.path.suffix == ".parquet"
        ]
        if not left:
            return False
        table.add_files([f"file://{random.choice(left)}"])
        self.done["add an orphan"] += 1
        return True

    def _delta(self, what: str, name: str, key: ObjectKey, random: Random) -> bool:
        if what == "write":
            delta_tables.append(self.lake.delta, name, random)
            return True
        return (
            what == "return" and key.target in _HISTORY and delta_tables.restore(self.lake.delta, name, int(key.object))
        )
