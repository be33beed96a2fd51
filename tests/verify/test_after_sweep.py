"""The proof after a sweep, on real tables that are damaged on purpose: what is wrong is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.verify.after_sweep import Findings, Missing, check_datasets
from tests.conformance.driver import Table
from tests.conformance.drivers import load_driver
from tests.inventory.lakes import SmallLake


class Tables:
    """An Iceberg and a Delta table, written without a session."""

    def __init__(self, root: Path) -> None:
        self.lake = SmallLake(root)
        self.iceberg = self.lake.create("t", 3)
        self.delta = root / "delta" / "db" / "d"
        for n in range(3):
            write_deltalake(str(self.delta), pa.table({"id": [n], "name": ["x"]}), mode="append")
        self.catalogs = [self.lake.catalog, Catalog("events", "delta", str(root / "delta"))]
        self.work = [
            (catalog, found)
            for catalog in self.catalogs
            for found in load_format(catalog.format).discover(catalog)
            if isinstance(found, TableHandle)
        ]

    def check(self) -> Findings:
        return check_datasets(self.work, None)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def test_whole_tables_pass_and_every_referenced_file_was_looked_at(tables: Tables) -> None:
    found = tables.check()
    assert found
    on_disk = [p for folder in (tables.iceberg, tables.delta) for p in folder.rglob("*") if p.is_file()]
    assert (found.datasets, found.files) == (2, len(on_disk))


def test_nothing_looked_at_proves_nothing() -> None:
    assert not check_datasets([], None)


def test_a_missing_file_is_found_in_each_format(tables: Tables) -> None:
    gone = [next(tables.iceberg.glob("data/*.parquet")), next(tables.delta.glob("*.parquet"))]
    for path in gone:
        path.unlink()
    found = tables.check()
    assert not found
    assert found.missing == (
        Missing("lake.db.t", f"file://{gone[0]}"),
        Missing("events.db.d", f"file://{gone[1]}"),
    )
    assert found.unreadable == ()


def test_what_writers_take_away_between_the_reading_and_the_look_is_no_finding(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts of the log are renamed, old files vacuumed, metadata replaced: a busy table proves as a quiet one."""
    log = tables.delta / "_delta_log"
    drafts = [
        log / f".{3:020}.json.{'0' * 8}.tmp",
        log / f"..{3:020}.json.{'0' * 8}.tmp.crc",
        log / "_commit_1.json.tmp",
    ]
    for draft in drafts:
        draft.write_text("{}")
    assert tables.check(), "drafts are nobody's references"
    formats = {name: type(load_format(name)) for name in ("delta", "iceberg")}
    reads = {name: format_.read for name, format_ in formats.items()}
    done: set[str] = set()

    def busy(name: str) -> Callable[..., Reading]:
        def read(*args: Any) -> Reading:
            reading = reads[name](*args)
            if name not in done:
                done.add(name)
                _replace_all(tables, name)
            return reading

        return read

    for name, format_ in formats.items():
        monkeypatch.setattr(format_, "read", busy(name))
    for draft in drafts:
        draft.unlink()
    assert tables.check()
    assert done == {"delta", "iceberg"}


def _replace_all(tables: Tables, name: str) -> None:
    """All of a table's files are replaced, and what was there before is gone."""
    if name == "delta":
        write_deltalake(str(tables.delta), pa.table({"id": [9], "name": ["y"]}), mode="overwrite")
        DeltaTable(str(tables.delta)).vacuum(0, dry_run=False, enforce_retention_duration=False)
        return
    old = tables.lake.metadata_file("t")
    with tables.lake.tables.load_table(("db", "t")).transaction() as transaction:
        transaction.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    old.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def _spoil_footer(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40:-8] = b"\xff" * 32
    path.write_bytes(content)


def _other_rows(path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(999)), "name": ["y"] * 999}), path)


@pytest.mark.parametrize("damage", [_cut, _spoil_footer, _other_rows])
@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_a_damaged_data_file_is_found(tables: Tables, format_: str, damage: Callable[[Path], None]) -> None:
    pattern = {"iceberg": tables.iceberg.glob("data/*.parquet"), "delta": tables.delta.glob("*.parquet")}
    victim = next(pattern[format_])
    damage(victim)
    found = tables.check()
    assert not found
    assert [each.path for each in found.unreadable] == [f"file://{victim}"]
    assert found.missing == ()


def test_a_dataset_that_cannot_be_read_is_a_finding(tables: Tables) -> None:
    next(tables.iceberg.glob("metadata/*-m0.avro")).unlink()
    found = tables.check()
    assert not found
    (broken,) = found.unreadable
    assert (broken.dataset, broken.path) == ("lake.db.t", None)
    assert found.datasets == 2


def test_a_missing_old_metadata_file_is_found(tables: Tables) -> None:
    log = sorted(tables.iceberg.glob("metadata/*.metadata.json"))
    log[0].unlink()
    assert [each.path for each in tables.check().missing] == [f"file://{log[0]}"]


@contextmanager
def _damaged(path: Path, damage: Callable[[Path], None]) -> Iterator[None]:
    content = path.read_bytes()
    damage(path)
    try:
        yield
    finally:
        path.write_bytes(content)


def _checks(spark: SparkSession, catalog: Catalog, table: Table) -> Callable[[], Findings]:
    answers = load_format(catalog.format).discover(catalog)
    (found,) = [answer for answer in answers if isinstance(answer, TableHandle) and answer.id == table.id]
    return lambda: check_datasets([(catalog, found)], spark)


def _assert_found(check: Callable[[], Findings], opened: Path, measured: Path | None) -> None:
    """A footer is read; of what has none the size is compared; what is gone is missing. Then all is whole again."""
    assert check()
    for path, damage in ((opened, _spoil_footer), (opened, _cut), *([(measured, _cut)] if measured else [])):
        with _damaged(path, damage):
            found = check()
        assert ([each.path for each in found.unreadable], found.missing) == ([f"file://{path}"], ())
    for path in filter(None, (opened, measured)):
        with _damaged(path, Path.unlink):
            found = check()
        assert (found.unreadable, [each.path for each in found.missing]) == ((), [f"file://{path}"])
    assert check()


def test_a_damaged_base_or_log_file_of_hudi_is_found(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> None:
    driver = load_driver(spark, catalogs["cdc"])
    table = driver.create("damaged", variant="mor")
    driver.append(table, [(1, "a", "2026-01-01"), (2, "b", "2026-01-01")])
    driver.delete(table, "id = 1")
    folder = Path(table.location)
    (base,), (log,) = folder.glob("*.parquet"), folder.glob(".*.log.*[!c]")
    _assert_found(_checks(spark, catalogs["cdc"], table), base, log)


def test_a_damaged_data_file_of_paimon_is_found(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> None:
    driver = load_driver(spark, catalogs["stream"])
    table = driver.create("damaged", properties={"file.format": "orc"})
    driver.append(table, [(1, "a", "2026-01-01")])
    (data,) = Path(table.location).glob("bucket-0/*.orc")
    check = _checks(spark, catalogs["stream"], table)
    _assert_found(check, data, None)
    (manifest,) = Path(table.location).glob("manifest/manifest-[!l]*")
    with _damaged(manifest, Path.unlink):
        assert not check(), "without its manifest nothing is known of the table"
