"""The oracle shares nothing with what it checks, and sees a file that went and a row that changed."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.oracle import lake_by_hand as oracle
from tests.property import delta_tables, iceberg_tables


def test_it_imports_no_line_of_ebbtide_and_no_library_of_a_format() -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(Path(oracle.__file__).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported == {
        "__future__", "json", "sqlite3", "collections", "dataclasses", "pathlib", "typing", "urllib", "fastavro",
        "pyarrow",
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
