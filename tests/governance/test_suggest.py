"""`classify --suggest`: what looks personal is proposed with its share, and no value is ever shown."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ebbtide.config.classifiers import Classifier, ClassifierKind, Classifiers
from ebbtide.errors import InputError
from ebbtide.governance.patterns import load_tests
from ebbtide.governance.suggest import LEAST_SHARE, ROWS, label_for, suggest
from ebbtide.spark.session import session
from tests.governance.projects import SmallProject

CLASSIFIERS = Classifiers.of([Classifier("PII", ClassifierKind.COLUMN, True, ("tag", "email"))])
RIGHT = {
    "aadhaar": ["234123412346", "2341 2341 2346"],
    "pan": ["ACUPA7085R", "acupa7085r"],
    "iban": ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"],
    "card": ["4111111111111111", "5500-0000-0000-0004", "378282246310005", "6521111111111110"],
    "email": ["a.b+c@example.org", "jörg@müller.example"],
    "phone": ["+919876543210", "9876543210", "+49 30 1234567", "(030) 123 4567", "555-867-5309"],
}
WRONG = {
    "aadhaar": ["234123412347", "134123412346", "23412341234", "x"],
    "pan": ["ACUPA7085", "ACUQA7085R1", "AAAAA0000A"],
    "iban": ["GB82 WEST 1234 5698 7654 33", "GB82", "ABCDEFGHIJKLMNOP"],
    "card": ["4111111111111112", "0000000000000000", "411111111111", "1234567890123452"],
    "email": ["a@b", "@example.org", "a b@example.org", "a@example.org, b@example.org"],
    "phone": ["2026-11-15", "15.11.2026", "12", "1731660000", "+1234", "10.0.0.1"],
}


@pytest.mark.parametrize("kind", sorted(RIGHT))
def test_a_kind_is_told_by_its_pattern_and_its_checksum(kind: str) -> None:
    test = load_tests()[kind]
    assert [text for text in RIGHT[kind] if not test(text)] == []
    assert [text for text in WRONG[kind] if test(text)] == []


def test_every_single_wrong_digit_of_an_aadhaar_and_a_card_is_found() -> None:
    tests = load_tests()
    for kind, number in (("aadhaar", "234123412346"), ("card", "4111111111111111")):
        for place in range(len(number)):
            others = [number[:place] + d + number[place + 1 :] for d in "0123456789" if d != number[place]]
            assert not any(tests[kind](other) for other in others)


def test_the_label_is_the_projects_own() -> None:
    assert label_for("email", CLASSIFIERS) == "PII.email"
    assert label_for("card", CLASSIFIERS) == "PII.tag"
    assert (
        label_for("card", Classifiers.of([Classifier("PII", ClassifierKind.COLUMN, True, ("high", "low"))]))
        == "PII.high"
    )
    assert label_for("card", Classifiers({})) == "PII.tag"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallProject:
    project = SmallProject.make(tmp_path_factory.mktemp("suggest"), "crm")
    count = ROWS + 500
    people = pa.table(
        {
            "mail": [f"secret{n}@example.org" if n % 4 else None for n in range(count)],
            "contact": [f"+4930{1000000 + n}" if n % 2 else "none" for n in range(count)],
            "note": [f"mail me at secret{n}@example.org" for n in range(count)],
            "mobile": pa.array([9_000_000_000 + n for n in range(count)], pa.int64()),
            "n": pa.array(range(count), pa.int64()),
            "amount": pa.array([n / 7 for n in range(count)], pa.float64()),
            "person": [{"pan": "ACUPA7085R"} for _ in range(count)],
        }
    )
    project.table("people", people)
    project.table("logs", pa.table({"host": ["a", "b"], "port": [80, 443]}))
    project.table("empty", pa.table({"host": pa.array([], pa.string())}))
    project.write({"tables/app.yml": "tables:\n  - {name: crm.app.people, columns: {mobile: [PII.tag]}}\n"})
    project.tide.scan()
    return project


def test_columns_are_proposed_with_their_share_in_a_bounded_sample(
    lake: SmallProject, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two broken tables one has no metadata and one has lost its file; both are named, and the others are told."""
    lake.table("torn", pa.table({"mail": ["secret@example.org"]}))
    (data,) = (lake.root / "lake" / "app" / "torn" / "data").glob("*.parquet")
    data.unlink()
    columns = {
        "crm.app.people": ["mail", "contact", "note", "mobile", "n", "amount", "person", "person.pan"],
        "crm.app.logs": ["host", "port"],
        "crm.app.empty": ["host"],
        "crm.app.torn": ["mail"],
        "crm.app.gone": ["host"],
    }
    catalogs = lake.tide.project.catalogs
    session(catalogs.values(), master="local[1]")
    caplog.set_level(logging.DEBUG, logger="ebbtide")
    found, unread = suggest(spark, catalogs, columns, CLASSIFIERS)
    assert {(one.column, one.kind, one.label, one.share, one.sampled) for one in found} == {
        ("mail", "email", "PII.email", 1.0, ROWS * 3 // 4),
        ("contact", "phone", "PII.tag", 0.5, ROWS),
        ("mobile", "phone", "PII.tag", 1.0, ROWS),
        ("person.pan", "pan", "PII.tag", 1.0, ROWS),
    }
    assert sorted(one.place for one in unread) == ["crm.app.gone", "crm.app.torn"]
    assert "secret" not in str(unread)
    assert "governance/reading.py" in caplog.text, "the log says where it could not be read"
    assert "secret" not in caplog.text
    assert LEAST_SHARE > 0.1


def test_the_verb_shows_shares_and_no_value_and_leaves_out_what_is_labelled(lake: SmallProject) -> None:
    people = lake.run("classify", "--suggest", "crm.app.people")
    assert people.exit_code == 0, people.output
    assert "100%" in people.stdout
    assert "mobile" not in people.stdout
    done = lake.run("classify", "--suggest", "crm.app.people", "--json")
    told = json.loads(done.stdout)
    assert [row["column"] for row in told["suggestions"]] == ["contact", "mail", "person.pan"]
    for text in (done.output, people.output):
        assert "secret" not in text
        assert "+4930" not in text


def test_classify_alone_and_a_wrong_table_exit_2(lake: SmallProject) -> None:
    assert lake.run("classify").exit_code == 2
    wrong = lake.run("classify", "--suggest", "crm.app.peopel")
    assert isinstance(wrong.exception, InputError)
    assert "crm.app.people" in str(wrong.exception.hint)


def test_without_python_stdnum_the_extra_is_named_before_spark_starts(lake: SmallProject) -> None:
    code = "import sys; sys.modules['stdnum'] = None; from ebbtide.cli.main import run; run()"
    command = [sys.executable, "-c", code, "classify", "--suggest"]
    done = subprocess.run(command, cwd=lake.root, capture_output=True, text=True, env=dict(os.environ), timeout=60)
    assert done.returncode == 2
    assert "ebbtide[suggest]" in done.stderr
