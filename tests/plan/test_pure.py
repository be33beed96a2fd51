"""A plan is a pure function: same input, same digest, byte for byte, and `explain` walks the same code."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ebbtide.app.plan import as_json, write_plan
from ebbtide.plan.explain import explain
from ebbtide.plan.plan import Plan, plan_digest
from ebbtide.plan.world import HOLDS, World
from ebbtide.spark.session import FEW_ROWS
from tests.plan.test_worked_example import example
from tests.plan.worlds import NOW, Table, ago, plan, policies, world

RULES = """\
policies:
  - {name: by label, select: {any_labels: [X.y]}, transactions: {older_than: 0d}}
  - {name: abc, select: {tables: ["lake.db.*"], branches: [abc]}, transactions: {older_than: 0d}}
  - {name: all, select: {tables: ["**"]}, transactions: {older_than: 1d}, versions: {older_than: 5d}}
"""


def lake() -> list[Table]:
    tables = [example(), example().drop("xyz"), example().tag("x", "T3")]
    for n, table in enumerate(tables):
        table.name = f"lake.db.t{n}"
    return tables


def shuffled(frame: DataFrame, seed: int) -> DataFrame:
    return frame.repartition(3 + seed).orderBy(F.rand(seed)).coalesce(2)


def recomputed(file: dict[str, Any], policies_: dict[str, Any]) -> str:
    """The digest as `plan.plan` describes it, from nothing but the plan file and the policies."""
    lines: dict[str, list[str]] = {}
    for row in file["objects"]:
        kept = {key: value for key, value in row.items() if value is not None}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        lines.setdefault(row["dataset"], []).append(hashlib.sha256(text.encode()).hexdigest())
    of_dataset = {name: hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest() for name, found in lines.items()}
    root = hashlib.sha256("\n".join(sorted(f"{name} {digest}" for name, digest in of_dataset.items())).encode())
    return plan_digest(NOW, root.hexdigest(), policies_)


@contextmanager
def for_many_rows(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in FEW_ROWS}
    for key in FEW_ROWS:
        spark.conf.unset(key)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set("spark.ebbtide.fewRows", "false")
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


@pytest.mark.parametrize(
    "rules",
    [RULES, 'policies:\n  - {name: v, select: {tables: ["**"]}, versions: {older_than: 1d}}\n'],
    ids=["transactions and versions", "versions"],
)
def test_the_digest_does_not_depend_on_how_a_session_is_prepared(
    spark: SparkSession, tmp_path: Path, rules: str
) -> None:
    """Few rows or many: compiled or interpreted, as local relations or as checkpoints, in one partition or several."""
    policies_ = policies(tmp_path, rules, labels=("X.y",))
    due = [row for row in plan(spark, policies_, world(spark, *lake())).rows() if row["decision"] == "mark"]
    assert due
    state: dict[str, Any] = {
        "marks": [
            (r["dataset"], r["target"], r["object"], r["policy"], r["fingerprint"], ago(20), ago(10), None)
            for r in due[:-1]
        ],
        "unmarks": [(due[0]["dataset"], None, due[0]["object"], None, "needed")],
        "holds": [(due[-1]["dataset"], date(2020, 1, 1), date(2020, 1, 2), "counsel", "case 7")],
    }
    few = plan(spark, policies_, world(spark, *lake()), **state)
    assert few.counts["unmarked"] > 0
    assert few.counts["sweep"] + few.counts["wait"] > 0
    with for_many_rows(spark):
        many = plan(spark, policies_, world(spark, *lake()), **state)
        assert (few.digest, few.counts, few.totals) == (many.digest, many.counts, many.totals)
        assert sorted(few.paths()) == sorted(many.paths())


def test_the_digest_does_not_depend_on_order_or_partitioning(spark: SparkSession, tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES, labels=("X.y",))
    tables = lake()
    first = plan(spark, rules, world(spark, *tables))
    random.Random(3).shuffle(tables)
    other = world(spark, *tables)
    frames = {f.name: getattr(other, f.name) for f in fields(World)}
    mixed: dict[str, Any] = {
        name: shuffled(frame, 2) if isinstance(frame, DataFrame) else frame for name, frame in frames.items()
    }
    second = plan(spark, rules, World(**mixed))
    assert second.digest == first.digest
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    write_plan(first, one)
    write_plan(second, two)
    assert one.read_bytes() == two.read_bytes()
    assert Path(f"{one}.files").read_text() == "".join(f"{path}\n" for path in sorted(first.paths()))
    assert json.loads(one.read_text()) == as_json(first)
    assert recomputed(json.loads(one.read_text()), rules.canonical()) == first.digest
    _explained_like_planned(spark, rules, world(spark, *lake()), first)


def _explained_like_planned(spark: SparkSession, rules: Any, world_: World, made: Plan) -> None:
    chosen: dict[str, Any] = {"dataset": "lake.db.t0", "target": "transactions", "object_id": "T1"}
    told = explain(rules, world_, None, None, spark.createDataFrame([], HOLDS), now=NOW, **chosen)
    planned = [r for r in made.rows() if (r["dataset"], r["target"], r["object"]) == tuple(chosen.values())]
    assert [told.planned] == planned
    assert [(c.policy, c.outcome, c.because) for c in told.considered] == [
        ("by label", "does not select", "select.any_labels does not match"),
        ("abc", "owns", planned[0]["because"]),
        ("all", "ignores", "abc owns it"),
    ]


def test_every_input_that_matters_changes_the_digest(spark: SparkSession, tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES, labels=("X.y",))
    base = plan(spark, rules, world(spark, example())).digest
    later = plan(spark, rules, world(spark, example()), now=NOW.replace(hour=13)).digest
    held = plan(spark, rules, world(spark, example()), holds=[("lake.db.t", None, None, "o", "r")]).digest
    renamed = replace(rules, policies=rules.policies[::-1])
    assert len({base, later, held, plan(spark, renamed, world(spark, example())).digest}) == 4
