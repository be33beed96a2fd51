"""Nothing personal in the ledger, also not for whoever hashes guesses (spec §5, "No personal data")."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from sqlalchemy import func, select

from ebbtide.app.hold import add_hold
from ebbtide.app.ledger import open_ledger
from ebbtide.app.orphans import condemn
from ebbtide.app.unmark import unmark_object
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import salted
from ebbtide.state.tables import act_files
from ebbtide.state.values import Mark
from tests.ledger.leaks import by_guessing, everything, in_clear
from tests.tide import Tide

JANE, UID = "jane.doe@example.org", "87654321"
POLICIES = f"""
policies:
  - name: purge
    select: {{tables: ["**.visits"]}}
    rows: {{where: "email = '{JANE}'"}}
    branches: {{unused_for: 1d}}
  - name: old
    select: {{tables: ["**"]}}
    partitions: {{older_than: 30d}}
    versions: {{older_than: 1d, keep_min: 1}}
    orphans: {{older_than: 1d}}
"""
VALUES = (UID, "19870312", "19871224", "1987-03-12", "1987-12-24", "1987-05-05", "jane.doe", "Jane Doe", "case 7", JANE)


@dataclass
class Lake:
    """After a mark, an unmark, a hold, a tag and a sweep."""

    tide: Tide
    marks: tuple[Mark, ...]
    paths: dict[str, int]
    """Every file that lay there before the sweep, with its size."""
    content: bytes
    """The whole ledger."""

    def entry(self, dataset: str, target: str) -> dict[str, str]:
        (found,) = [
            entry
            for entry in self.tide.ledger_entries()
            if entry["kind"] == "mark.made" and entry["dataset"].endswith(dataset) and entry["target"] == target
        ]
        return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Users' numbers that look like dates, an address as a partition, a folder, a branch, a tag and a predicate."""
    root = tmp_path_factory.mktemp("words")
    settings = "warehouses: [{prefix: ../elsewhere, exclusive: true}]\n"
    tide = Tide(spark, root, "iceberg", policies=POLICIES, settings=settings)
    driver = tide.drivers["iceberg"]
    name = f"{driver.catalog.name}.db"
    people, visits, births = f"{name}.people", f"{name}.visits", f"{name}.births"
    driver.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")
    for table, by, values in (
        (people, "uid", "19870312, 19871224, 20991231"),
        (f"{name}.daily", "day", "DATE'2026-01-31', DATE'2099-01-01'"),
        (births, "day", "DATE'1987-05-05', DATE'2099-01-01'"),
        (visits, "email", f"'{JANE}'"),
    ):
        driver.spark.sql(
            f"CREATE TABLE {table} USING iceberg PARTITIONED BY ({by}) AS SELECT explode(array({values})) AS {by}"
        )
    for _ in range(2):
        driver.spark.sql(f"INSERT OVERWRITE {visits} VALUES ('{JANE}')")
    driver.spark.sql(f"ALTER TABLE {visits} CREATE BRANCH `jane.doe`")
    (tide.root / "classifiers").mkdir()
    (tide.root / "classifiers" / "pii.yml").write_text(
        "classifiers: [{name: PII, kind: column, propagate: true, labels: [tag]}]\n"
    )
    (tide.root / "tables").mkdir()
    (tide.root / "tables" / "t.yml").write_text(f"tables: [{{name: {births}, columns: {{day: [PII.tag]}}}}]\n")
    left = root / "elsewhere" / f"uid={UID}" / JANE
    write_deltalake(str(left), pa.table({"id": [1]}))
    stray = Path(driver.catalog.warehouse) / "db" / "visits" / "data" / f"uid={UID}"
    stray.mkdir(parents=True)
    (stray / "part-stray.parquet").write_bytes(b"left by a writer that died")
    for path in (*left.rglob("*"), stray / "part-stray.parquet"):
        os.utime(path, (then := time.time() - 10 * 86_400, then))
    condemn(tide.project, str(left), now=tide.at(0))
    tide.mark(40)
    ledger = open_ledger(tide.project)
    with ledger.database.reader() as state:
        marks = state.marks()
    reason = f"case 7 of {JANE}"
    unmark_object(tide.project, f"{people}#partitions:0/uid=19871224", reason=reason, as_of=tide.at(41))
    add_hold(tide.project, births, owner="Jane Doe", reason=reason, as_of=tide.at(41))
    kept = driver.spark.sql(f"SELECT snapshot_id FROM {visits}.snapshots ORDER BY committed_at").first()
    driver.spark.sql(f"ALTER TABLE {visits} CREATE TAG `for jane.doe` AS OF VERSION {kept.snapshot_id}")  # type: ignore[union-attr]
    paths = {f"file://{path}": path.stat().st_size for path in root.rglob("*") if path.is_file()}
    tide.sweep(60)
    return Lake(tide, marks, paths, everything(ledger, root / "export"))


def test_no_value_stands_in_the_ledger(lake: Lake) -> None:
    assert {mark.key.target for mark in lake.marks} == {"partitions", "versions", "rows", "orphans", "branches"}
    kinds = set(lake.tide.ledger_kinds())
    assert kinds >= {"mark.made", "mark.sent-back", "unmark.made", "hold.placed", "orphans.condemned", "act.outcome"}
    escaped = [JANE.replace("@", "%40"), f"uid={UID}", "elsewhere", "part-stray"]
    assert in_clear(lake.content, [*VALUES, *escaped]) == []


def test_no_guess_can_be_held_against_the_ledger(lake: Lake) -> None:
    guesses = [*VALUES, *(mark.key.object for mark in lake.marks), *(mark.key.dataset for mark in lake.marks)]
    guesses += [mark.because for mark in lake.marks]
    guesses += list(lake.paths) + [path.rpartition("/")[0] for path in lake.paths]
    guesses += [f"{path}\t{size}\n" for path, size in lake.paths.items()]
    guesses += [f"purge|email = '{JANE}'", f"jane.doe|{lake.marks[0].key.object}", f"email = '{JANE}'"]
    assert by_guessing(lake.content, guesses) == []
    assert in_clear(lake.content, [mark.fingerprint for mark in lake.marks]) == [], "the plan's own, which has no key"


def test_a_date_is_one_by_the_type_of_its_column_and_never_by_its_digits(lake: Lake) -> None:
    daily = lake.entry(".daily", "partitions")
    assert (daily["object"], daily["because"]) == ("0/day=2026-01-31", "its last day 2026-01-31 is more than 30d ago")
    births = lake.entry(".births", "partitions")
    assert births["object"].startswith("hmac-sha256:"), "a date of birth is a date, and personal"
    assert births["because"].startswith("hmac-sha256:")


def test_who_has_the_state_can_open_what_the_ledger_says(lake: Lake) -> None:
    entries = {entry["mark"]: entry for entry in lake.tide.ledger_entries() if entry["kind"] == "mark.made"}
    for mark in lake.marks:
        entry = entries[mark.id]
        assert entry["object"] in (mark.key.object, salted(mark.salt, mark.key.object))
        assert entry["fingerprint"] == salted(mark.salt, mark.fingerprint)


def test_plain_lists_of_files_go_when_nothing_waits_for_them(lake: Lake) -> None:
    ledger = open_ledger(lake.tide.project)
    with ledger.database.reader() as state:
        waiting = {mark.act for mark in state.marks()} - {None}
        kept = {*state.connection.execute(select(act_files.c.act)).scalars()}
        assert kept <= waiting
        assert state.connection.execute(select(func.count()).select_from(act_files)).scalar_one() <= len(waiting)
    assert audit(ledger)
