"""One lake in four formats: a person in heads, branches, tags, old versions and nested columns, and neighbours.

`oracle` asks each format itself, version by version, what a reader sees: the slow way, which nobody could get wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.scan import start_session
from tests.conformance.drivers.hudi import HudiDriver

PERSON, NEIGHBOUR = 8841302007, 884130200
OLD_MAIL, NEW_MAIL = "Before.884@example.org", "after.884@example.org"
KEPT = "00000884-1302-4007-8841-302007884130"
FILES = {
    "ebbtide.yml": """\
project: find
catalogs:
  fice:    {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./ice}
  fdelta:  {format: delta, warehouse: ./delta}
  fhudi:   {format: hudi, warehouse: ./hudi}
  fpaimon: {format: paimon, warehouse: ./paimon}
""",
    "subjects.yml": """\
subjects:
  user_id:
    columns:
      - fice.app.users.user_id
      - fice.app.cards.user_id
      - fice.app.nested.who%2Euser_id
      - fice.app.nested.seen%2Euser_id
      - fice.app.nested.attrs
      - fice.app.typed.uid
      - fice.app.typed.txt
      - fdelta.web.clicks.user_id
      - fhudi.db.cow.id
      - fhudi.db.mor.id
      - fpaimon.risk.alerts.user_id
      - fpaimon.risk.scores.user_id
  email: {columns: [fice.app.mails.to], match: casefold}
  device: {columns: [fice.app.typed.device]}
identities:
  - {table: fice.app.users, key: user_id, gives: {email: email}}
  - {table: fice.app.typed, key: user_id, gives: {device: device}}
""",
    "lineage/fice.app.daily.sql": "SELECT user_id AS uid, count(*) AS n FROM fice.app.users GROUP BY user_id",
    "lineage/fice.app.hashed.sql": "SELECT sha2(CAST(user_id AS STRING), 256) AS uid FROM fice.app.users",
    "lineage/fice.app.view.sql": "SELECT user_id AS seen FROM fice.app.users",
}


@dataclass(frozen=True, slots=True)
class Lake:
    tide: Ebbtide
    spark: SparkSession
    root: Path


def build(root: Path) -> Lake:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tide = Ebbtide(root)
    spark = start_session(tide.project)
    for folder in ("ice", "delta/web", "hudi/db", "paimon"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    _iceberg(spark)
    _delta(spark, root)
    _hudi(spark, root, tide)
    _paimon(spark)
    return Lake(tide, spark, root)


def _iceberg(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE fice.app")
    spark.sql("CREATE TABLE fice.app.users (user_id BIGINT, email STRING) USING iceberg")
    spark.sql(f"INSERT INTO fice.app.users VALUES ({PERSON}, '{OLD_MAIL}'), ({NEIGHBOUR}, 'n@example.org')")
    spark.sql("ALTER TABLE fice.app.users CREATE TAG `first`")
    spark.sql(f"UPDATE fice.app.users SET email = '{NEW_MAIL}' WHERE user_id = {PERSON}")
    spark.sql(f"INSERT INTO fice.app.users VALUES ({PERSON}, NULL), (NULL, NULL)")
    spark.sql("CREATE TABLE fice.app.mails (`to` STRING, body STRING) USING iceberg")
    spark.sql(f"INSERT INTO fice.app.mails VALUES ('{OLD_MAIL.upper()}', 'a'), ('{NEW_MAIL}', 'b'), ('x@y.org', 'c')")
    spark.sql("CREATE TABLE fice.app.cards (user_id BIGINT, pan STRING) USING iceberg TBLPROPERTIES ("
              "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')")  # fmt: skip
    values = ", ".join(f"({user}, 'p{n}')" for n, user in enumerate((PERSON, PERSON, NEIGHBOUR, 1, 2)))
    spark.sql(f"INSERT INTO fice.app.cards SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    spark.sql("ALTER TABLE fice.app.cards CREATE BRANCH audit")
    spark.sql(f"DELETE FROM fice.app.cards WHERE user_id = {PERSON} AND pan = 'p0'")
    spark.sql(f"INSERT INTO fice.app.cards.branch_audit VALUES ({PERSON}, 'b')")
    spark.sql(f"DELETE FROM fice.app.cards WHERE user_id = {PERSON}")
    spark.sql("CALL fice.system.rewrite_data_files(table => 'app.cards', options => map('rewrite-all', 'true'))")
    columns = "id BIGINT, who STRUCT<user_id: BIGINT, n: BIGINT>, attrs MAP<STRING, STRING>"
    pairs = "seen ARRAY<STRUCT<user_id: BIGINT, other: BIGINT>>"
    spark.sql(f"CREATE TABLE fice.app.nested ({columns}, {pairs}) USING iceberg")
    nobody = "named_struct('user_id', 1L, 'n', 1L)"
    none = "array(named_struct('user_id', 1L, 'other', 1L))"
    rows = {
        1: (f"named_struct('user_id', {PERSON}L, 'n', 1L)", none, "map('a', 'b')"),
        2: (nobody, f"array(named_struct('user_id', {PERSON}L, 'other', 2L), NULL)", "map('a', 'b')"),
        3: (nobody, f"array(named_struct('user_id', 1L, 'other', {PERSON}L))", "map('a', 'b')"),  # not by this path
        4: (nobody, none, f"map('k', '{PERSON}')"),
        5: (nobody, none, f"map('{PERSON}', 'v', 'twice', '{PERSON}')"),
        6: ("NULL", "NULL", "NULL"),
    }
    for id_, (who, seen, attrs) in rows.items():
        spark.sql(f"INSERT INTO fice.app.nested SELECT {id_}L, {who}, {attrs}, {seen}")
    spark.sql("CREATE TABLE fice.app.typed (uid DECIMAL(20, 2), txt STRING, device BINARY) USING iceberg")
    device = "X'" + KEPT.replace("-", "") + "'"
    spark.sql(f"INSERT INTO fice.app.typed VALUES ({PERSON}.00, 'no', {device}), (7.5, '{PERSON}', NULL), "
              f"(1.00, '{PERSON} and more', {device}), (NULL, NULL, NULL)")  # fmt: skip
    for name in ("daily", "hashed"):
        kind = "STRING" if name == "hashed" else "BIGINT"
        spark.sql(f"CREATE TABLE fice.app.{name} (uid {kind}, n BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO fice.app.daily VALUES ({PERSON}, 3), ({NEIGHBOUR}, 1)")


def _delta(spark: SparkSession, root: Path) -> None:
    name = f"delta.`{root}/delta/web/clicks`"
    spark.sql(f"CREATE TABLE {name} (user_id BIGINT, url STRING, day STRING) USING delta PARTITIONED BY (day) "
              "TBLPROPERTIES ('delta.enableDeletionVectors'='true')")  # fmt: skip
    for day in ("a b", "c"):
        rows = ", ".join(f"({user}, 'u{n}', '{day}')" for n, user in enumerate((PERSON, PERSON, NEIGHBOUR, 1, 2, 3)))
        spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    spark.sql(f"DELETE FROM {name} WHERE user_id = {PERSON} AND url = 'u0'")
    spark.sql(f"DELETE FROM {name} WHERE user_id = {PERSON} AND day = 'c'")
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 2")
    spark.sql(f"OPTIMIZE {name}")


def _hudi(spark: SparkSession, root: Path, tide: Ebbtide) -> None:
    from dataclasses import replace

    driver = HudiDriver(spark, replace(tide.project.catalogs["fhudi"]))
    for variant in ("cow", "mor"):
        columns = "id BIGINT, name STRING, day STRING"
        table = driver.create(variant, variant=variant, columns=columns)
        driver.append(table, [(PERSON, "a", "d"), (NEIGHBOUR, "b", "d"), (1, "c", "d")])
        driver.append(table, [(2, "e", "d")])
        spark.sql(f"UPDATE {table.sql} SET name = 'z' WHERE id = {PERSON}")
        spark.sql(f"DELETE FROM {table.sql} WHERE id = {PERSON}")


def _paimon(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE fpaimon.risk")
    spark.sql("CREATE TABLE fpaimon.risk.alerts (id BIGINT, user_id BIGINT) TBLPROPERTIES ('write-only'='true')")
    alerts = "fpaimon.risk.alerts"
    spark.sql(f"INSERT INTO {alerts} VALUES (1, {PERSON}), (2, {NEIGHBOUR})")
    spark.sql(f"INSERT INTO {alerts} VALUES (3, {PERSON})")
    spark.sql("CALL fpaimon.sys.create_tag(table => 'risk.alerts', tag => 'q3', snapshot => 2)")
    spark.sql("CALL fpaimon.sys.create_branch('risk.alerts', 'side', 'q3')")
    spark.sql(f"INSERT INTO {alerts} VALUES (4, {PERSON})")
    spark.sql(f"INSERT INTO fpaimon.risk.`alerts$branch_side` VALUES (5, {PERSON}), (6, {PERSON})")
    spark.sql(f"DELETE FROM {alerts} WHERE id = 1")
    spark.sql("CREATE TABLE fpaimon.risk.scores (user_id BIGINT, score INT) "
              "TBLPROPERTIES ('primary-key'='user_id', 'bucket'='1', 'write-only'='true')")  # fmt: skip
    for score in (1, 2):
        spark.sql(f"INSERT INTO fpaimon.risk.scores VALUES ({PERSON}, {score}), ({NEIGHBOUR}, {score})")
    spark.sql(f"DELETE FROM fpaimon.risk.scores WHERE user_id = {PERSON}")


WHERE = {
    "fice.app.users": f"user_id = {PERSON} OR lower(email) IN ('{OLD_MAIL.lower()}', '{NEW_MAIL}')",
    "fice.app.cards": f"user_id = {PERSON}",
    "fice.app.mails": f"lower(`to`) IN ('{OLD_MAIL.lower()}', '{NEW_MAIL}')",
    "fice.app.nested": "id IN (1, 2, 4, 5)",
    "fice.app.typed": f"uid = {PERSON} OR txt = '{PERSON}' OR hex(device) = '{KEPT.replace('-', '').upper()}'",
    "fice.app.daily": f"uid = {PERSON}",
    "fdelta.web.clicks": f"user_id = {PERSON}",
    "fhudi.db.cow": f"id = {PERSON}",
    "fhudi.db.mor": f"id = {PERSON}",
    "fpaimon.risk.alerts": f"user_id = {PERSON}",
    "fpaimon.risk.scores": f"user_id = {PERSON}",
}
"""Whose rows are the person's, as the tables above were filled."""


def oracle(lake: Lake) -> dict[tuple[str, str], int]:
    """Rows by dataset and version, as each format's own reader of that version counts them; no version without any."""
    found = {}
    for table_id, where in WHERE.items():
        for id_, frame in _versions(lake, table_id):
            if rows := frame.where(where).count():
                found[table_id, id_] = rows
    return found


def _versions(lake: Lake, table_id: str) -> Iterator[tuple[str, DataFrame]]:
    spark, (catalog, namespace, table) = lake.spark, table_id.split(".")
    if catalog == "fice":
        for row in spark.sql(f"SELECT snapshot_id FROM {table_id}.snapshots").collect():
            yield str(row[0]), spark.read.option("snapshot-id", row[0]).table(table_id)
    elif catalog == "fdelta":
        place = str(lake.root / "delta" / namespace / table)
        for row in spark.sql(f"DESCRIBE HISTORY delta.`{place}`").collect():
            yield str(row.version), spark.read.format("delta").option("versionAsOf", row.version).load(place)
    elif catalog == "fhudi":
        folder = lake.root / "hudi" / namespace / table
        for file in (folder / ".hoodie" / "timeline").glob("*_*.*commit"):
            id_ = file.name.partition("_")[0]
            yield id_, spark.read.format("hudi").option("as.of.instant", id_).load(str(folder))
    else:
        for branch, name in (("main", table), ("side", f"{table}$branch_side")):
            if branch == "side" and table != "alerts":
                continue
            rows = spark.sql(f"SELECT snapshot_id FROM {catalog}.{namespace}.`{name}$snapshots`").collect()
            for row in rows:
                if branch == "main" or row[0] > 2:  # the branch begins with a copy of main's second
                    frame = spark.read.option("scan.snapshot-id", row[0]).table(f"{catalog}.{namespace}.`{name}`")
                    yield f"{branch}/{row[0]}", frame
