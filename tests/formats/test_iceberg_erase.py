"""Erasing from Iceberg: exactly the files of somebody, in every version, under races, after crashes, and what stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row, SparkSession

from ebbtide.errors import ConflictError, EbbtideError, LeaseError, ProofError
from ebbtide.formats.base import Depth
from ebbtide.formats.erasing import Erased, Erasure, Fate, VersionFate
from ebbtide.formats.iceberg import FORMAT
from ebbtide.formats.iceberg.erase import ERASING
from ebbtide.formats.iceberg.java import IcebergJavaTable, load_table
from ebbtide.model.dataset import Catalog, Role, TableHandle
from ebbtide.model.paths import local_path, normalise
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import FileDeletion
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tiers import deep_after_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY = "2026-01-01"
PERSON, OTHER = 88413020071, 99000000001


@dataclass(frozen=True)
class One:
    """Somebody, by an `id`."""

    id: int = PERSON
    redact: bool = False
    stays_known: bool = False
    """Whether a redaction leaves the id."""

    @property
    def columns(self) -> Collection[str]:
        return ("id",)

    @property
    def redacts(self) -> bool:
        return self.redact

    def among(self, rows: DataFrame) -> DataFrame:
        return rows.where(rows["id"] == self.id)

    def without(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        left = rows.where((rows["id"] != self.id) | rows["id"].isNull())
        if not self.redact:
            return left
        theirs = self.among(rows).withColumn("name", F.lit("gone"))
        if not self.stays_known:
            theirs = theirs.withColumn("id", F.lit(None).cast("bigint"))
        return left.unionByName(theirs)

    def may_lie(self, column: str, low: Any, high: Any) -> bool:
        return column == "id" and (low is None or high is None or low <= self.id <= high)


@dataclass
class Erasing:
    """One erasure of a table, step by step, as an engine asks for it. `told` is what was to be let go of."""

    driver: IcebergDriver
    table: Table
    erasure: Erasure
    told: dict[str, int] = field(default_factory=dict)

    def erase(self) -> Erased:
        return ERASING.erase(self.erasure, self.driver.catalog, self.driver.spark, self.told.update)

    def free(self, erased: Erased) -> list[str]:
        """What was named, and what no version needs by now but those that are to end."""
        reading = FORMAT.read(find(self.driver, self.table), self.driver.catalog, Depth.FILES, None)
        ending = sum(1 << n for n, each in enumerate(reading.transactions) if each.id in erased.ending)
        needed = {f.path for f in reading.files if f.versions is None or not f.versions or f.versions & ~ending}
        return sorted({*self.erasure.files, *self.told} - needed)

    def purge(self, erased: Erased, paths: Collection[str] | None = None) -> FileDeletion:
        going = self.free(erased) if paths is None else paths
        return ERASING.purge(
            self.erasure, erased, going, self.driver.catalog, self.driver.spark, lambda: None, self.told.update
        )

    def both(self) -> Erased:
        erased = self.erase()
        assert self.purge(erased) == FileDeletion()
        return erased


@pytest.fixture(params=deep_after_first("lake", "ice"), ids=["jdbc", "hadoop"])
def driver(request: pytest.FixtureRequest, spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs[request.param])


@pytest.fixture
def jdbc(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["lake"])


def find(driver: IcebergDriver, table: Table) -> TableHandle:
    (match,) = [a for a in FORMAT.discover(driver.catalog) if isinstance(a, TableHandle) and a.id == table.id]
    return match


def asked(driver: IcebergDriver, table: Table, **more: Any) -> Erasing:
    """The erasure of the person from a table, with the files that a search of now finds."""
    held = {path for path, _ in where_values_are(Path(table.location), {"it": forms(PERSON)})["it"]}
    files = frozenset(normalise(f"{table.location}/{path}") for path in held if path.startswith("data/"))
    return Erasing(driver, table, Erasure(found=find(driver, table), people=One(), files=files, **more))


def rows(driver: IcebergDriver, table: Table, ref: str = "") -> list[Row]:
    driver.spark.catalog.refreshTable(table.sql)
    return sorted(driver.spark.sql(f"SELECT * FROM {table.sql}{ref}").collect(), key=str)


def versions(driver: IcebergDriver, table: Table) -> dict[str, list[Row]]:
    return {id_: sorted(driver.rows(table, version=id_), key=str) for id_ in driver.native_ids(table)}


def left(table: Table, value: object = PERSON) -> set[tuple[str, str]]:
    return where_values_are(Path(table.location), {"it": forms(value)})["it"]


def data(table: Table) -> dict[str, tuple[int, int]]:
    there = Path(table.location, "data").rglob("*.parquet")
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in there}


def made(driver: IcebergDriver, name: str, **settings: Any) -> Table:
    """Three versions; the person is in the file of the second one, and a tag names it."""
    table = driver.create(name, **settings)
    driver.append(table, [(1, "a", DAY), (2, "b", DAY)])
    driver.append(table, [(PERSON, "p", DAY), (OTHER, "o", DAY)])
    driver.create_tag(table, "kept")
    driver.append(table, [(3, "c", DAY)])
    return table


def without(before: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    return {id_: [row for row in each if row["id"] != PERSON] for id_, each in before.items()}


def test_versions_keep_their_ids_and_read_without_the_person_and_other_files_are_the_same(
    driver: IcebergDriver,
) -> None:
    table = made(driver, "erased")
    before, files = versions(driver, table), data(table)
    erasing = asked(driver, table)
    (held,) = erasing.erasure.files
    assert {each.fate for each in ERASING.foresee(erasing.erasure, driver.catalog, driver.spark).values()} == {
        Fate.CLEAN, Fate.REWRITTEN
    }  # fmt: skip
    erased = erasing.erase()
    assert (erased.rewritten_files, erased.ending, erased.retained) == (1, (), {})
    assert set(erased.rewritten_versions) == set(list(before)[1:])
    assert held in erasing.told
    assert files.items() <= data(table).items(), "readers in flight have all files of before"
    assert erasing.purge(erased) == FileDeletion()
    after = versions(driver, table)
    assert {id_: after[id_] for id_ in before} == without(before)
    assert rows(driver, table, ".tag_kept") == without(before)[list(before)[1]]
    assert left(table) == set()
    assert data(table).items() >= {p: stat for p, stat in files.items() if normalise(p) != held}.items()
    driver.append(table, [(4, "d", DAY)])
    assert len(rows(driver, table)) == 5


def test_nobody_found_is_no_commit_and_neither_is_a_second_time(jdbc: IcebergDriver) -> None:
    table = made(jdbc, "nobody")
    erasing = asked(jdbc, table)
    nobody = Erasing(jdbc, table, replace(erasing.erasure, people=One(5), files=frozenset()))
    token = find(jdbc, table).token
    assert nobody.both().rewritten_files == 0
    assert (find(jdbc, table).token, nobody.told) == (token, {})
    erasing.both()
    token = find(jdbc, table).token
    again = erasing.both()
    assert (again.rewritten_files, again.rewritten_versions) == (0, ())
    assert find(jdbc, table).token == token


def first(monkeypatch: pytest.MonkeyPatch, method: str, *works: Any) -> None:
    """A writer that is faster, at the first calls of one commit."""
    original, waiting = getattr(IcebergJavaTable, method), list(works)

    def faster(self: IcebergJavaTable, *asked: Any) -> None:
        if waiting:
            waiting.pop(0)()
        original(self, *asked)

    monkeypatch.setattr(IcebergJavaTable, method, faster)


def test_rows_that_come_beside_it_go_too_if_they_are_theirs_and_stay_if_not(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(jdbc, "beside")
    before = rows(jdbc, table)
    first(monkeypatch, "overwrite", lambda: jdbc.append(table, [(PERSON, "late", DAY), (7, "late", DAY)]))
    first(monkeypatch, "replace_metadata", lambda: jdbc.append(table, [(PERSON, "later", DAY), (8, "later", DAY)]))
    asked(jdbc, table).both()
    expected = [*(tuple(row) for row in before if row["id"] != PERSON), (7, "late", DAY), (8, "later", DAY)]
    assert [tuple(row) for row in rows(jdbc, table)] == sorted(expected)
    assert left(table) == set()


@pytest.mark.parametrize("what", deep_after_first("delete", "compaction"))
def test_a_writer_that_touched_its_files_is_waited_out(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    table = made(jdbc, f"touched_{what}")
    work = (lambda: jdbc.delete(table, f"id = {OTHER}")) if what == "delete" else (lambda: jdbc.compact(table))
    first(monkeypatch, "overwrite", work)
    asked(jdbc, table).both()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2, 3} | (set() if what == "delete" else {OTHER})
    assert left(table) == set()
    reading = FORMAT.read(find(jdbc, table), jdbc.catalog, Depth.FILES, None)
    live = {file.path for file in reading.files if file.role is Role.DATA}
    assert {normalise(path) for path in data(table)} == live, "what a refused commit wrote is gone"


@pytest.mark.parametrize(
    ("method", "unheard"),
    deep_after_first(("overwrite", "no answer"), ("replace_metadata", "interrupted"), ("overwrite", "interrupted")),
)
def test_a_commit_that_comes_to_be_after_it_failed_here_finds_its_files(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch, method: str, unheard: str
) -> None:
    """As a catalog does that answers too late, or the JVM's thread behind a call that was interrupted."""
    table, jvm, late = made(jdbc, f"late_{method}_{unheard[:2]}"), jdbc.spark._jvm, list[Any]()
    erasing = asked(jdbc, table)
    original, gateway = getattr(IcebergJavaTable, method), jdbc.spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None

    def later(self: IcebergJavaTable, *given: Any) -> None:
        late.append(lambda: original(self, *given))
        if unheard == "interrupted":
            raise KeyboardInterrupt
        nothing = gateway.new_array(jvm.java.lang.Object, 0)
        raise Py4JJavaError("no answer", jvm.org.apache.iceberg.exceptions.RESTException("no answer", nothing))

    with monkeypatch.context() as patch:
        patch.setattr(IcebergJavaTable, method, later)
        with pytest.raises((KeyboardInterrupt, EbbtideError)):
            erasing.erase()
    late[0]()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2, 3, OTHER}
    Erasing(jdbc, table, asked(jdbc, table).erasure, erasing.told).both()
    assert left(table) == set()


@pytest.mark.deep
def test_a_writer_that_never_rests_ends_it_and_nothing_is_forced(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(jdbc, "restless")
    monkeypatch.setattr("ebbtide.formats.conflicts._PAUSE", 0)
    again = [lambda: jdbc.append(table, [(PERSON, "again", DAY)])] * 9
    first(monkeypatch, "overwrite", *again)
    with pytest.raises(ConflictError, match="came again"):
        asked(jdbc, table).erase()
    assert {row["id"] for row in rows(jdbc, table)} >= {1, 2, 3, OTHER}


def test_a_kept_version_stays_as_it_is_and_is_told(jdbc: IcebergDriver) -> None:
    table = made(jdbc, "held_version")
    before = versions(jdbc, table)
    second = list(before)[1]
    erasing = asked(jdbc, table, kept={second: Reason("hold 7", Code.HOLD)})
    erased = erasing.both()
    assert erased.retained == {"tag:kept": "hold 7"}
    after = versions(jdbc, table)
    assert after[second] == before[second]
    assert {id_: after[id_] for id_ in before if id_ != second} == {
        id_: each for id_, each in without(before).items() if id_ != second
    }
    assert PERSON not in {row["id"] for row in rows(jdbc, table)}
    assert left(table) != set()


@pytest.mark.parametrize("at", deep_after_first("replace_metadata", "overwrite", "purge"))
def test_what_died_halfway_is_finished_by_asking_again(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    table = made(jdbc, f"died_{at}")
    before = versions(jdbc, table)
    erasing = asked(jdbc, table)

    def dies() -> None:
        raise LeaseError("lost", fence=1)

    if at == "purge":
        erasing.erase()
    else:
        with monkeypatch.context() as patch:
            first(patch, at, dies)
            with suppress(LeaseError):
                erasing.erase()
    assert {id_: each for id_, each in without(versions(jdbc, table)).items() if id_ in before} == without(before)
    Erasing(jdbc, table, erasing.erasure, erasing.told).both()
    after = versions(jdbc, table)
    assert {id_: after[id_] for id_ in before} == without(before)
    assert left(table) == set()


def test_a_redaction_keeps_the_rows(jdbc: IcebergDriver) -> None:
    table = made(jdbc, "redacted", variant="v3")
    before = versions(jdbc, table)
    erasing = asked(jdbc, table)
    Erasing(jdbc, table, replace(erasing.erasure, people=One(redact=True)), erasing.told).both()
    for id_, each in versions(jdbc, table).items():
        if id_ in before:
            names = ["gone" if row["id"] == PERSON else row["name"] for row in before[id_]]
            assert sorted(row["name"] for row in each) == sorted(names)
    assert left(table) == set()


def test_a_redaction_that_leaves_who_it_was_is_done_once(jdbc: IcebergDriver) -> None:
    table, people = made(jdbc, "redacted_once"), One(redact=True, stays_known=True)

    def redact() -> Erased:
        erasing = asked(jdbc, table)
        return Erasing(jdbc, table, replace(erasing.erasure, people=people)).both()

    once = redact()
    assert (once.rewritten_files, len(once.rewritten_versions)) == (1, 2)
    after, token = versions(jdbc, table), find(jdbc, table).token
    assert {row["name"] for each in after.values() for row in each if row["id"] == PERSON} == {"gone"}
    again = redact()
    assert (again.rewritten_files, again.rewritten_versions) == (0, ())
    assert (find(jdbc, table).token, versions(jdbc, table)) == (token, after)


@pytest.mark.deep
def test_versions_are_rewritten_in_the_layout_of_object_stores(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}
    table = made(jdbc, "hashed", properties=layout)
    before, erasing = versions(jdbc, table), asked(jdbc, table)
    with monkeypatch.context() as patch:
        patch.setattr("ebbtide.formats.iceberg.rewrite._number_of", lambda _: -1)
        with pytest.raises(ProofError):
            erasing.erase()
    reading = FORMAT.read(find(jdbc, table), jdbc.catalog, Depth.FILES, None)
    live = {file.path for file in reading.files if file.role is Role.DATA}
    assert {normalise(path) for path in data(table)} == live, "what was written and does not hold is gone"
    Erasing(jdbc, table, asked(jdbc, table).erasure, erasing.told).both()
    after = versions(jdbc, table)
    assert {id_: after[id_] for id_ in before} == without(before)
    assert left(table) == set()


@pytest.mark.parametrize("history", deep_after_first(VersionFate.REFS, VersionFate.EXPIRE, VersionFate.REFUSE))
def test_a_table_says_what_may_become_of_its_versions(jdbc: IcebergDriver, history: VersionFate) -> None:
    table = made(jdbc, f"history_{history}")
    before = versions(jdbc, table)
    _, tagged, head = before
    erasing = asked(jdbc, table, history=history)
    erased = erasing.both()
    after = versions(jdbc, table)
    assert PERSON not in {row["id"] for row in rows(jdbc, table)}
    if history is VersionFate.REFS:
        assert (erased.ending, erased.retained, erased.rewritten_versions) == ((head,), {}, (tagged,))
        assert after[tagged] == without(before)[tagged]
        assert left(table) == set()
    elif history is VersionFate.EXPIRE:
        assert (erased.ending, set(erased.retained)) == ((head,), {"tag:kept"})
        assert after[tagged] == before[tagged]
    else:
        assert (erased.ending, set(erased.retained)) == ((), {"tag:kept", f"version:{head}"})
        assert {id_: after[id_] for id_ in before} == before
    assert (head in after) is (history is VersionFate.REFUSE)


def test_versions_of_another_schema_end_and_a_tag_of_one_stays_and_says_so(jdbc: IcebergDriver) -> None:
    table = jdbc.create("schemas")
    jdbc.append(table, [(PERSON, "p", DAY), (1, "a", DAY)])
    jdbc.add_column(table, "more", "STRING")
    jdbc.append(table, [(2, "b", DAY, "m")])
    old, new = jdbc.native_ids(table)
    erasing = asked(jdbc, table)
    foreseen = ERASING.foresee(erasing.erasure, jdbc.catalog, jdbc.spark)
    assert (foreseen[old].fate, foreseen[new].fate) == (Fate.EXPIRES, Fate.REWRITTEN)
    assert "schema" in (foreseen[old].because or "")
    erased = erasing.erase()
    assert erased.ending == (old,)
    jdbc.create_tag(table, "since", old)
    paths = [path for path in erasing.told if Path(local_path(path) or "").exists()]
    assert "since" in (erasing.purge(erased, paths).because or "")
    assert old in jdbc.native_ids(table), "a tag names it: neither it nor a file goes"
    assert erasing.erase().retained.keys() == {"tag:since"}
    jdbc.spark.sql(f"ALTER TABLE {table.sql} DROP TAG since")
    erasing.both()
    assert left(table) == set()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2}


@pytest.mark.deep
def test_files_by_a_column_that_is_gone_are_rewritten_and_their_versions_are_not(jdbc: IcebergDriver) -> None:
    table = jdbc.create("column_gone", partitioned=True)
    jdbc.append(table, [(PERSON, "p", DAY), (1, "a", DAY)])
    jdbc.spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION FIELD day")
    jdbc.spark.sql(f"ALTER TABLE {table.sql} DROP COLUMN day")
    jdbc.spark.sql(f"INSERT INTO {table.sql} VALUES (2, 'b')")
    jdbc.create_tag(table, "kept")
    erasing = asked(jdbc, table)
    (foreseen,) = {each.because for each in ERASING.foresee(erasing.erasure, jdbc.catalog, jdbc.spark).values()
                   if "tags" in (each.because or "")}  # fmt: skip
    assert "partition" in (foreseen or "")
    erased = erasing.both()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2}
    assert (erased.retained, erased.rewritten_versions) == ({}, ())
    assert {row["id"] for row in rows(jdbc, table, ".tag_kept")} == {1, 2}, "it is put on another version"
    assert left(table) == set()


def test_deletes_by_position_that_hold_rows_go_with_them(jdbc: IcebergDriver) -> None:
    """Older writers put the row beside its position; one file of deletes may be for rows of several people."""
    table = jdbc.create("rows_in_deletes")
    jdbc.append(table, [(PERSON, "p", DAY), (1, "a", DAY)])
    jdbc.append(table, [(OTHER, "o", DAY), (2, "b", DAY)])
    erasing = asked(jdbc, table)
    (mine,) = erasing.erasure.files
    (others,) = {normalise(path) for path in data(table)} - {mine}
    delete_with_rows(jdbc, table, [(mine, 0, PERSON, "p", DAY), (others, 0, OTHER, "o", DAY)])
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2}
    Erasing(jdbc, table, replace(erasing.erasure, found=find(jdbc, table))).both()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2}
    assert left(table) == set()


def delete_with_rows(driver: IcebergDriver, table: Table, deletes: list[tuple[Any, ...]]) -> None:
    def numbered(name: str, type_: pa.DataType, id_: int) -> pa.Field:
        return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})

    row = [numbered("id", pa.int64(), 1), numbered("name", pa.string(), 2), numbered("day", pa.string(), 3)]
    fields = [
        numbered("file_path", pa.string(), 2147483546),
        numbered("pos", pa.int64(), 2147483545),
        numbered("row", pa.struct(row), 2147483544),
    ]
    listed = driver.spark.sql(f"SELECT file_path FROM {table.sql}.files").collect()
    spelled = {normalise(row[0]): row[0] for row in listed}
    said = [
        {"file_path": spelled[path], "pos": pos, "row": {"id": id_, "name": name, "day": day}}
        for path, pos, id_, name, day in deletes
    ]
    java, jvm = load_table(table.id, driver.spark), driver.spark._jvm
    assert jvm is not None
    iceberg, place = jvm.org.apache.iceberg, Path(table.location, "data", "deletes.parquet")
    pq.write_table(pa.Table.from_pylist(said, pa.schema(fields)), place)
    there = java.io().newInputFile(str(place))
    metrics = iceberg.parquet.ParquetUtil.fileMetrics(there, iceberg.MetricsConfig.getDefault())
    described = iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofPositionDeletes().withInputFile(there)
    described = described.withFormat("parquet").withMetrics(metrics)
    java.newRowDelta().addDeletes(described.build()).commit()


def test_a_file_that_a_version_names_again_stays(jdbc: IcebergDriver) -> None:
    """Whoever says what nothing references may be late: the last look is here."""
    table = made(jdbc, "named_again")
    live = sorted(normalise(path) for path in data(table))
    erasing = asked(jdbc, table)
    erased = erasing.erase()
    others = [path for path in live if path not in erasing.erasure.files]
    done = erasing.purge(erased, [*erasing.free(erased), *others])
    assert done.failed.keys() == set(others)
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2, 3, OTHER}


@pytest.mark.deep
def test_row_ids_of_others_stay_in_every_version(jdbc: IcebergDriver) -> None:
    table = made(jdbc, "lineage", variant="v3")
    jdbc.delete(table, "id = 1")
    lineage = "SELECT id, _row_id, _last_updated_sequence_number FROM {}.snapshot_id_{}"

    def ids() -> dict[str, set[Row]]:
        return {id_: set(jdbc.spark.sql(lineage.format(table.sql, id_)).collect()) for id_ in jdbc.native_ids(table)}

    before = ids()
    asked(jdbc, table).both()
    after = ids()
    assert {id_: after[id_] for id_ in before} == {
        id_: {row for row in each if row["id"] != PERSON} for id_, each in before.items()
    }
    assert left(table) == set()


@pytest.mark.deep
def test_a_staged_version_is_rewritten_and_can_be_published(jdbc: IcebergDriver) -> None:
    table = made(jdbc, "staged_person")
    staged = jdbc.stage(table, [(PERSON, "s", DAY), (5, "e", DAY)])
    asked(jdbc, table).both()
    assert left(table) == set()
    jdbc.spark.sql(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES ('write.wap.enabled')")
    jdbc.append(table, [(4, "d", DAY)])
    jdbc.cherry_pick(table, staged)
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2, 3, 4, 5, OTHER}


@pytest.mark.deep
def test_a_catalog_that_is_sent_changes_only_loses_versions_and_says_what_stays(jdbc: IcebergDriver) -> None:
    """As a REST catalog would: nothing is rewritten under its id there, and nobody is told that all is gone."""
    table = made(jdbc, "as_rest")
    _, tagged, head = versions(jdbc, table)
    driver = IcebergDriver(jdbc.spark, replace(jdbc.catalog, type="rest"))
    erasing = asked(jdbc, table)
    foreseen = ERASING.foresee(erasing.erasure, driver.catalog, driver.spark)
    assert (foreseen[tagged].fate, foreseen[head].fate) == (Fate.EXPIRES, Fate.EXPIRES)
    erased = ERASING.erase(erasing.erasure, driver.catalog, driver.spark, erasing.told.update)
    assert (set(erased.ending), erased.rewritten_versions) == ({tagged, head}, ())
    assert erased.retained.keys() == {"manifests"}
    assert {row["id"] for row in rows(jdbc, table)} == {1, 2, 3, OTHER}
    assert {row["id"] for row in rows(jdbc, table, ".tag_kept")} == {1, 2, OTHER}


@pytest.mark.deep
@pytest.mark.parametrize("history", [VersionFate.REWRITE, VersionFate.EXPIRE])
def test_a_partition_called_by_the_person_leaves_no_name_anywhere(jdbc: IcebergDriver, history: VersionFate) -> None:
    """Folders, manifests, lists, statistics, and metadata files of now and before, by what summaries say in them."""
    table = jdbc.create(f"called_{history}", properties={"write.summary.partition-limit": "10"})
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD id")
    jdbc.append(table, [(PERSON, "p", DAY), (OTHER, "o", DAY)])
    jdbc.append(table, [(3, "c", DAY)])
    assert any(layer == "name" for _, layer in left(table))
    assert any(path.endswith(".json") for path, _ in left(table))
    before = versions(jdbc, table)
    erasing = asked(jdbc, table, history=history)
    erasing.both()
    assert left(table) == set()
    assert {row["id"] for row in rows(jdbc, table)} == {1, 3, OTHER}
    if history is VersionFate.REWRITE:
        after = versions(jdbc, table)
        assert {id_: after[id_] for id_ in before} == without(before)
    token = find(jdbc, table).token
    again = asked(jdbc, table)
    again.both()
    assert find(jdbc, table).token == token
    jdbc.append(table, [(4, "d", DAY)])
    assert {row["id"] for row in rows(jdbc, table)} == {1, 3, 4, OTHER}


def test_a_writer_that_was_at_work_in_a_catalog_of_folders_is_refused(
    spark: SparkSession, catalogs: Mapping[str, Catalog]
) -> None:
    """Metadata is numbered there: where 8 is gone, who began at 7 would write it, and nobody would read it."""
    driver = IcebergDriver(spark, catalogs["ice"])
    table = driver.create("numbered", properties={"write.summary.partition-limit": "10"})
    driver.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD id")
    driver.append(table, [(PERSON, "p", DAY), (OTHER, "o", DAY)])
    erasing = asked(driver, table, history=VersionFate.EXPIRE, in_flight_since=datetime.now(UTC) - timedelta(days=1))
    erased = erasing.erase()
    writer, jvm = load_table(table.id, spark).operations(), spark._jvm
    assert jvm is not None
    base = writer.current()
    changed = jvm.org.apache.iceberg.TableMetadata.buildFrom(base).setProperties({"late": "writer"}).build()
    assert erasing.purge(erased) == FileDeletion()
    with pytest.raises(Py4JJavaError, match="CommitFailedException"):
        writer.commit(base, changed)
    later = asked(driver, table, in_flight_since=datetime.now(UTC) + timedelta(days=1))
    named = {path for path in erasing.told if Path(local_path(path) or "").exists()}
    later.purge(later.erase(), sorted({*later.told, *named}))
    assert left(table) == set()
    assert {row["id"] for row in rows(driver, table)} == {OTHER}


@pytest.mark.deep
def test_bounds_of_files_that_are_gone_go_without_a_file_to_rewrite(jdbc: IcebergDriver) -> None:
    """What a search finds after everybody else's work: a row that was deleted and expired, and its entry's bounds."""
    table = jdbc.create("bounds_only")
    jdbc.append(table, [(PERSON, "p", DAY)])
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.compact(table)
    jdbc.delete(table, f"id = {PERSON}")
    jdbc.compact(table)
    jdbc.expire(table)
    erasing = asked(jdbc, table)
    assert erasing.erasure.files == frozenset()
    assert left(table) != set()
    assert erasing.both().rewritten_files == 0
    assert left(table) == set()
    assert {row["id"] for row in rows(jdbc, table)} == {1}
