"""Erasing people from Delta: only files that hold somebody change, nobody else's row does, and what is kept stays.

The oracles are what lies on disk, read file by file by pyarrow, and Spark's own reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.config.subjects import Identities, Subject
from ebbtide.erasure.batch import PeopleBatch
from ebbtide.errors import ConflictError
from ebbtide.formats.base import Depth
from ebbtide.formats.delta import FORMAT
from ebbtide.formats.delta.erase import ERASING
from ebbtide.formats.delta.java import Attempt, DeltaJavaTable, LiveAction
from ebbtide.formats.delta.truncate import Truncation
from ebbtide.formats.erasing import Erased, Erasure, Fate, VersionFate
from ebbtide.inventory.spans import Spans
from ebbtide.ledger.commitment import Identifier
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import build_history
from ebbtide.model.paths import normalise
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import FileDeletion
from tests.conformance.driver import Table
from tests.conformance.drivers.delta import DeltaDriver
from tests.tiers import deep_after_first

DAY, NEXT, ODD = "2026-01-01", "2026-01-02", "a b%/c:é=#?"
WHO = 777_000_777
"""The person; nothing else of a table has these digits."""
FEED = {"delta.enableChangeDataFeed": "true"}
IDENTITIES = Identities({"user_id": Subject("user_id", "subjects.yml:1", ())})


def half_an_hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=30)


@dataclass
class Case:
    """One table, and what is told while somebody is erased from it."""

    driver: DeltaDriver
    table: Table
    told: dict[str, int] = field(default_factory=dict)
    batches: int = 0

    @property
    def found(self) -> TableHandle:
        handles = [each for each in FORMAT.discover(self.driver.catalog) if isinstance(each, TableHandle)]
        return next(each for each in handles if each.id == self.table.id)

    def erasure(self, *who: int, **asked: Any) -> Erasure:
        redact = asked.pop("redact", None)
        columns = asked.pop("columns", {"id": ("user_id",)})
        people = [[Identifier("user_id", str(each))] for each in who or (WHO,)]
        batch = PeopleBatch(self.driver.spark, people, columns, IDENTITIES, redact)
        return Erasure(found=self.found, people=batch, files=frozenset(self.files_with(*who or (WHO,))), **asked)

    def erase(self, erasure: Erasure) -> Erased:
        return ERASING.erase(erasure, self.driver.catalog, self.driver.spark, self.told.update)

    def purge(self, erasure: Erasure, erased: Erased, but: Collection[str] = ()) -> FileDeletion:
        """As the engine does: what was found or told, but for what something else needs."""
        paths = sorted({*erasure.files, *self.told} - set(but) - self.needed(erased))

        def before() -> None:
            self.batches += 1

        return ERASING.purge(erasure, erased, paths, self.driver.catalog, self.driver.spark, before, self.told.update)

    def needed(self, erased: Erased) -> set[str]:
        """What versions reference that do not end."""
        reading, going = self.read(), set(erased.ending)
        spans = Spans(reading, build_history(reading.transactions, reading.refs))
        leaving = {spans.positions[id_] for id_ in going}
        needed = {file.path for file in reading.files if file.live}
        for file in reading.files:
            runs = [set(range(run["first"], run["last"] + 1)) for run in spans.of(file)]
            if runs and not set().union(*runs) <= leaving:
                needed.add(file.path)
        return needed

    def run(self, erasure: Erasure) -> Erased:
        erased = self.erase(erasure)
        assert self.purge(erasure, erased) == FileDeletion()
        return erased

    def read(self) -> Reading:
        return FORMAT.read(self.found, self.driver.catalog, Depth.FILES, None)

    def stored(self) -> dict[str, set[int]]:
        """The ids in every data file that lies there, whatever hides or forgot them."""
        found = {}
        for path in Path(self.table.location).rglob("*.parquet"):
            if "_delta_log" not in path.parts:
                file = pq.ParquetFile(path)
                (name,) = [n for n in file.schema_arrow.names if n == "id" or n.startswith("col-")][:1]
                found[normalise(str(path))] = set(file.read(columns=[name]).column(0).to_pylist())
        return found

    def files_with(self, *who: int) -> set[str]:
        return {path for path, ids in self.stored().items() if ids & set(who)}

    def ids(self, version: str | None = None) -> list[int]:
        return sorted(row.id for row in self.driver.rows(self.table, version=version))

    def versions(self) -> list[str]:
        return self.driver.native_ids(self.table)

    def let_an_hour_pass(self) -> None:
        for entry in Path(self.table.location, "_delta_log").iterdir():
            before = entry.stat().st_mtime - 3600
            os.utime(entry, (before, before))

    def stats(self) -> dict[str, tuple[int, int, int]]:
        paths = (path for path in Path(self.table.location).rglob("*.parquet") if "_delta_log" not in path.parts)
        return {normalise(str(path)): (s.st_ino, s.st_size, s.st_mtime_ns) for path in paths for s in [path.stat()]}

    def traces(self, text: str = str(WHO)) -> set[str]:
        """Files, by their names below the table, that show the text in themselves or in their names."""
        found = set()
        for path in Path(self.table.location).rglob("*"):
            name = str(path.relative_to(self.table.location))
            shown = unquote(unquote(name)).encode()
            if path.is_file():
                shown += path.read_bytes()
                if path.name.endswith(".parquet"):
                    shown += str(pq.ParquetFile(path).read().to_pylist()).encode()
            if text.encode() in shown:
                found.add(name)
        return found


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> DeltaDriver:
    return DeltaDriver(spark, catalogs["events"])


@pytest.fixture
def make(driver: DeltaDriver, request: pytest.FixtureRequest) -> Callable[..., Case]:
    """A table of its own: a file of others, and one in which the person is between others."""

    def made(**settings: Any) -> Case:
        columns = settings.get("columns")
        table = driver.create(f"erase_{abs(hash(request.node.name)) % 10**8}", **settings)
        if columns is None:
            driver.append(table, [(1, "a", DAY), (2, "b", DAY)])
            driver.append(table, [(3, "c", NEXT), (WHO, "w", NEXT), (4, "d", NEXT)])
        return Case(driver, table)

    return made


Make = Callable[..., Case]


def test_only_files_with_somebody_change_and_no_byte_of_them_is_left(make: Make) -> None:
    case = make()
    case.driver.checkpoint(case.table)
    before, others = case.stats(), case.files_with(1)
    erasure = case.erasure()
    foreseen = ERASING.foresee(erasure, case.driver.catalog, case.driver.spark)
    assert [foreseen[id_].fate for id_ in ("0", "1", "2")] == [Fate.EXPIRES, Fate.EXPIRES, Fate.REWRITTEN]
    versions = case.versions()
    erased = case.erase(erasure)
    assert case.ids() == [1, 2, 3, 4]
    assert case.versions() == [*versions, erased.version], "one commit"
    assert (erased.rewritten_files, erased.retained, erased.ending) == (1, {}, tuple(versions))
    assert before.items() <= case.stats().items(), "readers in flight finish"
    assert erasure.files <= case.told.keys()
    assert case.ids("2") == [1, 2, 3, 4, WHO]
    assert case.purge(erasure, erased) == FileDeletion()
    assert case.batches
    assert (case.traces(), case.ids()) == (set(), [1, 2, 3, 4])
    assert others
    assert {path: case.stats().get(path) for path in others} == {path: before[path] for path in others}
    assert not [path for path in case.told if Path(path.removeprefix("file://")).exists()]
    assert case.read().unknown == ()
    case.driver.append(case.table, [(9, "z", DAY)])
    assert case.ids() == [1, 2, 3, 4, 9]


def test_files_whose_bounds_leave_nobody_out_are_the_only_ones_looked_through(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make(partitioned=True, properties={"delta.columnMapping.mode": "name"})
    long = "w" * 40
    case.driver.append(case.table, [(WHO - 1, "x", DAY), (WHO + 1, long, DAY)])
    looked: set[str] = set()
    rows = Attempt.rows

    def spied(self: Attempt, files: Collection[LiveAction], *, hidden: bool) -> DataFrame:
        looked.update(file.file.path for file in files)
        return rows(self, files, hidden=hidden)

    monkeypatch.setattr(Attempt, "rows", spied)
    unsearched = replace(case.erasure(), files=frozenset())
    assert case.erase(unsearched).rewritten_files == 1
    assert looked == case.files_with(WHO, WHO + 1) - {file.path for file in case.read().files if file.live} | (
        case.files_with(WHO + 1)
    )
    assert case.ids() == [1, 2, 3, 4, WHO - 1, WHO + 1]
    people = PeopleBatch(case.driver.spark, [[Identifier("user_id", long)]], {"name": ("user_id",)}, IDENTITIES)
    assert case.erase(replace(unsearched, people=people)).rewritten_files == 1, "a cut bound leaves nobody out"
    assert case.ids() == [1, 2, 3, 4, WHO - 1]


def test_nobody_found_commits_nothing(make: Make) -> None:
    case = make()
    before, versions = case.stats(), case.versions()
    erased = case.erase(case.erasure(WHO + 1))
    assert (erased.rewritten_files, erased.version) == (0, versions[-1])
    assert (case.stats(), case.versions()) == (before, versions)


@pytest.mark.parametrize("died", deep_after_first("before the purge", "in the purge", "before the log is cut off"))
def test_asking_again_after_a_crash_does_what_is_left(make: Make, monkeypatch: pytest.MonkeyPatch, died: str) -> None:
    case = make()
    erasure = case.erasure()
    erased = case.erase(erasure)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    if died != "before the purge":
        name = "run" if died == "before the log is cut off" else "_proved"
        with monkeypatch.context() as patched:
            patched.setattr(Truncation, name, die)
            with pytest.raises(KeyboardInterrupt):
                case.purge(erasure, erased)
    again = case.erase(case.erasure())
    assert again.rewritten_files == 0
    assert case.purge(case.erasure(), again) == FileDeletion()
    assert (case.traces(), case.ids()) == (set(), [1, 2, 3, 4])
    versions = case.versions()
    case.run(case.erasure())
    assert case.versions() == versions, "there was nothing left to do"


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let a real writer commit each time after the table was looked at and before the commit is made."""

    def arrange(write: Callable[[], None]) -> None:
        replace = Attempt.replace

        def replacing(self: Attempt, *given: Any) -> None:
            write()
            replace(self, *given)

        monkeypatch.setattr(Attempt, "replace", replacing)

    return arrange


Meanwhile = Callable[[Callable[[], None]], None]


def test_an_append_meanwhile_stays_and_its_rows_of_the_person_go(make: Make, meanwhile: Meanwhile) -> None:
    case = make()
    # Of the second one nothing goes: what was written for the attempt before is what is committed.
    left = [[(6, "f", DAY)], [(5, "e", DAY), (WHO, "w", DAY)]]
    meanwhile(lambda: case.driver.append(case.table, left.pop()) if left else None)
    erased = case.erase(case.erasure())
    assert erased.rewritten_files == 2
    assert case.ids() == [1, 2, 3, 4, 5, 6]
    known = {file.path: file.live for file in case.read().files}
    assert not [path for path in case.files_with(WHO) if known[path]]
    assert case.stored().keys() <= known.keys(), "nothing is left of the attempt that failed"


@pytest.mark.parametrize("other", deep_after_first("delete", "compaction"))
def test_a_writer_of_the_same_file_meanwhile_is_met_by_a_new_attempt(
    make: Make, meanwhile: Meanwhile, other: str
) -> None:
    case = make(variant="vectors")
    left = [other]

    def write() -> None:
        if not left:
            return
        if left.pop() == "delete":
            case.driver.delete(case.table, "id = 3")
        else:
            case.driver.compact(case.table)

    meanwhile(write)
    case.erase(case.erasure())
    assert case.ids() == ([1, 2, 4] if other == "delete" else [1, 2, 3, 4])
    live = {file.path for file in case.read().files if file.live}
    assert not case.files_with(WHO, *((3,) if other == "delete" else ())) & live, "what a vector hid is not there, too"


@pytest.mark.deep
def test_a_writer_that_is_always_faster_ends_in_a_conflict_and_a_whole_table(make: Make, meanwhile: Meanwhile) -> None:
    case, ids = make(), [10]

    def write() -> None:
        ids.append(ids[-1] + 1)
        case.driver.append(case.table, [(ids[-1], "x", DAY)])

    meanwhile(write)
    with pytest.raises(ConflictError):
        case.erase(case.erasure())
    assert case.ids() == [1, 2, 3, 4, *ids[1:], WHO]
    live = {file.path for file in case.read().files if file.live}
    assert case.stored().keys() <= live, "what was written for nothing is gone"


def test_kept_versions_stay_readable_with_all_that_follows_them(make: Make) -> None:
    case = make()
    case.driver.overwrite(case.table, [(6, "f", DAY), (WHO, "w", DAY)])
    case.driver.append(case.table, [(7, "g", DAY)])
    versions = case.versions()
    erasure = case.erasure(kept={"3": Reason("hold h1", Code.HOLD)})
    foreseen = ERASING.foresee(erasure, case.driver.catalog, case.driver.spark)
    assert (foreseen["2"].fate, foreseen["3"].fate) == (Fate.EXPIRES, Fate.STAYS)
    before = case.ids("3")
    erased = case.run(erasure)
    assert erased.ending == ("0", "1", "2")
    assert set(erased.retained) == {"version:3", "version:4"}
    assert erased.retained["version:3"] == "hold h1"
    assert erased.retained["version:4"].startswith("hold h1 (of version 3")
    assert (case.ids("3"), case.ids()) == (before, [6, 7])
    assert [id_ for id_ in case.versions() if int(id_) <= int(versions[-1])] == ["3", "4"]
    assert case.files_with(3) == set(), "what only versions before it needed went"


@pytest.mark.deep
def test_the_floor_of_removed_files_keeps_versions_that_need_such_files_alone(make: Make) -> None:
    floor = "floor:delta.deletedFileRetentionDuration=interval 7 days"
    case = make(properties=FEED)
    reason = Reason(floor, Code.FLOOR)
    erased = case.erase(case.erasure(kept={"2": reason}))
    assert (erased.ending, erased.retained) == (("0", "1"), {"version:2": floor})
    head = max(case.versions(), key=int)
    erased = case.run(case.erasure(kept={head: reason}))
    assert (erased.retained, case.traces(), case.ids()) == ({}, set(), [1, 2, 3, 4])


def test_where_history_is_left_alone_only_the_head_changes(make: Make) -> None:
    case = make()
    before, versions = case.stats(), case.versions()
    erasure = case.erasure(history=VersionFate.REFUSE)
    erased = case.erase(erasure)
    assert (erased.ending, set(erased.retained)) == ((), {"version:2"})
    told = set(case.told)
    assert case.purge(erasure, erased) == FileDeletion()
    assert before.items() <= case.stats().items()
    assert (set(case.told), case.ids("2")) == (told, [1, 2, 3, 4, WHO])
    assert case.versions() == [*versions, erased.version]


def test_a_redaction_keeps_the_row_and_is_done_once(make: Make) -> None:
    case = make()
    erased = case.erase(case.erasure(redact={"name": None}))
    assert erased.rewritten_files == 1
    rows = {row.id: row.name for row in case.driver.rows(case.table)}
    assert rows == {1: "a", 2: "b", 3: "c", 4: "d", WHO: None}
    again = case.erase(case.erasure(redact={"name": None}))
    assert again.rewritten_files == 0


@pytest.mark.deep
def test_a_person_in_the_partition_leaves_no_name_and_the_table_its_settings(make: Make) -> None:
    case = make(columns="id BIGINT, name STRING, day BIGINT", partitioned=True)
    setting = "delta.deletedFileRetentionDuration"
    case.driver.set_property(case.table, setting, "interval 3 days")
    case.driver.append(case.table, [(1, "a", 1), (2, "b", WHO), (WHO, "w", WHO)])
    case.driver.append(case.table, [(3, "c", 1)])
    case.run(case.erasure(columns={"id": ("user_id",), "day": ("user_id",)}))
    assert (case.ids(), case.traces()) == ([1, 3], set())
    properties = case.read().properties
    assert properties[setting] == "interval 3 days"
    assert not [name for name in properties if name.startswith("ebbtide.")]


@pytest.mark.deep
def test_a_setting_that_a_dead_erasure_left_is_put_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make(columns="id BIGINT, name STRING, day BIGINT", partitioned=True)
    case.driver.append(case.table, [(1, "a", 1), (WHO, "w", WHO)])
    erasure = case.erasure(columns={"day": ("user_id",)})
    erased = case.erase(erasure)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("ebbtide.formats.delta.truncate._put_back", die)
        with pytest.raises(KeyboardInterrupt):
            case.purge(erasure, erased)
    assert case.read().floors["delta.deletedFileRetentionDuration"] == "interval 0 seconds"
    case.run(case.erasure(columns={"day": ("user_id",)}))
    properties = case.read().properties
    assert not [name for name in properties if "deletedFileRetentionDuration" in name]
    assert (case.ids(), case.traces()) == ([1], set())


@pytest.mark.deep
@pytest.mark.parametrize(
    "properties",
    [
        {"delta.columnMapping.mode": "name", **FEED},
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.checkpointPolicy": "v2"},
    ],
)
def test_tables_with_features_are_erased_from_and_go_on(make: Make, properties: Mapping[str, str]) -> None:
    case = make(variant="vectors", properties=properties)
    case.driver.checkpoint(case.table)
    case.driver.spark.sql(f"UPDATE {case.table.sql} SET name = 'u' WHERE id = {WHO}")
    case.driver.delete(case.table, f"id = {WHO}")
    case.driver.checkpoint(case.table)
    assert case.files_with(WHO)
    case.run(case.erasure())
    assert (case.traces(), case.files_with(WHO), case.ids()) == (set(), set(), [1, 2, 3, 4])
    assert case.read().unknown == ()
    case.driver.append(case.table, [(9, "z", DAY)])
    assert case.ids() == [1, 2, 3, 4, 9]


@pytest.mark.deep
def test_constraints_and_defaults_hold_after_it(make: Make) -> None:
    case = make(
        columns="id BIGINT NOT NULL, name STRING DEFAULT 'n', day STRING",
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    sql = case.driver.spark.sql
    sql(f"ALTER TABLE {case.table.sql} ADD CONSTRAINT some CHECK (id > 0)")
    sql(f"INSERT INTO {case.table.sql} (id, day) VALUES (1, '{DAY}'), ({WHO}, '{DAY}')")
    case.run(case.erasure())
    assert [(row.id, row.name) for row in case.driver.rows(case.table)] == [(1, "n")]
    assert case.traces() == set()


@pytest.mark.parametrize(
    ("properties", "why"),
    deep_after_first(
        ({"delta.enableRowTracking": "true"}, "tracks rows"),
        ({"delta.appendOnly": "true"}, "floor:delta.appendOnly=true"),
        ({"delta.enableTypeWidening": "true"}, "typeWidening"),
    ),
)
def test_what_was_not_proved_is_refused_with_a_reason(make: Make, properties: Mapping[str, str], why: str) -> None:
    case = make(properties=properties)
    before, versions, erasure = case.stats(), case.versions(), case.erasure()
    foreseen = ERASING.foresee(erasure, case.driver.catalog, case.driver.spark)
    assert {each.fate for each in foreseen.values()} == {Fate.STAYS}
    erased = case.erase(erasure)
    assert (erased.rewritten_files, set(erased.retained)) == (0, {"branch:main"})
    assert why in erased.retained["branch:main"]
    deletion = case.purge(erasure, erased)
    assert why in (deletion.because or "")
    assert (case.stats(), case.versions()) == (before, versions)


@pytest.mark.deep
def test_a_shallow_clone_is_rewritten_and_its_source_is_left_alone(make: Make) -> None:
    source = make()
    location = f"{source.table.location}_clone"
    source.driver.spark.sql(f"CREATE TABLE delta.`{location}` SHALLOW CLONE {source.table.sql}")
    id_ = type(source.table.id)(source.table.id.catalog, source.table.id.namespace, Path(location).name)
    clone = Case(source.driver, Table(id_, location, f"delta.`{location}`"))
    before, theirs = source.stats(), source.files_with(WHO)
    erasure = clone.erasure()
    erased = clone.erase(erasure)
    assert erased.rewritten_files == 1
    assert not clone.told.keys() & before.keys()
    assert clone.purge(erasure, erased) == FileDeletion()
    assert (clone.ids(), source.ids(), source.stats()) == ([1, 2, 3, 4], [1, 2, 3, 4, WHO], before)
    told = set(clone.told)
    clone.told |= dict.fromkeys(theirs, 1)
    assert set(clone.purge(erasure, clone.erase(erasure)).failed) == theirs, "not even where they are named"
    assert source.stats() == before
    assert told.isdisjoint(before)


def test_no_value_and_no_bound_of_theirs_stands_in_the_commit(make: Make) -> None:
    case = make(partitioned=True)
    erased = case.erase(case.erasure())
    log = Path(case.table.location, "_delta_log", f"{int(erased.version or 0):020d}.json").read_text()
    assert str(WHO) not in log
    actions = [json.loads(line) for line in log.splitlines()]
    assert [each["remove"].get("stats") for each in actions if "remove" in each] == [None]
    assert all(each["remove"]["dataChange"] for each in actions if "remove" in each)
    (info,) = [each["commitInfo"] for each in actions if "commitInfo" in each]
    assert info["operationParameters"] == {}


def test_a_writer_that_was_at_work_when_the_log_was_cut_off_keeps_its_rows(make: Make) -> None:
    case = make()
    erased = case.erase(case.erasure())
    case.let_an_hour_pass()
    writer = DeltaJavaTable(case.table.location, case.driver.catalog, case.driver.spark).begin()
    rows = case.driver.spark.createDataFrame([(5, "e", DAY)], "id BIGINT, name STRING, day STRING")
    new = writer.write(rows)
    assert case.purge(case.erasure(in_flight_since=half_an_hour_ago()), erased) == FileDeletion()
    writer.replace([], new)
    assert (case.ids(), case.traces()) == ([1, 2, 3, 4, 5], set())
    assert not {"0", "1", "2"} & set(case.versions()), "what no writer may still be behind went"


def test_commits_that_a_writer_may_still_be_behind_stay_for_the_next_run(make: Make) -> None:
    case = make()
    erasure = replace(case.erasure(), in_flight_since=half_an_hour_ago() - timedelta(days=1))
    erased = case.erase(erasure)
    versions = case.versions()
    deletion = case.purge(erasure, erased)
    assert "writer" in (deletion.because or "")
    assert set(versions) <= set(case.versions())
    assert case.ids("2") == [1, 2, 3, 4, WHO]
    case.let_an_hour_pass()
    again = replace(case.erasure(), in_flight_since=half_an_hour_ago())
    assert case.purge(again, case.erase(again)) == FileDeletion()
    assert (case.ids(), case.traces()) == ([1, 2, 3, 4], set())


@pytest.mark.deep
def test_a_person_in_the_partition_is_forgotten_while_younger_commits_stay(make: Make) -> None:
    case = make(columns="id BIGINT, name STRING, day BIGINT", partitioned=True)
    case.driver.append(case.table, [(1, "a", 1), (WHO, "w", WHO)])
    columns = {"id": ("user_id",), "day": ("user_id",)}
    erased = case.erase(case.erasure(columns=columns))
    case.let_an_hour_pass()
    case.driver.append(case.table, [(2, "b", 1)])
    assert case.purge(case.erasure(columns=columns, in_flight_since=half_an_hour_ago()), erased) == FileDeletion()
    assert (case.ids(), case.traces()) == ([1, 2], set())
    assert case.read().unknown == ()
    case.driver.append(case.table, [(3, "c", 1)])
    assert case.ids() == [1, 2, 3]
