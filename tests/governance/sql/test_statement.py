"""A file of SQL: its header, `@date`, and what is refused before Spark sees it."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from ebbtide.errors import InputError
from ebbtide.governance.statement import SHIPPED, Severity, Statement, read_statement
from tests.cli.generate import commands


def statement(folder: Path, text: str) -> Statement:
    path = folder / "a.sql"
    path.write_text(text)
    return read_statement(path)


def test_the_date_stands_in_the_text_and_not_in_strings_names_or_comments(tmp_path: Path) -> None:
    text = "SELECT @date, '@date', `@date`, \"@date\" -- @date\nFROM t /* @date */ WHERE d < @DATE"
    assert statement(tmp_path, text).at(date(2026, 1, 31)) == (
        "SELECT DATE'2026-01-31', '@date', `@date`, \"@date\" -- @date\nFROM t /* @date */ WHERE d < DATE'2026-01-31'"
    )


def test_the_header_says_severity_and_description(tmp_path: Path) -> None:
    found = statement(tmp_path, "-- Severity: WARN\n-- One thing,\n-- in two lines.\n\n-- no header\nSELECT 1")
    assert (found.severity, found.description) == (Severity.WARN, "One thing, in two lines.")
    plain = statement(tmp_path, "SELECT 1 -- severity: off")
    assert (plain.severity, plain.description) == (Severity.ERROR, "")


def test_a_place_that_spark_names_is_given_as_the_file_has_it(tmp_path: Path) -> None:
    text = "SELECT 1,\n  @date, @date, wrong FROM t"
    found = statement(tmp_path, text)
    second = found.at(date(2026, 1, 31)).split("\n")[1]
    assert found.where(2, second.index("wrong") + 1).endswith(f"a.sql:2:{text.split(chr(10))[1].index('wrong') + 1}")
    assert found.where(2, 3).endswith("a.sql:2:3")
    assert found.where(1, 8).endswith("a.sql:1:8")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT 1",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
        "FROM t INSERT INTO u SELECT 1",
        "INSERT OVERWRITE DIRECTORY '/x' SELECT 1",
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 1",
        "DELETE FROM t",
        "UPDATE t SET a = 1",
        "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "ALTER TABLE t ADD COLUMN a INT",
        "CALL lake.system.expire_snapshots('t')",
        "VACUUM t",
        "SET a = 1",
        "CACHE TABLE t",
        "ADD JAR 'x.jar'",
        "SELECT TRANSFORM(a) USING 'rm' AS (b) FROM t",
        "SELECT java_method('java.lang.System', 'exit', 0)",
        "SELECT a FROM t WHERE Reflect('a', 'b') = 1",
    ],
)
def test_what_does_more_than_read_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"a\.sql: refused, .*: checks and reports only read") as caught:
        statement(tmp_path, text)
    assert caught.value.exit_code == 2
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a,\n  b FROM WHERE x", r"a\.sql:2:10: not SQL: .*'WHERE'"),
        ("SELECT (1", r"a\.sql:1:\d+: not SQL"),
        ("SELECT 'open", r"a\.sql:1:1: not SQL"),
        ("SELECT 1; SELECT 2", r"a\.sql:1:1: 2 statements stand here"),
        ("-- nothing\n", r"a\.sql:1:1: there is no query"),
        ("SELECT @day", r"a\.sql:1:8: unknown parameter @day"),
        ("SELECT\n  @ date", r"a\.sql:2:3: unknown parameter @"),
        ("-- severity: wran\nSELECT 1", r"a\.sql:1: unknown severity 'wran'"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        statement(tmp_path, text)
    assert caught.value.hint


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(InputError, match="cannot be read"):
        read_statement(tmp_path / "a.sql")


def _shipped_checks() -> list[Path]:
    root = SHIPPED.parent
    return [*sorted(root.glob("shipped/checks/*.sql")), *sorted(root.glob("packs/*/checks/*.sql"))]


@pytest.mark.parametrize("path", _shipped_checks(), ids=lambda path: path.stem)
def test_every_check_that_ships_says_what_to_do_by_a_command_that_there_is(path: Path) -> None:
    statement = read_statement(path)
    verbs = {name for name, _ in commands()}
    named = re.findall(r"`ebbtide ([a-z]+(?: [a-z]+)?)", statement.do)
    assert named, "what to do, as a command in backticks"
    assert all(words in verbs or words.partition(" ")[0] in verbs for words in named)
    assert statement.description
    assert "do:" not in statement.description


def test_what_to_do_is_read_from_the_header_and_is_no_description(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("-- severity: warn\n-- do: `ebbtide scan`\n-- Why.\nSELECT 1 AS n")
    statement = read_statement(path)
    assert (statement.do, statement.description, statement.severity.value) == ("`ebbtide scan`", "Why.", "warn")
