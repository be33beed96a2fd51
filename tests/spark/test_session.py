"""Sessions beside the project's own: for plans, and for catalogs whose names are taken."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import RDD
from pyspark.errors import ParseException
from pyspark.sql import Row, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.class_archive import archive_file
from ebbtide.spark.frames import own_parquet, small_frame
from ebbtide.spark.session import (
    JAVA_OPTIONS,
    activate,
    java_options,
    of_formats,
    plan_session,
    profile,
    session,
    sibling,
)

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


def test_a_session_beside_another_has_all_settings_of_its_project_that_a_session_can_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own, those that only a library knows, and those of file systems. A context's are its starter's."""
    asked = {
        "spark.sql.shuffle.partitions": "7",
        "spark.acme.audit": "on",
        "spark.hadoop.fs.acme.endpoint": "http://127.0.0.1:1",
        "spark.executor.memory": "9g",
        "spark.sql.extensions": "acme.Extension",
    }
    try:
        session([_catalog("asking", tmp_path / "a")], master="local[1]")
        beside = session([_catalog("asking", tmp_path / "b")], conf=asked)
        assert beside.conf.get("spark.sql.shuffle.partitions") == "7"
        assert beside.conf.get("spark.acme.audit") == "on"
        any_: Any = beside
        hadoop = any_._jsparkSession.sessionState().newHadoopConf()
        assert hadoop.get("fs.acme.endpoint") == "http://127.0.0.1:1"
        assert beside.conf.get("spark.executor.memory", "") != "9g"
        assert beside.conf.get("spark.sql.extensions") != "acme.Extension"
    finally:
        activate(spark)


def test_a_local_session_has_its_classes_from_the_archive_of_set_up(spark: SparkSession) -> None:
    """Java goes without an archive that does not fit its jars, and says nothing: the start would just take longer."""
    context: Any = spark.sparkContext
    if not context.master.startswith("local"):
        pytest.skip("on a cluster, jars are sent to the executors")
    java = context._gateway.proc.pid
    assert str(archive_file()) in Path(f"/proc/{java}/maps").read_text()
    assert "SPARK_DIST_CLASSPATH" not in os.environ, "a child may run another Spark"


def test_a_session_for_plans_is_plain_and_leaves_the_callers_alone(spark: SparkSession) -> None:
    bound = RDD.toDF
    plans = plan_session(spark, few_rows=True)
    assert RDD.toDF is bound
    assert plans.conf.get(ZONE) == "UTC"
    assert plans.conf.get("spark.sql.shuffle.partitions") == "1"
    frame = small_frame(plans, [(1, datetime(2026, 1, 1, tzinfo=UTC))], "n int, at timestamp")
    assert SparkSession.getActiveSession() is not None
    assert SparkSession.getActiveSession() is not plans
    joined = frame.join(small_frame(plans, [], "n int, x string"), "n", "left")
    assert joined.selectExpr("n", "unix_seconds(at) AS at", "x").collect() == [Row(n=1, at=1767225600, x=None)]
    if profile() == "spark35":
        with pytest.raises(ParseException):
            plans.sql("CALL lake.system.ancestors_of('db.t')")


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


def test_a_project_with_java_options_of_its_own_has_the_archive_of_classes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr("ebbtide.spark.class_archive.archive_file", lambda: archive)
    assert java_options("-Xss4m", has_archive=True) == "-Xss4m", "there is none"
    archive.touch()
    used = f" -XX:SharedArchiveFile={archive} "
    assert java_options(None, has_archive=True).startswith(JAVA_OPTIONS + used)
    assert java_options("-Xss4m", has_archive=True).startswith("-Xss4m" + used)
    assert java_options("-Xss4m", has_archive=False) == "-Xss4m"
    assert java_options("-XX:SharedArchiveFile=own.jsa", has_archive=True) == "-XX:SharedArchiveFile=own.jsa"
