"""Erasing from Hudi tables: exactly the groups that hold somebody, whoever writes meanwhile, and as often as is asked.

The oracles are Spark's own reader, and the names and bytes of what lies on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import ConflictError, LeaseError, RefusedError
from ebbtide.formats.erasing import Erased, Erasure, Fate, VersionFate
from ebbtide.formats.hudi import cleanse, rewrite
from ebbtide.formats.hudi import erase as module
from ebbtide.formats.hudi.erase import ERASING, SAVED
from ebbtide.formats.hudi.writer import Writer
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.paths import normalise
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import FileDeletion
from tests.conformance.driver import Table
from tests.conformance.drivers.hudi import DRIVER, HudiDriver
from tests.formats.test_hudi_remove import find, on_disk, read
from tests.tiers import deep_after_first

PERSON = "someone-8841302"
CHANGES = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "data_before_after"}
P, B, C = (1, PERSON, "2026-01-01"), (2, "b", "2026-01-01"), (3, "c", "2026-01-02")


@dataclass(frozen=True)
class OnePerson:
    """Who is called so. `redact` are columns that are replaced; without any, rows go."""

    redact: Mapping[str, str] = field(default_factory=dict)
    columns: Collection[str] = ("name",)

    @property
    def redacts(self) -> bool:
        return bool(self.redact)

    def among(self, rows: DataFrame) -> DataFrame:
        return rows.where("name = '" + PERSON + "'")

    def without(self, rows: DataFrame) -> DataFrame:
        others = rows.where("NOT name <=> '" + PERSON + "'")
        if not self.redact:
            return others
        from pyspark.sql import functions as F

        theirs = self.among(rows)
        for name, value in self.redact.items():
            theirs = theirs.withColumn(name, F.lit(value).cast(rows.schema[name].dataType))
        return others.unionByName(theirs)

    def may_lie(self, column: str, low: object, high: object) -> bool:  # noqa: ARG002
        return True


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> HudiDriver:
    return DRIVER(spark, catalogs["cdc"])


@dataclass
class Case:
    """One table and who is erased from it. `named` is what was told before commits."""

    driver: HudiDriver
    table: Table
    person: OnePerson = field(default_factory=OnePerson)
    kept: Mapping[str, Reason] = field(default_factory=dict)
    history: VersionFate = VersionFate.REWRITE
    named: dict[str, int] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None

    @property
    def asked(self) -> Erasure:
        files = frozenset(path for path in on_disk(self.table) if path.endswith(".parquet") and holds(path))
        merged = self.table.id.table.endswith("mor")
        return Erasure(
            found=find(self.driver, self.table), people=self.person, files=frozenset() if merged else files,
            kept=self.kept, history=self.history,
        )  # fmt: skip

    def intend(self, files: Mapping[str, int]) -> None:
        self.named.update(files)
        then, self.meanwhile = self.meanwhile, lambda: None
        then()

    def erase(self) -> Erased:
        return ERASING.erase(self.asked, self.driver.catalog, self.driver.spark, self.intend)

    def purge(self, erased: Erased, before: Callable[[], None] = lambda: None) -> FileDeletion:
        asked, paths = self.asked, set(self.named)
        return ERASING.purge(asked, erased, paths, self.driver.catalog, self.driver.spark, before, self.intend)

    def fates(self) -> dict[str, Fate]:
        told = ERASING.foresee(self.asked, self.driver.catalog, self.driver.spark)
        return {id_: each.fate for id_, each in told.items()}

    @property
    def timeline(self) -> set[str]:
        return {path.name for path in Path(self.table.location, ".hoodie", "timeline").iterdir()}

    @property
    def names(self) -> list[str]:
        return sorted(row.name for row in self.driver.rows(self.table))

    @property
    def ids(self) -> list[str]:
        return [t.id for t in read(self.driver, self.table).transactions]


def holds(path: str) -> bool:
    """Whether a file holds the person, in rows or in bytes."""
    file = Path(path.removeprefix("file://"))
    if file.suffix == ".parquet":
        return PERSON in str(pq.read_table(file, partitioning=None).to_pylist()) + str(pq.read_metadata(file).metadata)
    return PERSON.encode() in file.read_bytes()


def stats(paths: Collection[str]) -> dict[str, tuple[int, int]]:
    found = {path: Path(path.removeprefix("file://")).stat() for path in paths}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


def made(driver: HudiDriver, name: str, variant: str = "cow", **more: str) -> Case:
    """Two days, of which one holds the person, in two versions."""
    table = driver.create(f"er_{name}_{variant}", variant=variant, partitioned=True, properties=more)
    driver.append(table, [P, B, C])
    driver._write(table, [(2, "b2", "2026-01-01")], "upsert")
    return Case(driver, table)


@pytest.mark.parametrize("variant", deep_after_first("cow", "mor"))
def test_files_of_others_stay_the_same_and_versions_end_up_to_the_erasing_one(driver: HudiDriver, variant: str) -> None:
    case = made(driver, "story", variant)
    table, ids = case.table, case.ids
    others = stats([path for path in on_disk(table) if "2026-01-02" in path])
    assert case.fates() == {ids[0]: Fate.EXPIRES, ids[1]: Fate.REWRITTEN}
    before = on_disk(table)
    erased = case.erase()
    assert case.names == ["b2", "c"]
    assert before <= on_disk(table), "readers in flight finish"
    assert (erased.retained, erased.rewritten_files > 0, erased.version) == ({}, True, case.ids[-1])
    assert set(ids) <= set(erased.ending)
    driver.append(table, [(4, "d", "2026-01-01")])

    def lost() -> None:
        raise LeaseError("lost", fence=1)

    disk = on_disk(table)
    with pytest.raises(LeaseError):
        case.purge(erased, lost)
    assert on_disk(table) == disk
    again = case.erase()  # a run that died: asked once more, by another
    assert (again.rewritten_files, again.ending, again.retained) == (0, erased.ending, {})
    assert case.purge(again) == FileDeletion()
    assert disk - on_disk(table) == {path for path in case.named if ".hoodie" not in path}
    assert [path for path in on_disk(table) if holds(path)] == []
    assert stats(others) == others
    assert case.names == ["b2", "c", "d"]
    assert [row.name for row in driver.rows(table, version=str(erased.version))] == ["b2", "c"], "what came since stays"
    for id_ in ids:
        with pytest.raises(IllegalArgumentException, match="Cleaner cleaned up the timestamp of interest"):
            driver.rows(table, version=id_)
    timeline = case.timeline
    third = case.erase()
    assert (third.rewritten_files, third.ending) == (0, ())
    assert case.purge(third) == FileDeletion()
    assert case.timeline == timeline, "nobody is there: no commit at all"


@pytest.mark.parametrize("variant", deep_after_first("cow", "mor"))
def test_rows_that_a_writer_brings_meanwhile_go_if_they_are_theirs(driver: HudiDriver, variant: str) -> None:
    case = made(driver, "race", variant)
    case.meanwhile = lambda: driver.append(case.table, [(8, PERSON, "2026-01-02"), (9, "new", "2026-01-02")])
    erased = case.erase()
    assert case.names == ["b2", "c", "new"]
    assert case.purge(erased) == FileDeletion()
    assert [path for path in on_disk(case.table) if holds(path)] == []
    assert case.names == ["b2", "c", "new"]


@pytest.mark.parametrize("redact", deep_after_first("", "erased"))
def test_what_a_writer_makes_of_a_persons_key_or_of_a_neighbour_meanwhile_stays(
    driver: HudiDriver, redact: str
) -> None:
    case = made(driver, f"own_{redact}")
    case.person = OnePerson({"name": redact} if redact else {})
    theirs = [(1, "owner", P[2]), (2, "b3", B[2])]
    case.meanwhile = lambda: driver._write(case.table, theirs, "upsert")
    case.erase()
    assert [tuple(row) for row in driver.rows(case.table)] == [*theirs, C]


@pytest.mark.deep
def test_a_delete_that_is_cancelled_leaves_nothing_that_blocks_the_table(
    driver: HudiDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, writing = made(driver, "cancelled"), rewrite.writing

    def cancelled(found: TableHandle, spark: SparkSession, but: str = "") -> list[tuple[str, str]]:
        if but:
            raise KeyboardInterrupt
        return writing(found, spark)

    with monkeypatch.context() as patched:
        patched.setattr(rewrite, "writing", cancelled)
        with pytest.raises(KeyboardInterrupt):
            case.erase()
    assert rewrite.pending(case.asked.found, driver.spark) == []
    case.erase()
    assert case.names == ["b2", "c"]


def test_versions_that_may_not_end_stay_and_are_told(driver: HudiDriver) -> None:
    case = made(driver, "held")
    first, second = case.ids
    case.history = VersionFate.REFUSE
    disk = on_disk(case.table)
    erased = case.erase()
    assert (erased.ending, set(erased.retained)) == ((), {f"version:{id_}" for id_ in (first, second)})
    assert case.purge(erased) == FileDeletion()
    assert disk <= on_disk(case.table)
    case.history, case.kept = VersionFate.REWRITE, {second: Reason("hold:h1", Code.HOLD)}
    assert case.fates() == {first: Fate.EXPIRES, second: Fate.STAYS, case.ids[-1]: Fate.CLEAN}
    erased = case.erase()
    assert (erased.ending, erased.retained) == ((first,), {f"version:{second}": "hold:h1"})
    rows = driver.rows(case.table, version=second)
    assert PERSON in {row.name for row in rows}
    # A hold that came since counts, too: then nothing may end.
    case.kept, disk = {first: Reason("hold:h2", Code.HOLD), second: Reason("hold:h1", Code.HOLD)}, on_disk(case.table)
    assert case.purge(erased) == FileDeletion()
    assert on_disk(case.table) == disk
    case.kept = {second: Reason("hold:h1", Code.HOLD)}
    assert case.purge(erased) == FileDeletion()
    assert driver.rows(case.table, version=second) == rows
    assert len(disk - on_disk(case.table)) == 1
    assert case.names == ["b2", "c"]


def test_nothing_is_begun_beside_another_writer(driver: HudiDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    case = made(driver, "busy")
    monkeypatch.setattr(module, "_PAUSE", 0)
    timeline = Path(case.table.location, ".hoodie", "timeline")
    inflight = [timeline / f"20990101000000000.commit.{state}" for state in ("requested", "inflight")]

    def begin() -> None:
        inflight[0].touch()
        inflight[1].write_bytes(next(timeline.glob("*.inflight")).read_bytes())

    begin()
    before = case.timeline
    with pytest.raises(ConflictError, match="20990101000000000"):
        case.erase()
    assert case.timeline == before
    for path in inflight:
        path.unlink()
    case.meanwhile = begin  # after it was looked, and before the commit

    def end(_: float) -> None:
        for path in inflight:
            path.unlink(missing_ok=True)

    monkeypatch.setattr(time, "sleep", end)
    case.erase()
    assert case.names == ["b2", "c"]


def test_a_row_of_somebody_else_with_the_same_key_is_not_deleted(driver: HudiDriver) -> None:
    case = made(driver, "shared")
    driver._write(case.table, [(1, "another", "2026-01-01")], "bulk_insert")
    timeline = case.timeline
    with pytest.raises(RefusedError, match="have the key of rows that are to go"):
        case.erase()
    assert case.timeline == timeline
    assert case.names == ["another", "b2", "c", PERSON]


@pytest.mark.parametrize("variant", deep_after_first("cow", "mor"))
def test_rows_stay_where_columns_are_redacted(driver: HudiDriver, variant: str) -> None:
    case = made(driver, "redact", variant)
    case.person, timeline = OnePerson({"id": "7"}), case.timeline
    with pytest.raises(RefusedError, match="id says which row is which"):
        case.erase()
    assert case.timeline == timeline
    case.person = OnePerson({"name": "erased"})
    erased = case.erase()
    assert [tuple(row) for row in driver.rows(case.table)] == [(1, "erased", P[2]), (2, "b2", B[2]), C]
    assert case.purge(erased) == FileDeletion()
    assert [path for path in on_disk(case.table) if holds(path)] == []
    assert len(case.names) == 3


@pytest.mark.deep
def test_a_savepoint_keeps_its_files_and_is_told_whenever_it_is_asked(driver: HudiDriver) -> None:
    case = made(driver, "saved")
    first, _ = case.ids
    driver.create_tag(case.table, "s", first)
    assert case.fates()[first] is Fate.STAYS
    erased = case.erase()
    assert erased.retained == {f"tag:{first}": SAVED}
    assert case.purge(erased) == FileDeletion()
    assert len([path for path in on_disk(case.table) if holds(path)]) == 1
    assert case.erase().retained == {f"tag:{first}": SAVED}, "its version cannot be read any more"


@pytest.mark.deep
def test_what_is_hidden_beneath_logs_goes_though_no_version_shows_it(driver: HudiDriver) -> None:
    table = driver.create("er_hidden_mor", variant="mor", partitioned=True)
    case = Case(driver, table)
    driver.append(table, [C])
    for _ in range(2):  # something for the cleaner to take: without, it does not say from where on there is a history
        driver._write(table, [C], "upsert")
        driver.fold_logs(table)
    driver.append(table, [P, B])
    first = case.ids[-1]
    driver.delete(table, "id = 1")
    for _ in range(2):
        driver._write(table, [(2, "b2", "2026-01-01")], "upsert")
    driver._call("run_clean", table, retain_commits=1)
    assert case.names == ["b2", "c"]
    with pytest.raises(IllegalArgumentException, match="Cleaner cleaned up the timestamp of interest"):
        driver.rows(table, version=first)
    assert not next(t for t in read(driver, table).transactions if t.id == first).expired
    erased = case.erase()
    assert case.purge(erased) == FileDeletion()
    assert [path for path in on_disk(case.table) if holds(path)] == []
    assert case.names == ["b2", "c"]


@pytest.mark.deep
@pytest.mark.parametrize(("name", "more"), [("mor", {}), ("cow", CHANGES)])
def test_a_plan_of_a_run_that_died_is_finished(
    driver: HudiDriver, monkeypatch: pytest.MonkeyPatch, name: str, more: Mapping[str, str]
) -> None:
    case = made(driver, "died", name, **more)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rewrite, "_carry_out", die)
        with pytest.raises(KeyboardInterrupt):
            case.erase()
    erased = case.erase()
    assert case.purge(erased) == FileDeletion()
    assert case.names == ["b2", "c"]
    assert [path for path in on_disk(case.table) if holds(path)] == []


@pytest.mark.deep
def test_a_plan_of_a_run_that_died_is_dropped_where_a_writer_who_did_not_see_it_came_since(
    driver: HudiDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = made(driver, "stale", **CHANGES)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rewrite, "_carry_out", die)
        with pytest.raises(KeyboardInterrupt):
            case.erase()
    (plan,) = Path(case.table.location, ".hoodie", "timeline").glob("*.clustering.requested")
    text = plan.read_bytes()
    plan.unlink()  # he began before
    driver._write(case.table, [(2, "b3", "2026-01-01")], "upsert")
    plan.write_bytes(text)
    erased = case.erase()
    assert case.names == ["b3", "c"]
    assert case.purge(erased) == FileDeletion()
    assert [path for path in on_disk(case.table) if holds(path)] == []


@pytest.mark.deep
def test_groups_that_are_named_after_buckets_keep_their_names_and_say_what_stays(driver: HudiDriver) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    case = made(driver, "buckets", **CHANGES, **buckets)
    groups = {Path(path).name[:36] for path in on_disk(case.table) if path.endswith(".parquet")}
    erased = case.erase()
    assert "buckets" in erased.retained["branch:main"]
    assert case.names == ["b2", "c"]
    assert {Path(path).name[:36] for path in on_disk(case.table) if path.endswith(".parquet")} == groups
    driver._write(case.table, [(2, "b3", "2026-01-01")], "upsert")
    assert case.names == ["b3", "c"]


INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.global.record.level.index.enable": "true",
}


@pytest.mark.deep
def test_indexes_are_made_anew_beside_nobody_and_after_a_run_that_died_without_them(
    driver: HudiDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = made(driver, "indexes", **INDEXED)
    found, spark = case.asked.found, driver.spark
    erased, had = case.erase(), Writer.open(find(driver, case.table), driver.spark).indexes()
    assert had == {"files", "record_index"}
    timeline = Path(case.table.location, ".hoodie", "timeline")
    inflight = timeline / "20990101000000000.commit.requested"
    inflight.touch()
    assert "20990101000000000" in (cleanse.index_anew(found, spark) or "")
    assert Writer.open(found, spark).indexes() == had
    inflight.unlink()
    properties = Path(case.table.location, ".hoodie", "hoodie.properties").read_text()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cleanse, "_make", die)
        with pytest.raises(KeyboardInterrupt):
            case.purge(erased)
    assert Writer.open(found, spark).indexes() == set()
    assert case.purge(case.erase()) == FileDeletion()
    assert Writer.open(found, spark).indexes() == had
    assert "ebbtide" not in Path(case.table.location, ".hoodie", "hoodie.properties").read_text() + properties
    driver._write(case.table, [(2, "b3", "2026-01-01")], "upsert")
    assert case.names == ["b3", "c"]


@pytest.mark.deep
def test_a_clean_of_a_run_that_died_is_finished_unless_it_takes_what_is_held_by_now(
    driver: HudiDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = made(driver, "clean")
    first, erased, timeline = case.ids[0], case.erase(), Path(case.table.location, ".hoodie", "timeline")
    disk = on_disk(case.table)

    def die(found: object, writer: Any, config: object, planned: Any) -> dict[str, str]:
        meta = writer.meta
        time = meta.createNewInstantTime(False)
        meta.getActiveTimeline().saveToCleanRequested(
            meta.getInstantGenerator().getCleanRequestedInstant(time), planned
        )
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cleanse, "carry_out", die)
        with pytest.raises(KeyboardInterrupt):
            case.purge(erased)
    case.kept = {first: Reason("hold:h1", Code.HOLD)}
    assert "files that are to stay now" in (case.purge(erased).because or "")
    assert on_disk(case.table) == disk
    case.kept = {}
    again = case.erase()
    assert (again.rewritten_files, again.ending) == (0, erased.ending)
    assert case.purge(again) == FileDeletion()
    assert [path for path in on_disk(case.table) if holds(path)] == []
    assert not [path for path in timeline.glob("*.clean.requested") if not list(timeline.glob(f"{path.name[:17]}_*"))]


@pytest.mark.deep
def test_tables_of_kinds_that_were_not_tried_are_left_alone_and_say_so(driver: HudiDriver) -> None:
    table = driver.create("er_old_cow", partitioned=True, table_version=6)
    driver.append(table, [P, B])
    case = Case(driver, table)
    timeline = {normalise(str(path)) for path in Path(table.location, ".hoodie").rglob("*")}
    assert set(case.fates().values()) == {Fate.STAYS}
    erased = case.erase()
    assert (erased.ending, list(erased.retained)) == ((), ["branch:main"])
    assert "version 6" in (case.purge(erased).because or "")
    assert {normalise(str(path)) for path in Path(table.location, ".hoodie").rglob("*")} == timeline
    hashed = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
              "hoodie.bucket.index.num.buckets": "2"}  # fmt: skip
    table = driver.create("er_hashed_mor", variant="mor", partitioned=True, properties=hashed)
    driver.append(table, [P, B])
    case = Case(driver, table)
    assert set(case.fates().values()) == {Fate.STAYS}
    assert "consistently" in case.erase().retained["branch:main"]
