"""A small project on the one-file format: its own state, ledger and inventory, marked and swept without a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Never

from sqlalchemy import update

from ebbtide.acts.engine import Lake
from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.formats.base import Depth
from ebbtide.inventory.doubts import doubts, names_to_wait_for
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import scan
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import Intent, Outcome, parse_entry
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.run import RunContext
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.lease import Lease, database_time
from ebbtide.state.tables import leases
from ebbtide.state.values import ObjectKey, Proposal
from ebbtide.sweep.mark import mark
from ebbtide.sweep.sweep import Sweeper
from ebbtide.sweep.values import SweepReport
from tests.faults import folder
from tests.faults.child import Ended, in_child
from tests.faults.listed import named_in
from tests.faults.small_plan import SmallPlan, without_spark

import_module("pandas")  # pyarrow asks for it: once here, and not in every child

Say = Callable[[str], None]
AT = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
TABLES = ("a", "b")
MARKED = ("v1", "v2", "v3")
LEFT = {"table.json", "d2", "d4", "s1", "s2", "s4"}
"""What a table is in the end: v4 is its head, and v2 got a tag while it was marked; v1 and v3 are gone."""


@dataclass(frozen=True, slots=True)
class Place:
    root: Path
    state: Path | None = None
    """Where the database and the keys lie, where that is another disk."""
    tables: tuple[str, ...] = TABLES

    @classmethod
    def new(cls, root: Path, state: Path | None = None, tables: tuple[str, ...] = TABLES) -> Place:
        """Tables of four versions; each version has a file of its own, and one that the next one has too."""
        for name in tables:
            table = root / "lake" / name
            table.mkdir(parents=True)
            for number in range(1, 5):
                for kind in "ds":
                    (table / f"{kind}{number}").write_text(f"{name} {kind}{number}")
            versions = {f"v{n}": [f"d{n}", f"s{n}", *([f"s{n - 1}"] if n > 1 else [])] for n in range(1, 5)}
            versions["v4"] = ["d4", "s4"]
            folder.save(table, {"versions": versions, "tags": []})
        return cls(root, state, tables)

    @property
    def catalog(self) -> Catalog:
        return Catalog("c", "folder", str(self.root / "lake"))

    def ledger(self) -> Ledger:
        base = self.state or self.root
        home = Home(keys=KeyFolder(base / "keys"), folder=self.root / "outside", project="p", origin="example.org/p")
        return Ledger(Database(f"sqlite:///{base / 'db' / 'state.db'}"), home, Clock(lambda: AT))

    def scan(self) -> Inventory:
        def no_session() -> Never:
            raise AssertionError("a session was asked for")

        where = self.root / "inventory"
        scan([self.catalog], where, no_session, now=AT, depth=Depth.FILES)
        return Inventory.open(where)

    def unread(self, inventory: Inventory) -> tuple[str, ...]:
        return names_to_wait_for(doubts(inventory.current, {"c": self.catalog}, (), now=AT))

    def files(self, table: str) -> set[str]:
        return {str(file.relative_to(self.root / "lake" / table)) for file in (self.root / "lake" / table).rglob("*")}

    def time_passes(self) -> None:
        """The lease of a sweeper that is dead, or asleep, runs out."""
        ledger = self.ledger()
        if ledger.database.exists():
            with ledger.database.writer() as state:
                past = database_time(state.connection) - timedelta(seconds=1)
                state.connection.execute(update(leases).values(expires_at=past))
        ledger.database.close()

    def run(self, prepare: Callable[[Say], None] = lambda _: None) -> Ended:
        """The whole story in a child: mark, a writer's tag, sweep, another writer's tag in the middle of it."""

        return in_child(story(self, prepare))

    def look(self) -> tuple[object, ...]:
        """What must hold at any moment; gives what is there."""
        ledger = self.ledger()
        report = audit(ledger)
        assert report.findings == () or report.entries == 0, report.findings
        every = {f"{kind}{n}" for kind in "ds" for n in range(1, 5)}
        paths = [f"file://{self.root / 'lake' / table / name}" for table in self.tables for name in every]
        named: set[str] = set()
        kinds: list[str] = []
        with ledger.database.reader() as state, ledger.reading() as log:
            for _, _, body in log.rows(0, log.size):
                assert body is not None
                entry = parse_entry(body)
                kinds.append(entry.KIND)
                if isinstance(entry, Intent):
                    named |= named_in(state, entry, paths)
            unfinished = len(log.recover())
            marks = sorted((m.key.dataset, m.key.object, str(m.state)) for m in state.marks(only_open=False))
            runs = [run.finished_at is None for run in state.runs()]
            assert kinds.count(Intent.KIND) - kinds.count(Outcome.KIND) == unfinished
        ledger.database.close()
        here = []
        for table in self.tables:
            files, content = self.files(table), folder.load(self.root / "lake" / table)
            for id_, names in content["versions"].items():
                assert set(names) <= files, f"{table} {id_} lost a file"
                for name in names:
                    assert (self.root / "lake" / table / name).read_text() == f"{table} {name}"
            assert list(content["versions"])[-1] == "v4"
            gone = {f"file://{self.root / 'lake' / table / name}" for name in every - files}
            assert gone <= named, "a file went that no intent named"
            here.append((tuple(sorted(files)), str(content)))
        return tuple(kinds), unfinished, marks, sum(runs), *here

    def assert_finished(self) -> None:
        kinds, unfinished, marks, open_runs, *_ = self.look()
        ends = {"v1": "swept", "v2": "unmarked", "v3": "swept"}
        assert marks == sorted((f"c.db.{table}", id_, ends[id_]) for table in self.tables for id_ in MARKED), marks
        assert unfinished == 0
        assert open_runs == 0
        assert {table: self.files(table) for table in self.tables} == dict.fromkeys(self.tables, LEFT), kinds


def story(place: Place, prepare: Callable[[Say], None]) -> Callable[[Say], None]:
    """What a child does, after `prepare` has made it one that will not get far."""

    def work(say: Say) -> None:
        without_spark()
        prepare(say)
        report = _mark_and_sweep(place)
        say(f"removed {report.removed_files} errors {len(report.errors)}")

    return work


def _mark_and_sweep(place: Place) -> SweepReport:
    """Everything once, whatever was done before."""
    ledger = place.ledger()
    ledger.open()
    with Lease.acquire(ledger.database, holder="story") as lease:
        inventory = place.scan()
        with ledger.sweeping(lease) as step:
            run = step.state.start_run("run", at=AT).id
            known = {found.key for found in step.state.marks(only_open=False)}
        keys = [ObjectKey(f"c.db.{table}", "versions", id_) for table in place.tables for id_ in MARKED]
        mark(ledger, lease, run, [_proposal(key) for key in keys if key not in known])
        folder.tag(place.root / "lake" / "a", "v2")
        inventory = place.scan()
        with ledger.database.reader() as state:
            snapshot = state.snapshot()
        plan: Any = SmallPlan(inventory, snapshot.marks)
        lake = Lake(lambda: None, place.scan, lambda _: {}, place.unread)  # type: ignore[arg-type, return-value]
        sweeper = Sweeper({"c": place.catalog}, lake, ledger, lease, RunContext("story", run=run), Limits())
        report = sweeper.sweep(plan, inventory, PolicySet(()), snapshot)
        with ledger.sweeping(lease) as step:
            step.state.finish_run(run, exit_code=0, summary="", at=AT)
    ledger.database.close()
    return report


def _proposal(key: ObjectKey) -> Proposal:
    return Proposal(key=key, policy="p", because="old", fingerprint="f", grace_until=AT, rows=0, bytes=0)
