"""Nobody is shown: values of people are searched for in all that the verbs of `erase` print, log, and leave behind."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ebbtide.spark.people import ENCRYPTED, people_frame
from tests.cli.command import cold
from tests.inventory.lakes import SmallLake

NUMBER, MAIL = 8841302884130211, "a8841302@example.org"
PROJECT = """\
project: leaks
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
ledger: {origin: example.org/leaks}
spark:
  master: "local[1]"
  conf:
    spark.eventLog.enabled: "true"
    spark.eventLog.compress: "false"
    spark.eventLog.dir: "file://FOLDER/events"
    spark.local.dir: "FOLDER/spark"
    spark.sql.maxPlanStringLength: "10000000"
"""
SUBJECTS = """\
subjects:
  user_id: {columns: [lake.db.users.id, lake.db.logins.id]}
  email: {columns: [lake.db.users.name], match: casefold}
identities:
  - {table: lake.db.users, key: user_id, gives: {email: name}}
"""
THEIRS = ("lake", "person.txt", "rows.jsonl")
"""Where the person may stand: the lake itself, the file that names her, and the file of her own rows."""


@pytest.mark.jvm
def test_no_value_of_a_person_is_printed_logged_or_left_behind(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    for table in ("users", "logins", "broken"):
        lake.create(table)
    lake.tables.load_table("db.users").append(pa.table({"id": [NUMBER], "name": [MAIL.upper()]}))
    lake.tables.load_table("db.logins").append(pa.table({"id": [NUMBER, 5], "name": ["x", "y"]}))
    for folder in ("events", "spark"):
        (tmp_path / folder).mkdir()
    (tmp_path / "ebbtide.yml").write_text(PROJECT.replace("FOLDER", str(tmp_path)))
    (tmp_path / "subjects.yml").write_text(SUBJECTS)
    (tmp_path / "person.txt").write_text(f"user_id={NUMBER}\n")
    assert cold("scan", cwd=tmp_path).returncode == 0
    noisy = ("--verbose", "--log-file", "log.txt")
    filed = cold(*noisy, "erase", "request", "--subject", "@person.txt", "--law", "gdpr", cwd=tmp_path)
    assert filed.returncode == 0, filed.stderr
    asked = filed.stdout.strip()
    found = cold(*noisy, "erase", "find", asked, "--rows", "rows.jsonl", "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    places = json.loads(found.stdout)["places"]
    assert {(each["dataset"], each["rows"]) for each in places} == {("lake.db.users", 1), ("lake.db.logins", 1)}
    assert (tmp_path / "rows.jsonl").stat().st_mode & 0o777 == 0o600
    assert MAIL.upper() in (tmp_path / "rows.jsonl").read_text()
    verified = cold(*noisy, "erase", "verify", asked, "--json", cwd=tmp_path)
    assert (verified.returncode, json.loads(verified.stdout)["grade"]) == (1, "F")
    files = {path: path.read_bytes() for path in (tmp_path / "lake" / "db" / "logins" / "data").glob("*.parquet")}
    for path, content in files.items():
        path.write_bytes(content[:50])
    broken = cold(*noisy, "erase", "find", "--subject", "@person.txt", "--csv", cwd=tmp_path)
    assert broken.returncode == 4, broken.stderr
    assert "lake.db.logins" in broken.stderr
    for path, content in files.items():
        path.write_bytes(content)
    planned = cold(*noisy, "erase", "plan", asked, "--now", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    erased = cold(*noisy, "erase", "run", asked, "--now", "--yes", "--json", cwd=tmp_path)
    assert erased.returncode == 0, erased.stderr
    for told in (
        "lake.db.users is decided erase for 1 requests",
        "lake.db.users begins (erase)",
    ):
        assert told in erased.stderr, "who is on call sees what goes on"
    states = {each["dataset"]: each["state"] for each in json.loads(erased.stdout)["datasets"]}
    assert states == {"lake.db.users": "deleted", "lake.db.logins": "deleted"}
    for done in (filed, found, verified, planned, erased, broken):
        assert not _holds((done.stdout + done.stderr).encode())
    events = list((tmp_path / "events").iterdir())
    assert any(b"LocalTableScan" in path.read_bytes() for path in events)
    left = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.relative_to(tmp_path).parts[0] not in THEIRS
    ]
    assert (tmp_path / "log.txt") in left
    assert not [path for path in left if _holds(path.read_bytes())]


def _holds(content: bytes) -> bool:
    texts = [str(NUMBER), MAIL, MAIL.upper()]
    forms = [text.encode(codec) for text in texts for codec in ("utf-8", "utf-16-le")]
    return any(form in content for form in (*forms, struct.pack("<q", NUMBER), struct.pack(">q", NUMBER)))


def test_values_are_rows_in_memory_and_what_spills_is_encrypted(spark: SparkSession) -> None:
    frame = people_frame(spark, [("a secret key", "1")], ("key", "person"))
    assert frame.collect() == [("a secret key", "1")]
    java: Any = frame._jdf
    assert java.queryExecution().optimizedPlan().nodeName() == "LocalRelation"
    assert spark.sparkContext.getConf().get(ENCRYPTED) == "true"
