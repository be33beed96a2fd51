"""The engine computes from what it is handed: no folder's name, no machine and no network has a say."""

from __future__ import annotations

import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebbtide.kernel.engine import beside, connection, hand_in, literal, save, scan

ODD = ("table_id=zz", "[a]", "*", "?q", "läke ${x} [b]", "it's", "a%20b", "{x}")


@pytest.mark.parametrize("name", ODD)
def test_a_folder_is_a_name_and_neither_a_pattern_nor_a_value(tmp_path: Path, name: str) -> None:
    for folder, value in ((name, "own"), ("a", "another"), ("bq", "another"), ("table_id=yy", "another")):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"table_id": [value]}), tmp_path / folder / "f.parquet")
    with connection() as engine:
        assert engine.execute(f"SELECT * FROM {scan([tmp_path / name / 'f.parquet'])}").fetchall() == [("own",)]
        hand_in(engine, "rows", pa.table({"x": [1, 2]}))
        save(engine, "rows", tmp_path / name / "out.parquet")
    assert pq.read_table(tmp_path / name / "out.parquet", partitioning=None).to_pydict() == {"x": [1, 2]}


def test_files_of_older_columns_are_read_as_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2], "b": ["x"]}), tmp_path / "2.parquet")
    with connection() as engine:
        files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
        assert engine.execute(f"SELECT a, b FROM {scan(files)} ORDER BY a").fetchall() == [(1, None), (2, "x")]


def test_nothing_is_fetched_and_what_is_spilled_is_private() -> None:
    with connection() as engine:
        settings = dict(engine.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"
        assert settings["TimeZone"] == "UTC"
        spill = Path(settings["temp_directory"])
        assert stat.S_IMODE(spill.stat().st_mode) == 0o700
        with pytest.raises(duckdb.Error):
            engine.execute("SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')").fetchall()
    assert not spill.exists()


@pytest.mark.parametrize("text", ["it's", "", "'; DROP TABLE x; --", "a\nb", "\\", "ü\U0001f600"])
def test_a_literal_is_the_text(text: str) -> None:
    with connection() as engine:
        assert engine.execute(f"SELECT {literal(text)}").fetchall() == [(text,)]


def test_connections_to_one_engine_do_not_see_each_others_tables() -> None:
    with connection() as engine:
        hand_in(engine, "rows", pa.table({"x": [1]}))
        with beside(engine) as other:
            assert other.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
            hand_in(other, "rows", pa.table({"x": [2]}))
            assert other.execute("SELECT x FROM rows").fetchall() == [(2,)]
        assert engine.execute("SELECT x FROM rows").fetchall() == [(1,)]
