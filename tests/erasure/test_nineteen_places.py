"""The lender of the original: payments with 14 derived tables, 3 dev clones and a Glacier archive, "step one of 19".

What the plan decides for each of the nineteen places and how, that `explain` says the same of one, and that after two
runs no byte of the person is left but where the plan said so. Everybody else reads as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.cli.erasing import place_of
from ebbtide.spark.session import quote
from tests.conformance.driver import Table
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

PERSON, NEIGHBOUR = 88413020071, 88413020072
AT_ONCE = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
DERIVED = {
    # From payments alone, from what is derived, and from both sides of a join.
    "iceberg": (
        ("daily", "payments"), ("refunds", "payments"), ("disputes", "payments"), ("scores", "daily"),
        ("exposure", "scores"), ("statements", "payments"), ("reminders", "statements"), ("limits", "exposure"),
        ("taxes", "payments"), ("books", "payments"),
    ),
    "delta": (("features", "payments"), ("training", "features"), ("campaigns", "features"), ("exports", "training")),
}  # fmt: skip
TABLES = """
tables:
  - name: {ice}.db.payments
    erasure: {{method: redact, columns: {{id: null, name: gone}}}}
  - name: {ice}.db.disputes
    erasure: {{method: keep, basis: a dispute with them, until: 2099-06-30}}
"""
POLICIES = """
policies: []
floors:
  - {name: tax, select: {tables: ["*.db.taxes"]}, keep_at_least: 7y, basis: the tax code}
"""


@dataclass
class Lender:
    tide: Tide
    tables: dict[str, Table] = field(default_factory=dict)
    """By `dataset`."""

    def rows(self) -> dict[str, list[Row]]:
        sql = self.tide.spark.sql
        return {name: sorted(sql(f"SELECT * FROM {t.sql}").collect(), key=str) for name, t in self.tables.items()}

    def left(self) -> set[str]:
        """The datasets in whose folders bytes of the person are."""
        mine = forms(PERSON)
        return {
            name.rpartition(".")[2]
            for name, table in self.tables.items()
            if where_values_are(Path(table.location), {"it": mine})["it"]
        }


def make(spark: SparkSession, root: Path) -> Lender:
    tide = Tide(spark, root / "p", "iceberg", "delta", policies=POLICIES, plainly=("delta",))
    names = {format_: driver.catalog.name for format_, driver in tide.drivers.items()}
    lender = Lender(tide)

    def create(format_: str, name: str) -> Table:
        driver = tide.drivers[format_]
        table = driver.create(name, properties=AT_ONCE if format_ == "delta" else None)
        driver.append(table, [(PERSON, "ada", "2026-01-01"), (NEIGHBOUR, "bob", "2026-01-01")])
        lender.tables[f"{names[format_]}.db.{name}"] = table
        return table

    create("iceberg", "payments")
    where = {"payments": "iceberg"} | {name: format_ for format_, some in DERIVED.items() for name, _ in some}
    (tide.root / "lineage").mkdir()
    for format_, some in DERIVED.items():
        for name, source in some:
            create(format_, name)
            model = f"SELECT id, name, day FROM {names[where[source]]}.db.{source}"
            (tide.root / "lineage" / f"{names[format_]}.db.{name}.sql").write_text(model)
    # Three clones: one by copying, one that shares every file with its source, one that has a file of its source's.
    features = lender.tables[f"{names['delta']}.db.features"]
    location = f"{tide.drivers['delta'].catalog.warehouse}/db/dev_features"
    shallow = Table(type(features.id)(names["delta"], ("db",), "dev_features"), location, quote("delta", location))
    spark.sql(f"CREATE TABLE {shallow.sql} SHALLOW CLONE {features.sql}")
    lender.tables[str(shallow.id)] = shallow
    ice = tide.drivers["iceberg"]
    for name in ("dev_payments", "dev_books"):
        lender.tables[f"{names['iceberg']}.db.{name}"] = ice.create(name)
    spark.sql(f"INSERT INTO {lender.tables[f'{ice.catalog.name}.db.dev_payments'].sql} "
              f"SELECT * FROM {lender.tables[f'{ice.catalog.name}.db.payments'].sql}")  # fmt: skip
    # What no engine wrote as a table of its own: Iceberg adds files without field ids by their names.
    lent = tide.root / "lent"
    spark.createDataFrame([(PERSON, "ada", "2026-01-01")], "id BIGINT, name STRING, day STRING").coalesce(
        1
    ).write.parquet(str(lent))
    for name in ("books", "dev_books"):
        spark.sql(
            f"CALL {ice.catalog.name}.system.add_files(table => 'db.{name}', source_table => '`parquet`.`{lent}`')"
        )
    (tide.root / "copies").mkdir()
    copies = [
        f"  - {{name: {name}, kind: clone, of: [{names[format_]}.db.{of}], dataset: {names[format_]}.db.{name}}}"
        for name, format_, of in (
            ("dev_payments", "iceberg", "payments"), ("dev_features", "delta", "features"),
            ("dev_books", "iceberg", "books"),
        )
    ]  # fmt: skip
    copies.append(f"  - {{name: glacier, kind: archive, of: [{names['iceberg']}.db.payments], keeps: 90d}}")
    (tide.root / "copies" / "c.yml").write_text("copies:\n" + "\n".join(copies) + "\n")
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{names['iceberg']}.db.payments.id]}}\n")
    (tide.root / "tables").mkdir()
    (tide.root / "tables" / "t.yml").write_text(TABLES.format(ice=names["iceberg"]))
    tide.app.scan()
    return lender


@pytest.mark.deep
def test_the_nineteen_places_of_a_payment(spark: SparkSession, tmp_path: Path) -> None:
    lender = make(spark, tmp_path)
    tide, erase, before = lender.tide, lender.tide.app.erase, lender.rows()
    request = erase.request({"user": str(PERSON)}, law="gdpr", as_of=tide.at(0)).id or ""
    plan = erase.plan(as_of=tide.at(4))
    decided = {place.dataset.rpartition(".")[2]: (place.decision, place.method) for place in plan.places}
    names = {table.partition(".db.")[2] for table in lender.tables}
    assert (len(decided) + len(plan.copies), set(decided)) == (19, names)
    others = {"payments": ("erase", "redact"), "disputes": ("keep", "keep"), "taxes": ("keep", "delete")}
    assert decided == dict.fromkeys(names, ("erase", "delete")) | others
    assert [(each.copy, each.kind, each.until) for each in plan.copies] == [
        ("glacier", "archive", str((tide.at(4) + timedelta(days=90)).date()))
    ]
    assert plan.not_reachable == ()
    assert plan.digest == erase.plan(as_of=tide.at(4)).digest

    for place in plan.places:
        assert place_of(plan, place.dataset) is place
        table = place.dataset.rpartition(".")[2]
        many = 2 if table == "books" else 1  # its own, and the one that it was given
        assert [ref.rows for ref in place.refs if ref.ref == "branch:main"] == [many], table
        assert (place.files, place.bytes.read > 0, place.store_requests.read > place.files) == (many, True, True)
        ends = None if place.ends.at is None else place.ends.at[:10]
        soon = str(tide.at(5).date())
        assert ends == {"disputes": "2099-07-02", "taxes": None}.get(table, soon)

    assert erase.run(as_of=tide.at(4)).exit_code == 0
    done = erase.run(as_of=tide.at(4.2))
    assert (done.exit_code, done.left) == (4, tuple(sorted(name for name in lender.tables if name.endswith("books"))))
    erase.run(as_of=tide.at(4.4))
    states = {step.place.rpartition(".")[2]: step.state for step in erase.status(request).steps}
    gone = names - {"payments", "disputes", "taxes", "books", "dev_books"}
    assert {name: state for name, state in states.items() if name in gone} == dict.fromkeys(gone, "removed")
    assert (states["payments"], states["disputes"], states["taxes"], states["glacier"]) == (
        "redacted", "retained", "retained", "expires"
    )  # fmt: skip
    # The file that two tables were given lies in neither's folder: both let go of it, and a person removes it.
    assert (states["books"], states["dev_books"]) == ("not reachable", "not reachable")
    assert lender.left() == {"disputes", "taxes"}
    for name, rows in lender.rows().items():
        table = name.rpartition(".")[2]
        if table in ("disputes", "taxes"):
            assert rows == before[name]
            continue
        kept = [row for row in before[name] if row["id"] != PERSON]
        assert [row for row in rows if row["id"] is not None] == kept, name
        assert len(rows) == len(kept) + (table == "payments"), name
