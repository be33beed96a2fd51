"""A real Spark job with the OpenLineage listener posts to `lineage listen`, and its lineage carries labels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.spark import jars
from ebbtide.spark.fetch import fetch
from ebbtide.spark.session import profile
from tests.cli.command import cold
from tests.cli.listener import listening

# The listener's Iceberg support knows Hadoop catalogs; of JDBC ones it sends no datasets (docs/limits.md).
PROJECT = "project: acme\ncatalogs:\n  ice: {format: iceberg, type: hadoop, warehouse: ./ice}\n"
JOB = """\
import sys
from ebbtide.config import load_project
from ebbtide.spark import jars
from ebbtide.spark.session import session

conf = {
    "spark.jars": ",".join(str(path) for name in ("spark35", "openlineage") for path in jars.paths(name)),
    "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
    "spark.openlineage.transport.type": "http",
    "spark.openlineage.transport.url": sys.argv[1].removesuffix("/api/v1/lineage"),
    "spark.openlineage.namespace": "etl",
    "spark.driver.memory": "2g",
}
spark = session(load_project(__import__("pathlib").Path(".")).catalogs.values(), master="local[1]", conf=conf)
spark.sql("CREATE TABLE ice.app.users (uid string, email string, country string) USING iceberg")
spark.sql("CREATE TABLE ice.app.weekly (uid string, mail_hash string) USING iceberg")
spark.sql("INSERT INTO ice.app.weekly SELECT uid, sha2(email, 256) FROM ice.app.users WHERE country = 'x'")
spark.stop()
"""


@pytest.fixture
def listener_jar() -> None:
    if profile() != "spark35":
        pytest.skip("the listener's jar is locked for Spark 3.5 only")
    fetch(jars.locked("openlineage"))


@pytest.mark.jvm
@pytest.mark.usefixtures("listener_jar")
def test_a_real_job_posts_its_column_lineage_and_labels_follow_it(tmp_path: Path) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "ice").mkdir()
    with listening(tmp_path, seconds=300) as address:
        command = [sys.executable, "-c", JOB, address]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, env=os.environ)
        assert done.returncode == 0, done.stderr[-2000:]
    assert cold("scan", "--history-only", cwd=tmp_path).returncode == 0
    (tmp_path / "classifiers").mkdir()
    (tmp_path / "classifiers" / "c.yml").write_text(
        "classifiers: [{name: PII, kind: column, propagate: true, labels: [tag]}]\n"
    )
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.yml").write_text("tables: [{name: ice.app.users, columns: {email: [PII.tag]}}]\n")
    told = json.loads(cold("lineage", "--json", cwd=tmp_path).stdout)
    edges = {(e["source_column"], e["target_column"], e["kind"], e["masking"]) for e in told["edges"]}
    assert edges == {
        ("ice.app.users.uid", "ice.app.weekly.uid", "direct", False),
        ("ice.app.users.email", "ice.app.weekly.mail_hash", "direct", True),
        ("ice.app.users.country", "ice.app.weekly.uid", "indirect", False),
        ("ice.app.users.country", "ice.app.weekly.mail_hash", "indirect", False),
    }
    assert told["problems"] == []
    labels = json.loads(cold("labels", "ice.app.weekly", "--json", cwd=tmp_path).stdout)
    assert labels["labels"] == ["TableContent.user_data"]
