"""Real kills on real tables: sweeps die at their boundaries, on a table each; then one run finishes all of it.

While that run finishes, writers commit to three tables more. `make test` has a lake with one kill per format, and
`make test-deep` one with every kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Engine
from ebbtide.app.ledger import open_for_writing, open_ledger
from ebbtide.app.round import RetentionRun, plan_round
from ebbtide.ledger.audit import audit
from ebbtide.run import quiet
from ebbtide.spark.session import formats_of_session
from tests.faults.lake import Lake
from tests.tide import Tide
from tests.tiers import deep_after_first

KILLS = {
    "intent": ("iceberg", "act.intent: signed"),
    "committed": ("iceberg", "commit: after"),
    "partition": ("iceberg", "commit: after"),
    "rows": ("iceberg", "commit: after"),
    "reread": ("iceberg", "mark needed: after"),
    "freeing": ("iceberg", "a batch of files: gone"),
    "freed": ("iceberg", "free: after"),
    "outcome": ("iceberg", "act.outcome: committed, not signed"),
    "vacuumed": ("delta", "a batch of files: gone"),
    "cleaned": ("hudi", "free: after"),
    "expired": ("paimon", "free: after"),
}
ONE_A_FORMAT = ("freeing", "vacuumed", "cleaned", "expired")
LAKES = deep_after_first("one a format", "every")
WRITERS = ("appended", "tagged", "appended_late")
OLD, NEW = "2026-01-01", "2099-01-01"
MARKED_ON, SWEPT_ON = 40, 48
POLICIES = """
policies:
  - name: days
    select: {tables: ["*.db.partition"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
  - name: gone
    select: {tables: ["*.db.rows"]}
    rows: {where: "name = 'old'"}
    versions: {older_than: 1000d}
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
"""


def _cases(lake: str) -> list[str]:
    wanted = KILLS if lake == "every" else ONE_A_FORMAT
    return [name for name in wanted if KILLS[name][0] in formats_of_session()]


@pytest.fixture(scope="module", params=LAKES)
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    formats = {name: KILLS[name][0] for name in _cases(request.param)} | dict.fromkeys(WRITERS, "iceberg")
    tide = Tide(spark, tmp_path_factory.mktemp("kills") / "p", *sorted({*formats.values()}), policies=POLICIES)
    made = Lake(tide, formats)
    for name in formats:
        driver = made.driver(name)
        table = made.tables[name] = driver.create(name, partitioned=name == "partition")
        if name in ("partition", "rows"):
            driver.append(table, [(1, "old", OLD), (2, "new", NEW)])
        else:
            driver.append(table, [(1, "first", OLD)])
            driver.append(table, [(2, "second", OLD)])
            driver.overwrite(table, [(3, "kept", OLD)])
        made.ids[name], made.expected[name] = driver.native_ids(table), driver.rows(table)
    marked = tide.mark(MARKED_ON)
    assert {key.dataset for key in marked.marked} == {str(table.id) for table in made.tables.values()}
    return made


@pytest.fixture(scope="module")
def planned(lake: Lake) -> Iterator[RetentionRun]:
    """One plan for every sweep that is to die: each of them carries out one table's part of it."""
    context = quiet(as_of=lake.tide.at(SWEPT_ON))
    ledger, _ = open_for_writing(lake.tide.project, context)
    with plan_round(lake.tide.project, ledger, context) as round_:
        ledger.database.close()
        yield round_


def test_a_clock_that_went_back_removes_nothing(lake: Lake) -> None:
    before = lake.tide.files()
    report = lake.tide.sweep(MARKED_ON - 5)
    assert not report.removed_files
    assert lake.tide.files() == before
    assert "act.intent" not in lake.tide.ledger_kinds()


def test_no_kill_loses_anything(
    lake: Lake, planned: RetentionRun, record_property: Callable[[str, object], None]
) -> None:
    for name in [name for name in lake.tables if name in KILLS]:
        _kill(lake, planned, name)
        format_, boundary = KILLS[name]
        record_property("killed", f"{format_}: {boundary}")


def _kill(lake: Lake, planned: RetentionRun, name: str) -> None:
    boundary = KILLS[name][1]
    before = lake.tide.files()
    ended = lake.killed_sweep(planned, name, boundary)
    assert ended.killed, ended
    assert ended.said == [boundary], name
    lake.time_passes()
    _assert_head(lake, name)
    assert audit(open_ledger(lake.tide.project))
    here = lake.tide.files()
    named = lake.named(name, before | here)
    assert {path for path in before - here if not path.endswith(".crc")} <= named, "a file went that no intent named"
    # The kill came where it should: what was done by then, and what was not.
    assert named or name == "rows"
    assert lake.unfinished() == ([] if name == "outcome" else [str(lake.tables[name].id)])
    if name in ("intent", "committed", "partition", "rows", "reread"):
        assert before <= here, "files went before all references were read again"
    elif name in ("freeing", "vacuumed"):
        assert named - here
        assert named & here
    else:
        assert not named & here


def _assert_head(lake: Lake, name: str) -> None:
    if name in ("partition", "rows"):
        assert {row["name"] for row in lake.rows(name)} in ({"new"}, {"old", "new"})
    else:
        assert lake.rows(name) == lake.expected[name], name


def _write_meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the metadata's commit, and after the references were read again."""
    driver, tables = lake.tide.drivers["iceberg"], lake.tables
    of = {str(tables[name].id): name for name in WRITERS}
    commit, delete = Engine.commit, Engine.delete
    row = (4, "meanwhile", NEW)

    def committing(self: Engine, result: ActResult) -> ActResult:
        act = result.act
        if of.get(act.dataset) == "appended":
            driver.append(tables["appended"], [row])
        elif of.get(act.dataset) == "tagged":
            driver.create_tag(tables["tagged"], "keep", lake.ids["tagged"][0])
        return commit(self, result)

    def deleting(self: Engine, result: ActResult, also: Sequence[str]) -> ActResult:
        if of.get(result.act.dataset) == "appended_late":
            driver.append(tables["appended_late"], [row])
        return delete(self, result, also)

    monkeypatch.setattr(Engine, "commit", committing)
    monkeypatch.setattr(Engine, "delete", deleting)
    for name in ("appended", "appended_late"):
        lake.expected[name] = sorted([*lake.expected[name], Row(id=4, name="meanwhile", day=NEW)], key=str)


def test_the_next_run_finishes_what_all_kills_left_while_writers_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _write_meanwhile(lake, patch)
        report = lake.tide.sweep(SWEPT_ON)
    assert not report.errors
    assert not lake.unfinished()
    assert audit(open_ledger(lake.tide.project))
    here = lake.tide.files()
    for name in lake.tables:
        _assert_head(lake, name)
        if name not in ("tagged", "rows"):
            assert not lake.named(name, here), name
            states = set(lake.marks(name).values())
            # Delta lists versions until its own log is cleaned, and Hudi its instants until they are archived.
            listed = {"waiting"} if lake.formats[name] in ("delta", "hudi") else set()
            assert {"swept"} <= states <= {"swept", *listed}, name
    if "rows" in lake.tables:
        assert {row["name"] for name in ("partition", "rows") for row in lake.rows(name)} == {"new"}
        # The delete was committed by who died, and the version before it still holds the rows.
        assert lake.marks("rows") == {"gone": "waiting"}
    first, second = lake.ids["tagged"][:2]
    assert lake.marks("tagged") == {first: "unmarked", second: "swept"}
    assert lake.driver("tagged").rows(lake.tables["tagged"], version=first) == [Row(id=1, name="first", day=OLD)]
    referenced = [row["path"] for row in lake.tide.app.information_schema("files").collect() if row["live"]]
    assert referenced
    assert {lake.tide.relative(path.removeprefix("file://")) for path in referenced} <= here


def test_running_again_changes_nothing(lake: Lake) -> None:
    before, kinds = lake.tide.files(), lake.tide.ledger_kinds()
    report = lake.tide.sweep(SWEPT_ON)
    assert not report.removed_files
    assert not report.errors
    assert lake.tide.files() == before
    assert lake.tide.ledger_kinds() == kinds
