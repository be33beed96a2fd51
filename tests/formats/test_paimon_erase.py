"""Erasing people from Paimon tables: each test is named after what must hold (spec §4; `formats.erasing`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ebbtide.errors import ConflictError, EbbtideError, RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.erasing import Erased, Erasure, Fate, VersionFate
from ebbtide.formats.paimon import FORMAT
from ebbtide.formats.paimon.erase import ERASING
from ebbtide.formats.paimon.java import PaimonRewriter, open_rewriter
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.paths import normalise
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import FileDeletion
from tests.conformance.driver import Table
from tests.conformance.drivers.paimon import PaimonDriver
from tests.tiers import deep_after_first

ANN, BOB, CY, DOT = (1, "ann", "a"), (2, "bob", "a"), (3, "cy", "b"), (4, "dot", "b")
KINDS = {"append": {}, "key": {}, "vectors": {"deletion-vectors.enabled": "true"}, "dynamic": {"bucket": "-1"}}


@dataclass
class Gone:
    """Ann, by her name. `meanwhile` is done once, after her rows were looked for and before a commit."""

    name: str = "ann"
    redacted: Mapping[str, str] = field(default_factory=dict)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    columns: Collection[str] = ("name",)

    @property
    def redacts(self) -> bool:
        return bool(self.redacted)

    def among(self, rows: DataFrame) -> DataFrame:
        (column,) = self.columns
        return rows.where(F.col(column) == self.name if column in rows.columns else F.expr("false"))

    def without(self, rows: DataFrame) -> DataFrame:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        (column,) = self.columns
        theirs = F.coalesce(F.col(column) == self.name, F.lit(False)) if column in rows.columns else F.expr("false")
        if not self.redacted:
            return rows.where(~theirs)
        types = dict(rows.dtypes)
        new = {name: F.when(theirs, F.lit(text).cast(types[name])).otherwise(F.col(name)).alias(name)
               for name, text in self.redacted.items()}  # fmt: skip
        return rows.select(*(new.get(name, F.col(name)) for name in rows.columns))

    def may_lie(self, column: str, low: object, high: object) -> bool:
        if column not in self.columns or not isinstance(low, str) or not isinstance(high, str):
            return True
        return low <= self.name <= high


@dataclass
class Erasing:
    """One table, and what an eraser does with it."""

    driver: PaimonDriver
    table: Table
    people: Gone = field(default_factory=Gone)
    history: VersionFate = VersionFate.REWRITE
    kept: Mapping[str, Reason] = field(default_factory=dict)
    seen_in: Collection[str] = ()
    named: dict[str, int] = field(default_factory=dict)

    def reading(self) -> Reading:
        return FORMAT.read(self._found(), self.driver.catalog, Depth.FILES, self.driver.spark)

    def _found(self) -> TableHandle:
        found = FORMAT.discover(self.driver.catalog)
        return next(each for each in found if isinstance(each, TableHandle) and each.id == self.table.id)

    def asked(self, *files: str) -> Erasure:
        return Erasure(
            found=self._found(), people=self.people, files=frozenset(files), versions=frozenset(self.seen_in),
            history=self.history, kept=self.kept,
        )  # fmt: skip

    def erase(self, *files: str) -> Erased:
        return ERASING.erase(self.asked(*files), self.driver.catalog, self.driver.spark, self.named.update)

    def free(self, erased: Erased) -> set[str]:
        """What was named, and what nothing but ending versions needs."""
        reading = self.reading()
        ids = [t.id for t in reading.transactions]
        mask = sum(1 << ids.index(id_) for id_ in erased.ending)
        needed = {f.path for f in reading.files if f.versions is None or f.versions & ~mask}
        return self.named.keys() - needed

    def purge(
        self, erased: Erased, paths: set[str] | None = None, before_batch: Callable[[], None] = lambda: None
    ) -> FileDeletion:
        found, catalog, spark = self.asked(), self.driver.catalog, self.driver.spark
        going = self.free(erased) if paths is None else paths
        return ERASING.purge(found, erased, going, catalog, spark, before_batch, self.named.update)

    def all(self) -> Erased:
        erased = self.erase()
        assert self.purge(erased) == FileDeletion()
        return erased

    def names(self, **which: str) -> list[str]:
        return [row["name"] for row in self.driver.rows(self.table, **which)]

    def tagged(self, tag: str) -> list[str]:
        read = self.driver.spark.read.format("paimon").option("scan.tag-name", tag).load(self.table.location)
        return sorted(row["name"] for row in read.collect())

    def versions(self) -> list[str]:
        return [t.id for t in self.reading().transactions]

    def disk(self) -> dict[str, tuple[int, int]]:
        stats = {path: path.stat() for path in Path(self.table.location).rglob("*") if path.is_file()}
        return {normalise(str(path)): (stat.st_ino, stat.st_mtime_ns) for path, stat in stats.items()}

    def data(self) -> dict[str, tuple[int, int]]:
        return {path: stat for path, stat in self.disk().items() if "/bucket-" in path}


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> PaimonDriver:
    return PaimonDriver(spark, catalogs["stream"])


def made(driver: PaimonDriver, name: str, kind: str = "append", **more: str) -> Erasing:
    """A file with Ann and Bob, and one of another partition with neither."""
    variant = "key" if kind != "append" else "append"
    table = driver.create(name, variant=variant, partitioned=True, properties={**KINDS[kind], **more})
    driver.append(table, [ANN, BOB])
    driver.append(table, [CY])
    return Erasing(driver, table)


@pytest.mark.parametrize("kind", deep_after_first(*KINDS))
def test_a_person_goes_and_a_file_without_one_is_the_very_same(driver: PaimonDriver, kind: str) -> None:
    lake = made(driver, f"er_{kind}", kind)
    if kind == "vectors":
        driver.compact(lake.table)
    held = {f.path for f in lake.reading().files if f.live and (f.partition or "").endswith('"a"]]')} | {
        path for path in lake.data() if "day=a" in path
    }
    before = {path: stat for path, stat in lake.data().items() if "day=b" in path}
    erased = lake.erase()
    assert lake.names() == ["bob", "cy"]
    assert before.keys() <= lake.data().keys()
    assert held & lake.data().keys(), "readers in flight finish"
    assert lake.purge(erased) == FileDeletion()
    assert lake.names() == ["bob", "cy"]
    left = lake.data()
    kept = {f.path for f in lake.reading().files}
    assert {path: stat for path, stat in before.items() if path in kept}.items() <= left.items()
    assert left.keys() <= kept, "nothing else is left"
    assert not held & left.keys()
    assert (erased.retained, len(lake.versions())) == ({}, 1)
    driver.append(lake.table, [(2, "bea", "a"), DOT])
    if kind == "vectors":
        driver.compact(lake.table)
    bob = ["bob"] if kind == "append" else []
    assert lake.names() == ["bea", *bob, "cy", "dot"], "the head takes writes"


def test_whoever_comes_with_an_append_meanwhile_goes_too_and_no_row_is_lost(driver: PaimonDriver) -> None:
    lake = made(driver, "er_append_meanwhile")
    lake.people.meanwhile.append(lambda: driver.append(lake.table, [(5, "ann", "b"), DOT]))
    lake.all()
    assert lake.names() == ["bob", "cy", "dot"]
    assert lake.data().keys() <= {f.path for f in lake.reading().files}, "what lost against the writer went"


@pytest.mark.parametrize("kind", deep_after_first("key", "dynamic"))
def test_what_a_writer_makes_of_a_persons_key_or_of_a_neighbour_meanwhile_stays(
    driver: PaimonDriver, kind: str
) -> None:
    lake = made(driver, f"er_own_{kind}", kind)
    lake.people.meanwhile.append(lambda: driver.append(lake.table, [(1, "another", "a"), (2, "bea", "a")]))
    lake.all()
    assert lake.names() == ["another", "bea", "cy"]
    assert lake.data().keys() == {f.path for f in lake.reading().files if "/bucket-" in f.path}


@pytest.mark.parametrize("kind", deep_after_first("key", "vectors", "dynamic"))
def test_an_update_that_was_written_before_and_is_committed_after_is_the_one_that_is_read(
    driver: PaimonDriver, kind: str
) -> None:
    lake = made(driver, f"er_in_flight_{kind}", kind)
    driver.append(lake.table, [(2, "bea", "a"), (6, "fay", "a")])
    in_flight = prepared(lake, [(2, "bob again", "a")])
    lake.erase()
    later = prepared(lake, [(6, "fay again", "a")])
    in_flight()
    later()
    if kind == "vectors":
        driver.compact(lake.table)
    assert lake.names() == ["bob again", "cy", "fay again"]


def prepared(lake: Erasing, rows: list[tuple[object, ...]]) -> Callable[[], None]:
    """A batch of a writer that is written, and committed when it is called."""
    spark = lake.driver.spark
    jvm: Any = spark._jvm
    rewriter = open_rewriter(lake.asked().found, lake.driver.catalog, spark)
    table = rewriter.ask("table", rewriter.open("main"))
    writer = jvm.org.apache.paimon.spark.commands.PaimonSparkWriter(table)
    written = writer.write(spark.createDataFrame(rows, "id BIGINT, name STRING, day STRING")._jdf)
    return lambda: writer.commit(written)


@pytest.mark.deep
def test_a_delete_of_a_file_meanwhile_is_not_undone(driver: PaimonDriver) -> None:
    lake = made(driver, "er_delete_meanwhile")
    lake.people.meanwhile.append(lambda: driver.delete(lake.table, "name = 'bob'"))
    lake.all()
    assert lake.names() == ["cy"]


@pytest.mark.deep
def test_writers_who_are_always_faster_end_it_without_force(
    driver: PaimonDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbtide.formats.conflicts._PAUSE", 0.0)
    lake = made(driver, "er_busy")
    lake.people.meanwhile += [lambda: driver.append(lake.table, [DOT])] * 9
    with pytest.raises(ConflictError):
        lake.erase()
    assert lake.names() == ["ann", "bob", "cy", *["dot"] * 5]


def test_a_version_in_which_somebody_was_found_ends_though_an_erasure_came_before_it(driver: PaimonDriver) -> None:
    merged = {"manifest.merge-min-count": "1", "manifest.full-compaction-threshold-size": "1 b"}
    lake = made(driver, "er_found", "key", **merged)
    lake.people.name = "cy"
    lake.all()
    lake.people.name = "ann"
    (erasures,) = lake.versions()
    driver.delete(lake.table, "name = 'ann'")
    driver.compact(lake.table)
    driver.append(lake.table, [DOT])  # merges the manifests: the head says nothing of her any more
    later = lake.versions()[1:-1]
    lake.seen_in = [erasures, *later[:-1]]
    erased = lake.all()
    assert {erasures, *later[:-1]} <= set(erased.ending)
    assert not {erasures, *later[:-1]} & set(lake.versions())
    assert lake.names() == ["bob", "dot"]


def test_a_held_version_and_what_comes_after_it_stay_and_are_told_of(driver: PaimonDriver) -> None:
    lake = made(driver, "er_kept")
    lake.kept = {"main/1": Reason("hold h", Code.HOLD)}
    before = lake.data()
    erased = lake.all()
    assert lake.names() == ["bob", "cy"]
    assert lake.names(version="main/1") == ["ann", "bob"]
    assert erased.ending == ()
    assert erased.retained["version:main/1"] == "hold h"
    assert erased.retained["version:main/2"] == "Paimon expires the oldest first, and main/1 stays: hold h"
    assert before.items() <= lake.data().items()


def test_what_died_before_or_in_a_purge_is_finished_by_the_next_call(driver: PaimonDriver) -> None:
    lake = made(driver, "er_again")
    first = lake.erase()
    assert lake.named.keys() <= lake.disk().keys(), "named before it goes"
    versions = lake.versions()
    again = lake.erase()
    assert lake.versions() == versions, "nothing is left to commit"
    assert (again.ending, again.rewritten_files) == (first.ending, 0)

    def lost() -> None:
        raise RefusedError("the lease is lost")

    disk = lake.disk()
    with pytest.raises(RefusedError):
        lake.purge(again, before_batch=lost)
    assert lake.disk() == disk
    last = lake.all()
    assert (last.version, lake.names()) == (versions[-1], ["bob", "cy"])
    assert lake.data().keys() <= {f.path for f in lake.reading().files}


def with_refs(driver: PaimonDriver, name: str) -> Erasing:
    """Ann on main, in a tag, and twice on a branch, which has a copy of its tag."""
    lake = made(driver, name)
    driver.create_tag(lake.table, "kept", "main/1")
    driver.create_branch(lake.table, "side", "main/2")
    driver.append(lake.table, [(5, "ann", "b")], branch="side")
    return lake


def is_erased(lake: Erasing) -> bool:
    """Whether nothing is left but what everybody else reads."""
    reading = lake.reading()
    files = {f.path for f in reading.files if "/bucket-" in f.path or "/manifest/" in f.path}
    there = {path for path in lake.disk() if "/bucket-" in path or "/manifest/" in path}
    rows = (lake.names(), lake.names(branch="side"), lake.tagged("kept"))
    return rows == (["bob", "cy"], ["bob", "cy"], ["bob"]) and files == there and reading.unknown == ()


@pytest.mark.deep
@pytest.mark.parametrize(("step", "time"), [("replace", 2), ("cleanse", 1), ("cleanse", 2), ("retag", 1), ("retag", 2)])
def test_what_died_between_two_commits_is_finished(
    driver: PaimonDriver, monkeypatch: pytest.MonkeyPatch, step: str, time: int
) -> None:
    lake, asked, ask = with_refs(driver, f"er_died_{step}_{time}"), [0], PaimonRewriter.ask

    def dies(self: PaimonRewriter, question: str, *about: object) -> object:
        asked[0] += question == step
        if question == step and asked[0] == time:
            raise KeyboardInterrupt
        return ask(self, question, *about)

    with monkeypatch.context() as patched:
        patched.setattr(PaimonRewriter, "ask", dies)
        with pytest.raises(KeyboardInterrupt):
            lake.erase()
    assert lake.reading().unknown == ()
    lake.all()
    written = {path for path in lake.disk() if "/bucket-" in path or "/manifest/" in path}
    orphans = written - {f.path for f in lake.reading().files}
    for path in orphans:  # what the dead call wrote and did not commit
        Path(path.removeprefix("file://")).unlink()
    assert is_erased(lake)


@pytest.mark.deep
@pytest.mark.parametrize("time", [1, 2, 3, 4])
def test_a_purge_that_died_in_any_batch_is_finished(driver: PaimonDriver, time: int) -> None:
    lake, batches = with_refs(driver, f"er_purge_{time}"), [0]

    def lost() -> None:
        batches[0] += 1
        if batches[0] == time:
            raise RefusedError("the lease is lost")

    with pytest.raises(RefusedError):
        lake.purge(lake.erase(), before_batch=lost)
    lake.all()
    assert is_erased(lake)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["append", "key"])
def test_a_redaction_replaces_columns_and_keeps_rows(driver: PaimonDriver, kind: str) -> None:
    lake = made(driver, f"er_redact_{kind}", kind)
    lake.people.redacted = {"name": "-"}
    lake.all()
    assert sorted(map(tuple, driver.rows(lake.table))) == [(1, "-", "a"), BOB, CY]


@pytest.mark.deep
def test_a_redaction_that_makes_two_rows_one_is_refused(driver: PaimonDriver) -> None:
    lake = made(driver, "er_redact_collides", "key")
    lake.people.redacted = {"id": "2"}
    versions, files = lake.versions(), lake.data()
    with pytest.raises(EbbtideError, match="one key"):
        lake.erase()
    assert (lake.versions(), lake.data()) == (versions, files)


def test_nobody_found_is_no_commit(driver: PaimonDriver) -> None:
    lake = made(driver, "er_nobody")
    lake.people.name = "axel"  # between Ann and Bob: files are looked through, not only their bounds
    versions = lake.versions()
    erased = lake.erase()
    assert (lake.versions(), erased.rewritten_files, erased.version) == (versions, 0, versions[-1])


@pytest.mark.deep
def test_a_file_that_was_not_named_stops_the_end_of_versions(driver: PaimonDriver) -> None:
    lake = made(driver, "er_unnamed")
    erased = lake.erase()
    going = lake.free(erased)
    unnamed = next(path for path in sorted(going) if "/bucket-" in path)
    deletion = lake.purge(erased, going - {unnamed})
    assert deletion.because is not None
    assert unnamed in lake.data()
    assert going <= lake.disk().keys()


def test_tags_and_branches_read_as_before_without_the_person(driver: PaimonDriver) -> None:
    lake = made(driver, "er_refs")
    driver.create_tag(lake.table, "kept", "main/2")
    driver.create_branch(lake.table, "side", "main/2")
    driver.create_branch(lake.table, "still", "main/2")
    driver.append(lake.table, [(5, "ann", "b")], branch="side")
    driver.append(lake.table, [DOT], branch="side")
    driver.delete(lake.table, "name = 'cy'")
    erased = lake.erase()
    assert lake.tagged("kept") == ["bob", "cy"]
    assert "main/rewritten/2" in lake.versions(), "it can be read while what it was made of is still there"
    assert lake.purge(erased) == FileDeletion()
    assert (lake.names(), lake.tagged("kept")) == (["bob"], ["bob", "cy"])
    assert sorted(lake.names(branch="side")) == ["bob", "cy", "dot"]
    assert lake.names(branch="still") == ["bob", "cy"]
    reading = lake.reading()
    assert lake.data().keys() == {f.path for f in reading.files if "/bucket-" in f.path}
    assert (erased.retained, reading.unknown) == ({}, ())
    refs = {ref.name: ref.head for ref in reading.refs}
    assert refs["kept"] == "main/rewritten/2"
    driver.append(lake.table, [DOT])
    driver.expire(lake.table)
    assert lake.tagged("kept") == ["bob", "cy"], "Paimon's own expiry knows the tag"


@pytest.mark.deep
@pytest.mark.parametrize("history", [VersionFate.EXPIRE, VersionFate.REFUSE])
def test_what_the_history_does_not_allow_stays_and_says_so(driver: PaimonDriver, history: VersionFate) -> None:
    lake = made(driver, f"er_history_{history}")
    driver.create_tag(lake.table, "kept", "main/1")
    lake.history = history
    erased = lake.all()
    assert (lake.names(), lake.tagged("kept")) == (["bob", "cy"], ["ann", "bob"])
    assert "tag:kept" in erased.retained
    assert bool(erased.ending) == (history is VersionFate.EXPIRE)
    if history is VersionFate.REFUSE:
        assert lake.names(version="main/2") == ["ann", "bob", "cy"]


@pytest.mark.deep
def test_a_version_that_a_consumer_has_still_to_read_stays(driver: PaimonDriver) -> None:
    lake = made(driver, "er_consumer")
    folder = Path(lake.table.location, "consumer")
    folder.mkdir()
    (folder / "consumer-feed").write_text('{"nextSnapshot": 2}')
    erased = lake.all()
    assert erased.retained["version:main/2"] == "consumer feed reads main/2 next"
    assert lake.names(version="main/2") == ["ann", "bob", "cy"]


def test_rows_that_only_a_delete_hides_go_from_the_bytes(driver: PaimonDriver) -> None:
    lake = made(driver, "er_hidden", "key")
    driver.delete(lake.table, "name = 'ann'")
    stored = FORMAT.stored_rows(lake.table.id, driver.catalog, driver.spark)
    assert stored is not None
    assert stored.where("name = 'ann'").count()
    lake.all()
    stored = FORMAT.stored_rows(lake.table.id, driver.catalog, driver.spark)
    assert stored is not None
    assert sorted(row["name"] for row in stored.collect()) == ["bob", "cy"]
    driver.append(lake.table, [(2, "bea", "a")])
    assert lake.names() == ["bea", "cy"], "what comes later still wins"


@pytest.mark.deep
def test_a_key_that_only_a_manifest_still_names_goes(driver: PaimonDriver) -> None:
    lake = Erasing(driver, driver.create("er_key_name", variant="key", properties={"primary-key": "name"}), Gone("zoe"))
    driver.append(lake.table, [ANN, BOB, (9, "zoe", "a")])
    driver.delete(lake.table, "name = 'zoe'")
    driver.compact(lake.table)
    rewriter = open_rewriter(lake.asked().found, driver.catalog, driver.spark)
    assert "zoe" in str(rewriter.told("describe", rewriter.open("main"), "name")["files"])
    lake.all()
    said = str(rewriter.told("describe", rewriter.open("main"), "name"))
    assert "zoe" not in said
    assert "ann" in said
    assert lake.names() == ["ann", "bob"]


@pytest.mark.deep
def test_a_bucket_of_many_files_is_written_anew(driver: PaimonDriver) -> None:
    lake = made(driver, "er_many", "key", **{"target-file-size": "1 kb"})
    rows = driver.spark.range(100, 4600).selectExpr("id", "concat('n', id)", "'a'")
    rows.createOrReplaceTempView("er_many_rows")
    driver.spark.sql(f"INSERT INTO {lake.table.sql} SELECT * FROM er_many_rows")
    lake.all()
    assert len([file for file in lake.data() if "day=a" in file]) > 1
    assert (len(lake.names()), "ann" in lake.names()) == (4502, False)


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update"},
        {"bucket": "-1", "primary-key": "id"},
        {"changelog-producer": "input", "changelog.num-retained.min": "50", "changelog.num-retained.max": "50",
         "changelog.time-retained": "10 d"},
    ],
    ids=["merge-engine", "keys that move", "changelogs"],
)  # fmt: skip
def test_what_was_not_proved_is_refused_as_a_whole(
    driver: PaimonDriver, options: Mapping[str, str], request: pytest.FixtureRequest
) -> None:
    name = "er_refused_" + str(request.node.callspec.id).replace("-", "_").replace(" ", "_")
    lake = made(driver, name, "key", **options)
    disk = lake.disk()
    foreseen = ERASING.foresee(lake.asked(), driver.catalog, driver.spark)
    assert {each.fate for each in foreseen.values()} == {Fate.STAYS}
    erased = lake.erase()
    assert erased.retained.keys() == {"branch:main"}
    assert set(erased.retained.values()) == {each.because for each in foreseen.values()}
    assert lake.disk() == disk


@pytest.mark.deep
def test_what_becomes_of_each_version_is_foreseen(driver: PaimonDriver) -> None:
    lake = made(driver, "er_foreseen")
    driver.create_tag(lake.table, "kept", "main/1")
    driver.append(lake.table, [DOT])
    file = next(f.path for f in lake.reading().files if f.first_transaction == "main/1" and "/bucket-" in f.path)
    foreseen = ERASING.foresee(lake.asked(file), driver.catalog, driver.spark)
    fates = {id_: each.fate for id_, each in foreseen.items()}
    assert fates == {"main/1": Fate.REWRITTEN, "main/2": Fate.EXPIRES, "main/3": Fate.REWRITTEN}
    assert ERASING.foresee(lake.asked(), driver.catalog, driver.spark)["main/2"].fate is Fate.EXPIRES


@pytest.mark.deep
@pytest.mark.parametrize("type_", ["TIMESTAMP(9)", "TIMESTAMP(7) WITH LOCAL TIME ZONE"])
@pytest.mark.parametrize("nested", [False, True])
def test_times_that_spark_would_cut_are_not_written_anew(driver: PaimonDriver, type_: str, *, nested: bool) -> None:
    kind = "ARRAY<STRUCT<at: TIMESTAMP_NTZ>>" if nested else "TIMESTAMP_NTZ"
    name = f"er_nanos_{type_[10]}_{nested}".lower()
    table = driver.create(name, columns=f"id BIGINT, name STRING, at {kind}")
    driver.spark.sql(f"INSERT INTO {table.sql} VALUES (1, 'ann', NULL)")
    schema = Path(table.location, "schema", "schema-0")
    text = schema.read_text()
    assert "TIMESTAMP(6)" in text
    schema.write_text(text.replace("TIMESTAMP(6)", type_))
    lake = Erasing(driver, table)
    disk = lake.disk()
    erased = lake.erase()
    assert "precision" in erased.retained["branch:main"]
    assert lake.disk() == disk


@pytest.mark.deep
def test_what_a_tag_or_a_branch_has_in_another_schema_is_kept_and_told(driver: PaimonDriver) -> None:
    lake = made(driver, "er_renamed")
    driver.create_tag(lake.table, "bare", "main/2")
    driver.create_branch(lake.table, "side", "main/1")
    driver.spark.sql(f"ALTER TABLE {lake.table.sql} RENAME COLUMN name TO title")
    driver.create_tag(lake.table, "fresh")
    lake.people = Gone(columns=("title",))
    erased = lake.all()
    titles = [row["title"] for row in driver.rows(lake.table)]
    assert titles == ["bob", "cy"]
    why = "its snapshot has another schema"
    assert {ref: said for ref, said in erased.retained.items() if ref.startswith(("tag:", "branch:"))} == {
        "tag:bare": why, "tag:from-side": why, "tag:side/from-side": why, "branch:side": why, "tag:fresh": why
    }  # fmt: skip
    assert lake.tagged("bare") == ["ann", "bob", "cy"]


def test_whoever_reads_a_tag_while_it_is_rewritten_reads_all_of_it(driver: PaimonDriver) -> None:
    lake = made(driver, "er_torn")
    driver.create_tag(lake.table, "kept", "main/1")
    tag = Path(lake.table.location, "tag", "tag-kept")
    before = tag.read_text()
    with tag.open() as reader:
        lake.erase()
        assert reader.read() == before
    assert tag.read_text() != before
    assert lake.tagged("kept") == ["bob"]
    assert [each.name for each in tag.parent.iterdir() if not each.name.endswith(".crc")] == ["tag-kept"]


@pytest.mark.parametrize("kind", deep_after_first("append", "key"))
@pytest.mark.parametrize("old", ["born", "more"])
def test_days_of_others_that_the_writer_would_move_are_not_written_anew(
    driver: PaimonDriver, kind: str, old: str
) -> None:
    key = {} if kind == "append" else {"bucket": "1", "primary-key": "id"}
    columns = "id BIGINT, name STRING, born DATE, more MAP<STRING, ARRAY<STRUCT<seen: TIMESTAMP>>>"
    table = driver.create(f"er_days_{kind}_{old}", properties=key, columns=columns)
    born = "DATE '1500-01-01'" if old == "born" else "DATE '1582-10-15'"
    seen = "TIMESTAMP '1500-01-01 00:00:00'" if old == "more" else "TIMESTAMP '1600-01-01 00:00:00'"
    driver.spark.sql(
        f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ *, {born}, map('a', array(named_struct('seen', {seen})))"
        " FROM VALUES (1, 'ann'), (2, 'bob')"
    )
    lake = Erasing(driver, table)
    disk = lake.disk()
    with pytest.raises(RefusedError, match="1582"):
        lake.erase()
    assert lake.disk() == disk
    assert lake.names() == ["ann", "bob"]
    younger = driver.create(f"er_young_{kind}_{old}", properties=key, columns=columns)
    driver.spark.sql(
        f"INSERT INTO {younger.sql} SELECT /*+ COALESCE(1) */ *, DATE '1582-10-15', map('a', NULL)"
        " FROM VALUES (1, 'ann'), (2, 'bob')"
    )
    young = Erasing(driver, younger)
    young.erase()
    assert young.names() == ["bob"]
