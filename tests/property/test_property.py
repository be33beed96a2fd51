"""Random histories and policies: hundreds of tables in one lake, swept together in rounds, judged by an oracle that
knows nothing of Ebbtide.

`make test` sweeps 40 histories and `make test-deep` 300; `EBBTIDE_HISTORIES` says how many instead, `EBBTIDE_SEED`
where the seeds begin; with `EBBTIDE_RECORD` the result is written to that file (`make nightly`).
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.property.alone import PROTECTIONS
from tests.property.judge import SENTENCES, Outcome
from tests.property.record import record
from tests.property.rounds import run_lake, seeds
from tests.tiers import deep_after_first

_ENOUGH = 300
"""From this many histories on, every protection must have saved something."""
_FEW = 40
_ASKED = [int(number) for number in os.environ.get("EBBTIDE_HISTORIES", "").split()]
HISTORIES = _ASKED or deep_after_first(_FEW, _ENOUGH)
SEED = int(os.environ.get("EBBTIDE_SEED", "1"))


@pytest.fixture(scope="module", params=HISTORIES)
def outcome(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    histories = int(request.param)
    # A night's lakes are larger: what a plan costs by itself is paid less often.
    a_lake = 300 if histories <= 300 else 1000
    found, begin = Outcome(), time.monotonic()
    for seed, size in seeds(SEED, histories, a_lake):
        root = tmp_path_factory.mktemp(f"property-{seed}") / "p"
        run_lake(spark, root, seed, size, found)
        shutil.rmtree(root)
        if path := os.environ.get("EBBTIDE_RECORD"):
            Path(path).write_text(record(found, SEED, time.monotonic() - begin))
    return found


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_oracle_agrees_that(outcome: Outcome, sentence: str) -> None:
    assert outcome.heads > outcome.histories
    assert not outcome.wrong.get(sentence), "\n".join(outcome.wrong[sentence][:20])


def test_the_sweeps_took_something(outcome: Outcome) -> None:
    """A sweep that takes nothing agrees with every oracle."""
    assert outcome.removed_files > 0
    assert outcome.results["swept"] > 0
    assert outcome.orphans > 0
    if outcome.histories >= _ENOUGH:
        assert outcome.tables > 0


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_each_protection_alone_saved_something(outcome: Outcome, protection: str) -> None:
    if outcome.histories < _ENOUGH:
        pytest.skip(f"asked of {_ENOUGH} histories and more")
    assert outcome.alone.counts()[protection] > 0


def test_the_histories_performed_every_operation(outcome: Outcome) -> None:
    if outcome.histories < _ENOUGH:
        pytest.skip(f"asked of {_ENOUGH} histories and more")
    assert outcome.operations.keys() >= {
        "append", "overwrite", "update", "delete", "delete_all", "branch", "drop_branch", "tag", "stage", "rollback",
        "expire", "share", "compact", "restore", "checkpoint",
    }  # fmt: skip
    assert outcome.people.keys() == {
        "unmark", "hold", "hold days", "name", "return", "write", "add an orphan", "bring back", "move", "rename",
    }  # fmt: skip
    assert outcome.lost_rows.keys() == {"latest", "days", "dated", "expired"}
