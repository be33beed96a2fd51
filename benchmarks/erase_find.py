"""`erase find` against a `SELECT count(*)` per person and table: 1,000 people in 200 Iceberg tables of three commits.

Ours counts every branch, tag and version, with the scan before it; theirs asks the heads alone. Theirs is measured on
50 random pairs of a person and a table, and extrapolated linearly.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.scan import start_session
from ebbtide.config.subjects import load_identities
from ebbtide.erasure.find import Finder
from ebbtide.erasure.places import places_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.lineage.labelled import label_inventory
from ebbtide.run import quiet

PEOPLE, TABLES, ROWS, COMMITS, ASKED = 1_000, 200, 5_000, 3, 50
_PROJECT = """\
project: find
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
spark: {master: "local[2]", conf: {}}
"""


def build(root: Path, tables: int) -> None:
    """Tables in which everybody has a few rows, written with pyiceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    chance = random.Random(1)
    for number in range(tables):
        for commit in range(COMMITS):
            users = [chance.randrange(20 * PEOPLE) for _ in range(ROWS)]
            rows = pa.table({"user_id": users, "text": [f"{user} {commit}" for user in users]})
            table = catalog.create_table_if_not_exists(f"db.t{number}", rows.schema)
            table.append(rows)
    (root / "ebbtide.yml").write_text(_PROJECT)
    columns = ", ".join(f"lake.db.t{number}.user_id" for number in range(tables))
    (root / "subjects.yml").write_text(f"subjects:\n  user_id: {{columns: [{columns}]}}\n")


def find(tide: Ebbtide, people: int) -> int:
    """All that the verb does, for many people at once; gives how many places it found."""
    project = tide.project
    tide.scan()
    identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
    places = places_of(identities.subjects, identities, label_inventory(project, inventory), inventory)
    finder = Finder(start_session(project), project.catalogs, identities, inventory)
    asked = [(Identifier("user_id", str(person)),) for person in range(people)]
    found = finder.find(asked, places, quiet())
    assert not found.not_reachable
    return sum(len(held) for held in found.held.values())


def measure(root: Path, people: int, tables: int, asked: int) -> Iterator[Result]:
    build(root, tables)
    with Ebbtide(root) as tide:
        tide.scan()
        spark = start_session(tide.project)
        pairs = [(random.Random(2).randrange(people), n % tables) for n in range(asked)]
        spark.sql("SELECT count(*) FROM lake.db.t0 WHERE user_id = 1").collect()  # the session is warm for both
        ours, found = timed(lambda: find(tide, people))
        assert found > people * tables / 2
        began = time.perf_counter()
        for person, table in pairs:
            spark.sql(f"SELECT count(*) FROM lake.db.t{table} WHERE user_id = {person}").collect()
        theirs = (time.perf_counter() - began) / asked * people * tables
    yield Result(
        f"finding {people:,} people in {tables} tables, with every version", ours,
        "SELECT count(*) per person and table", theirs, 50,
    )  # fmt: skip


def main(root: Path) -> Iterator[Result]:
    yield from measure(root, PEOPLE, TABLES, ASKED)


def smoke(root: Path) -> Iterator[Result]:
    yield from measure(root, PEOPLE, 20, 10)
