"""A sweep that is asked to stop: it ends at a boundary, gives back the lease, and the next one finishes its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.ledger import open_ledger
from ebbtide.app.sweep import run_sweep
from ebbtide.errors import Cancelled
from ebbtide.formats.iceberg import Iceberg
from ebbtide.ledger.audit import audit
from ebbtide.run import Cancellation, Silent, quiet
from ebbtide.storage import remove
from tests.faults.child import Ended, in_child
from tests.tide import Tide

MARKED_ON, SWEPT_ON = 40, 48
POLICIES = """
policies:
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d, keep_min: 1}}
"""
ROW = "2026-01-01"


def _in_commit(ask: Callable[[], None]) -> None:
    commit = Iceberg.commit

    def committing(self: Iceberg, *given: Any) -> Any:
        ask()
        return commit(self, *given)

    patched: Any = Iceberg
    patched.commit = committing


def _in_removal(ask: Callable[[], None]) -> None:
    unlink = remove._unlink

    def unlinking(paths: Sequence[str], places: Collection[Any]) -> dict[str, str]:
        ask()
        return unlink(paths, places)

    patched: Any = remove
    patched._unlink = unlinking


@dataclass
class _AtStep(Silent):
    """Asks when the first files are about to go: between the second reading of references and the removal."""

    ask: Callable[[], None]

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:  # noqa: ARG002
        if step == "files":
            self.ask()


def _stopped(tide: Tide, number: signal.Signals, moment: Callable[[Callable[[], None]], None] | None) -> Ended:
    """Sweep in a process of its own that gets a real signal at a moment; its last word is the exit code."""

    def work(say: Callable[[str], None]) -> None:
        cancellation = Cancellation()
        asked: list[bool] = []

        def ask() -> None:
            if not asked:
                asked.append(True)
                os.kill(os.getpid(), number)

        progress = _AtStep(ask) if moment is None else Silent()
        if moment is not None:
            moment(ask)
        context = replace(quiet(as_of=tide.at(SWEPT_ON)), cancellation=cancellation, progress=progress)
        with cancellation.by_signals():
            try:
                run_sweep(tide.project, context=context)
            except Cancelled as cancelled:
                say(f"exit {cancelled.exit_code}")

    return in_child(work)


def _data(tide: Tide) -> set[str]:
    return {path for path in tide.files() if path.endswith(".parquet")}


@pytest.mark.parametrize(
    ("moment", "number", "exit_code"),
    [(_in_commit, signal.SIGTERM, 143), (None, signal.SIGINT, 130), (_in_removal, signal.SIGTERM, 143)],
    ids=["inside the metadata commit", "before files go", "while files go"],
)
def test_a_signal_leaves_nothing_half_done_and_the_lease_free(
    tide: Tide, moment: Callable[[Callable[[], None]], None] | None, number: signal.Signals, exit_code: int
) -> None:
    driver = tide.drivers["iceberg"]
    name = f"t{exit_code}_{'step' if moment is None else moment.__name__.strip('_')}"
    table = driver.create(name)
    driver.append(table, [(1, "first", ROW)])
    driver.overwrite(table, [(2, "kept", ROW)])
    first, kept = driver.native_ids(table)[0], driver.rows(table)
    tide.mark(MARKED_ON)
    before = _data(tide)

    ended = _stopped(tide, number, moment)

    assert ended.said == [f"exit {exit_code}"], ended
    assert driver.rows(table) == kept
    with open_ledger(tide.project).database.reader() as state:
        lease, run = state.lease(), state.runs()[-1]
    assert lease is not None
    assert lease.released_at is not None
    assert (run.verb, run.exit_code) == ("sweep", exit_code)

    report = tide.sweep(SWEPT_ON)  # at once: nobody waits for a lease to run out

    assert not report.errors
    assert driver.rows(table) == kept
    assert first not in driver.native_ids(table)
    assert _data(tide) < before, "the first version's files are gone"
    with open_ledger(tide.project).reading() as log:
        assert not list(log.recover()), "every act has its outcome"
    assert audit(open_ledger(tide.project))


@pytest.fixture(scope="module")
def tide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tide:
    return Tide(spark, tmp_path_factory.mktemp("stopped") / "p", "iceberg", policies=POLICIES)
