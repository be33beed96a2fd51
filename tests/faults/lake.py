"""One real lake for all kills: a table per case, marked once, and one plan from which every sweep that dies begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pyspark.sql import Row
from sqlalchemy import update

from ebbtide.app.ledger import open_ledger
from ebbtide.app.round import RetentionRun, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.sweep import sweep_round
from ebbtide.ledger.entries import Intent, parse_entry
from ebbtide.ledger.log import LedgerLog
from ebbtide.state.lease import database_time
from ebbtide.state.tables import leases
from ebbtide.storage import remove
from ebbtide.sweep import sweep as sweeping
from ebbtide.sweep.act_planning import batches_of
from ebbtide.sweep.values import ExpiringObject, ObjectBatch
from tests.conformance.driver import Driver, Table
from tests.faults.boundaries import Point, watch
from tests.faults.child import Ended, die, in_child
from tests.faults.listed import named_in
from tests.tide import Tide


@dataclass
class Lake:
    tide: Tide
    formats: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    expected: dict[str, list[Row]] = field(default_factory=dict)

    def driver(self, name: str) -> Driver:
        return self.tide.drivers[self.formats[name]]

    def rows(self, name: str) -> list[Row]:
        return self.driver(name).rows(self.tables[name])

    def marks(self, name: str) -> dict[str, str]:
        with open_ledger(self.tide.project).database.reader() as state:
            found = state.marks(only_open=False)
            return {m.key.object: str(m.state) for m in found if m.key.dataset == str(self.tables[name].id)}

    def named(self, name: str, among: Iterable[str]) -> set[str]:
        """Those of the files that an intent named for this table."""
        asked = {f"file://{os.path.normpath(self.tide.root / path)}": path for path in among}
        paths: set[str] = set()
        with open_ledger(self.tide.project).database.reader() as state:
            log = LedgerLog(state.connection)
            for _, _, body in log.rows(0, log.size):
                entry = parse_entry(body or b"")
                if isinstance(entry, Intent) and entry.dataset == str(self.tables[name].id):
                    paths |= {asked[path] for path in named_in(state, entry, asked)}
        return paths

    def unfinished(self) -> list[str]:
        """The datasets of acts without an outcome."""
        with open_ledger(self.tide.project).reading() as log:
            return [str(found.intent.dataset) for found in log.recover()]

    def time_passes(self) -> None:
        """The dead sweeper's lease runs out."""
        ledger = open_ledger(self.tide.project)
        with ledger.database.writer() as state:
            past = database_time(state.connection) - timedelta(seconds=1)
            state.connection.execute(update(leases).values(expires_at=past))
        ledger.database.close()

    def killed_sweep(self, round_: RetentionRun, name: str, boundary: str) -> Ended:
        """Carry out what the plan says of one table, in a child that dies at this boundary."""
        dataset = str(self.tables[name].id)

        def work(say: Callable[[str], None]) -> None:
            began = False

            def point(passed: str) -> None:
                nonlocal began
                # Before its own intent it writes the outcome of the sweep that died before it.
                began = began or passed.startswith(Intent.KIND)
                if began and passed == boundary:
                    say(passed)
                    die()

            remove._BATCH = 1
            _only(dataset)
            watch(point)
            _watch_vacuum(point)
            ledger = open_ledger(self.tide.project, as_of=round_.plan.as_of)
            context = round_.context
            with sweeper(ledger, context) as lease, recorded(context, ledger, "sweep", lease) as run:
                sweep_round(replace(round_, ledger=ledger, context=run.context), lease)

        return in_child(work)


def _only(dataset: str) -> None:
    def batches(objects: Iterable[ExpiringObject], *others: Any) -> Iterator[ObjectBatch]:
        return batches_of([going for going in objects if going.key.dataset == dataset], *others)

    patched: Any = sweeping
    patched.batches_of = batches


def _watch_vacuum(point: Point) -> None:
    """Delta removes by VACUUM: a file at a time here."""
    from ebbtide.formats.delta import remove as removal
    from ebbtide.formats.delta.java import DeltaJavaTable

    vacuum = DeltaJavaTable.vacuum

    def vacuuming(self: DeltaJavaTable, paths: Any) -> Any:
        answer = vacuum(self, paths)
        point("a batch of files: gone")
        return answer

    patched: Any = DeltaJavaTable
    patched.vacuum = vacuuming
    removal._BATCH = 1
