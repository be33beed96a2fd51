"""Sessions beside the project's own: for plans, and for catalogs whose names are taken."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import RDD
from pyspark.errors import ParseException
from pyspark.sql import Row, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.plan.world import settled
from ebbtide.spark.frames import own_parquet, small_frame
from ebbtide.spark.session import activate, of_formats, plan_session, profile, session, sibling

ZONE = "spark.sql.session.timeZone"


def _catalog(name: str, root: Path, **options: str) -> Catalog:
    return Catalog(name, "iceberg", str(root), "hadoop", options)


def test_a_name_that_is_taken_gets_a_session_of_its_own_with_all_settings(spark: SparkSession, tmp_path: Path) -> None:
    """The running session may be anybody's: its time zone is not the project's, nor are its catalogs."""
    first = session([_catalog("twice", tmp_path / "a", io="x")], master="local[1]")
    warehouse = "spark.sql.catalog.twice.warehouse"
    zone = first.conf.get(ZONE)
    first.conf.set(ZONE, "Asia/Tokyo")
    try:
        other = session([_catalog("twice", tmp_path / "b", io="x")], conf={"spark.sql.shuffle.partitions": "7"})
        assert (first.conf.get(warehouse), other.conf.get(warehouse)) == (str(tmp_path / "a"), str(tmp_path / "b"))
        assert other.conf.get(ZONE) == "UTC"
        assert other.conf.get("spark.sql.shuffle.partitions") == "7"
        assert SparkSession.getActiveSession() is other
        # The same place by other means is another catalog, too; and who asks again gets the same session again.
        assert session([_catalog("twice", tmp_path / "a")]) is not first
        again = session([_catalog("twice", tmp_path / "b", io="x")], conf={"spark.sql.shuffle.partitions": "7"})
        assert again is other
        assert sibling(other).conf.get(warehouse) == str(tmp_path / "b"), "not what the context says"
        assert session([_catalog("twice", tmp_path / "a", io="x")], master="local[1]")._jsparkSession.equals(
            first._jsparkSession
        )
    finally:
        first.conf.set(ZONE, str(zone))
        activate(spark)


def test_a_session_for_plans_is_plain_and_leaves_the_callers_alone(spark: SparkSession) -> None:
    bound = RDD.toDF
    plans = plan_session(spark, few_rows=True)
    assert RDD.toDF is bound
    assert plans.conf.get(ZONE) == "UTC"
    assert plans.conf.get("spark.ebbtide.fewRows") == "true"
    frame = small_frame(plans, [(1, datetime(2026, 1, 1, tzinfo=UTC))], "n int, at timestamp")
    assert SparkSession.getActiveSession() is not None
    assert SparkSession.getActiveSession() is not plans
    joined = frame.join(small_frame(plans, [], "n int, x string"), "n", "left")
    assert joined.selectExpr("n", "unix_seconds(at) AS at", "x").collect() == [Row(n=1, at=1767225600, x=None)]
    if profile() == "spark35":
        with pytest.raises(ParseException):
            plans.sql("CALL lake.system.ancestors_of('db.t')")


SCHEMA = (
    "i bigint, t timestamp, d date, dec decimal(20,5), b binary, m map<string,int>, "
    "s struct<a: int, deep: struct<t: timestamp, xs: array<string>>>, runs array<struct<first: int, last: int>>"
)
VALUES: list[tuple[Any, ...]] = [
    (None,) * 8,
    (1, datetime(2026, 3, 29, 2, 30, 0, 123456, UTC), date(2026, 3, 29), Decimal("1.00001"), b"\x00\xff", {"a": 1},
     (1, (datetime(1970, 1, 1, tzinfo=UTC), ["", "é", None])), [(1, 2), (4, 4)]),
    (-(2**63), datetime(1582, 10, 4, 23, 59, 59, 999999, UTC), date(1582, 10, 4), Decimal("-0.00001"), b"", {},
     (None, None), []),
    (2**63 - 1, datetime(1, 1, 2, tzinfo=UTC), date(1, 1, 1), None, None, {"x": None}, None, [None]),
    (0, datetime(9999, 12, 30, tzinfo=UTC), date(9999, 12, 31), Decimal("99999.99999"), b"a", None,
     (3, (None, [])), None),
]  # fmt: skip


def test_what_is_settled_keeps_every_value(spark: SparkSession) -> None:
    """Rows pass through Java objects: no time, no NULL and no nested value may change on the way."""
    plans = plan_session(spark, few_rows=True)
    frame = plans.createDataFrame(VALUES, SCHEMA)
    exact = [
        "hex(b)",
        "map_entries(m)",
        "unix_micros(t)",
        "unix_date(d)",
        "unix_micros(s.deep.t)",
        "to_json(struct(*))",
    ]
    exact += [f"hash({column})" for column in ("i", "t", "d", "dec", "s", "runs")]
    after = settled(frame)
    assert after.schema == frame.schema
    assert after.selectExpr(*exact).collect() == frame.selectExpr(*exact).collect()
    assert SparkSession.getActiveSession() is not plans, "a frame made in it leaves the thread's session alone"


def test_no_session_of_ours_puts_variables_into_names(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would take `users${x}` for `users`, inside backticks too: a statement for one table would hit another."""
    switch = "spark.sql.variable.substitute"
    asked = session([_catalog("substitutes", tmp_path / "a")], master="local[1]", conf={switch: "true"})
    beside = session([_catalog("substitutes", tmp_path / "b")], conf={switch: "true"})
    sessions = [spark, asked, beside, sibling(spark), of_formats(spark, "iceberg")]
    try:
        for one in (*sessions, plan_session(spark, few_rows=True), plan_session(spark, few_rows=False)):
            assert one.sql("SELECT 1 AS `a${x}`").columns == ["a${x}"]
    finally:
        activate(spark)


def test_somebody_elses_session_is_left_as_it_is_and_runs_none_of_our_statements(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = spark.newSession()
    theirs.conf.unset("spark.ebbtide.ours")
    theirs.conf.set(ZONE, "Asia/Tokyo")
    theirs.conf.set("spark.sql.variable.substitute", "true")
    before = dict(theirs._jsparkSession.sessionState().conf().settings())
    monkeypatch.setattr(SparkSession, "_instantiatedSession", theirs)
    try:
        ours = session([_catalog("guest", tmp_path)], master="local[1]")
        assert not ours._jsparkSession.equals(theirs._jsparkSession)
        assert ours.conf.get("spark.sql.catalog.guest.warehouse") == str(tmp_path)
        assert ours.conf.get(ZONE) == "UTC"
        assert ours.sql("SELECT 1 AS `a${x}`").columns == ["a${x}"]
        after = dict(theirs._jsparkSession.sessionState().conf().settings())
        assert after == before
        assert theirs.sql("SELECT 1 AS `a${x}`").columns == ["a"]
    finally:
        activate(spark)


def test_our_own_files_are_read_where_a_folder_is_named_like_an_address_or_a_pattern(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("a b", "ü", "a%20b", "${x}", "[ab]", "{a,b}", "*", "a#b", "x=1"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"name": [name]}), tmp_path / name / "f.parquet")
    for name in ("a b", "ü", "a%20b", "${x}", "[ab]", "{a,b}", "*", "a#b", "x=1"):
        rows = own_parquet(spark, tmp_path / name / "f.parquet").collect()
        assert rows == [Row(name=name)]
