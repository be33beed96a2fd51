"""A hot table read to its last row by the eye that trusts nobody (spec §4.5)."""

from __future__ import annotations

import pytest

from ebbtide.app.hot_places import search_hot
from ebbtide.app.state import open_state
from ebbtide.verify.matcher import Matcher
from ebbtide.verify.needles import Needle
from ebbtide.verify.report import Grade, ObjectsRead, SearchReport
from ebbtide.verify.server import NOT_READ, search_table
from tests.hottier.tier import TABLE, Hot

_ANY = frozenset({"string", "bigint", "decimal(38,0)", "date", "binary"})
_UUID = "0d7f8a52-8a7e-4b83-9c6e-1f0c2a9d3b11"


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("text", "ada@example.org", "ada@example.org"), ("text", "ada@example.org", "a, \"b\"\n<ada@example.org>"),
        ("bigint", "8841302007", 8841302007), ("numeric(20,2)", "8841302007", 8841302007), ("uuid", _UUID, _UUID),
        ("bytea", "ada@example.org", b"ada@example.org"), ("jsonb", "ada@example.org", '{"to": ["ada@example.org"]}'),
        ("text[]", "ada@example.org", ["x", "ada@example.org"]), ("date", "2024-02-29", "2024-02-29"),
    ],
)  # fmt: skip
def test_a_value_is_found_in_a_column_of_any_type(hot: Hot, column: str, value: str, stored: object) -> None:
    hot.sql.execute(f'CREATE TABLE "odd ""t" (at timestamptz, x {column}, y text)')
    hot.sql.execute('INSERT INTO "odd ""t" VALUES (now(), NULL, \'\'), (now(), %s, NULL)', [stored])
    matcher = Matcher([Needle("ada", "i", value, _ANY), Needle("bob", "i", "9" + value, _ANY)])
    found = search_table(hot.sql, ("public", 'odd "t'), matcher)
    assert found.found == {(0, "row", "column x")}


def test_what_the_planner_keeps_of_a_person_is_found(hot: Hot) -> None:
    hot.fill(1)
    hot.sql.execute("UPDATE m SET v = 'ada@example.org'")
    hot.sql.execute("ANALYZE m")
    hot.sql.execute("UPDATE m SET v = 'x'")
    found = search_table(hot.sql, ("public", "m"), Matcher([Needle("ada", "i", "ada@example.org", _ANY)]))
    assert found.found == {(0, "bound", "statistics of column v")}


@pytest.mark.parametrize(
    ("made", "what"),
    [
        ("CREATE INDEX i ON m ((upper(v)))", "column upper"), ("CREATE STATISTICS s (mcv) ON v, n FROM m", "s"),
        ("CREATE STATISTICS s ON (upper(v)) FROM m", "s"),
    ],
)  # fmt: skip
def test_what_the_planner_keeps_of_expressions_and_of_columns_together_is_found(hot: Hot, made: str, what: str) -> None:
    hot.fill(1)
    hot.sql.execute("UPDATE m SET v = 'ADA@EXAMPLE.ORG', n = 1")
    hot.sql.execute(made)
    hot.sql.execute("ANALYZE m")
    hot.sql.execute("UPDATE m SET v = 'x'")
    hot.sql.execute("DELETE FROM pg_statistic WHERE starelid = 'm_1'::regclass")
    hot.sql.execute("DELETE FROM pg_statistic WHERE starelid = 'm'::regclass")
    found = search_table(hot.sql, ("public", "m"), Matcher([Needle("ada", "i", "ADA@EXAMPLE.ORG", _ANY)]))
    assert found.found == {(0, "bound", f"statistics of {what}")}


def test_nobody_is_graded_a_beside_a_hot_table_and_whoever_is_there_is_found(hot: Hot) -> None:
    hot.fill(1)
    needles = [Needle("ada", "i", "1003", _ANY), Needle("bob", "i", "777003", _ANY)]
    nothing = SearchReport(1, 1, ObjectsRead(()), (), ())
    report = search_hot(hot.tide.project, open_state(hot.tide.project), needles, nothing)
    assert (report.grade("ada"), report.grade("bob")) == (Grade.F, Grade.B)
    (found,) = report.found
    assert (found.person, found.path, found.role, found.dataset) == ("ada", TABLE, "hot table", TABLE)
    assert (TABLE, NOT_READ) in report.cannot_tell
    hot.dsn = "host=/nowhere user=postgres dbname=x"
    hot.write(hot.policy)
    report = search_hot(hot.tide.project, open_state(hot.tide.project), needles, nothing)
    assert (report.grade("ada"), report.found) == (Grade.B, ())
    assert any("nothing listens there" in because for _, because in report.cannot_tell)
