"""The oracle shares nothing with what it checks, and sees a file that went and a row that changed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from tests.conformance.drivers import load_driver
from tests.oracle import lake_by_hand as oracle
from tests.oracle import oldest_first_by_hand
from tests.property import delta_tables, iceberg_tables


def test_it_imports_no_line_of_ebbtide_and_no_library_of_a_format() -> None:
    imported = {
        name if name.startswith("tests") else name.split(".")[0]
        for module in (oracle, oldest_first_by_hand)
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported == {
        "__future__", "json", "sqlite3", "collections", "dataclasses", "pathlib", "typing", "urllib", "fastavro",
        "pyarrow", "tests.oracle.lake_by_hand",
    }  # fmt: skip


def test_it_sees_what_iceberg_itself_reads_and_what_is_missing(tmp_path: Path) -> None:
    lake = iceberg_tables.Lake("ice", tmp_path / "catalog.db", tmp_path / "ice")
    catalog = lake.open()
    catalog.create_namespace("db")
    iceberg_tables.build(lake, 3, [("both_1", {})])
    table = catalog.load_table("db.both_1")
    seen = oracle.iceberg(lake.database, "ice")["both_1"]
    head = table.current_snapshot()
    assert head is not None
    assert seen.heads["branch:main"] == str(head.snapshot_id)
    assert set(seen.versions) == {str(s.snapshot_id) for s in table.snapshots()}
    assert sorted(row[1] for row in seen.rows["branch:main"]) == sorted(table.scan().to_arrow()["id"].to_pylist())
    assert not any(seen.missing(version) for version in seen.versions)
    gone = next(path for path in seen.versions[str(head.snapshot_id)] if path.suffix == ".avro")
    gone.unlink()
    assert oracle.iceberg(lake.database, "ice")["both_1"].missing(str(head.snapshot_id)) == {gone}


def test_it_sees_what_delta_itself_reads_and_what_is_missing(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    delta_tables.build(tmp_path, 4, [("days_1", {})])
    table = DeltaTable(str(tmp_path / "db" / "days_1"))
    seen = oracle.delta(tmp_path)["days_1"]
    assert seen.heads == {"branch:main": str(table.version())}
    assert {path.name for path in seen.versions[str(table.version())] if path.suffix == ".parquet"} == {
        Path(uri).name for uri in table.file_uris()
    }
    assert seen.rows["branch:main"]
    gone = next(path for path in seen.versions["0"] if path.suffix == ".parquet")
    gone.unlink()
    assert seen.missing("0") == {gone}


def test_it_sees_what_paimon_itself_reads_and_what_is_missing(
    spark: SparkSession, catalogs: Mapping[str, Catalog]
) -> None:
    driver = load_driver(spark, catalogs["stream"])
    table = driver.create("by_hand", variant="key", properties={"avro.codec": "deflate"})
    driver.append(table, [(1, "a", "d")])
    driver.create_tag(table, "keep")
    driver.append(table, [(2, "b", "d")])
    driver.overwrite(table, [(3, "c", "d")])
    folder = Path(table.location)
    seen = oldest_first_by_hand.paimon_table(folder)
    assert seen.heads == {"branch:main": "main/3", "tag:keep": "main/1"}
    live = {Path(row.file_path).name for row in spark.table(f"{table.sql[:-1]}$files`").collect()}
    assert {path.name for path in seen.versions["main/3"] if path.suffix == ".parquet"} == live
    assert set(seen.versions) == {"main/1", "main/2", "main/3"}
    assert not any(seen.missing(version) for version in seen.versions)
    driver.expire(table)
    after = oldest_first_by_hand.paimon_table(folder)
    assert set(after.versions) == {"main/1", "main/3"}, "a tag keeps what it names"
    assert not any(after.missing(version) for version in after.versions)
    (gone,) = {path for path in after.versions["main/1"] if path.suffix == ".parquet"}
    gone.unlink()
    assert {path.name for path in oldest_first_by_hand.paimon_table(folder).missing("main/1")} == {gone.name}


def test_it_sees_what_a_savepoint_of_hudi_pins(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> None:
    driver = load_driver(spark, catalogs["cdc"])
    table = driver.create("by_hand")
    driver.append(table, [(1, "a", "d")])
    driver.create_tag(table, "keep")
    driver.overwrite(table, [(3, "c", "d")])
    seen = oldest_first_by_hand.hudi_table(Path(table.location))
    (version,) = seen.versions
    assert version == f"tag:{driver.native_ids(table)[0]}"
    assert not seen.missing(version)
    (gone,) = {path for path in seen.versions[version] if path.suffix == ".parquet"}
    gone.unlink()
    assert seen.missing(version) == {gone}
