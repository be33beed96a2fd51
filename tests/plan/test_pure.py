"""A plan is a pure function: same input, same digest, byte for byte, and `explain` walks the same code."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import fields, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ebbtide.app.plan import as_json, write_plan
from ebbtide.config.project import Limits
from ebbtide.kernel.engine import connection
from ebbtide.kernel.tasks import run_parts
from ebbtide.plan.build import plan_part
from ebbtide.plan.explain import explain
from ebbtide.plan.measure import together
from ebbtide.plan.parts import split
from ebbtide.plan.plan import CODES, DECISIONS, Plan, objects_digest, plan_digest, without_codes
from ebbtide.plan.world import Orders, World
from tests.plan.test_worked_example import example
from tests.plan.worlds import NOW, Table, ago, orders, plan, policies, world
from tests.tiers import deep_after_first

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


def shuffled(rows: pa.Table, seed: int) -> pa.Table:
    order = list(range(rows.num_rows))
    random.Random(seed).shuffle(order)
    return rows.take(pa.array(order, pa.int64()))


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


@pytest.mark.parametrize(
    "rules",
    deep_after_first(RULES, 'policies:\n  - {name: v, select: {tables: ["**"]}, versions: {older_than: 1d}}\n'),
    ids=["transactions and versions", "versions"],
)
def test_a_plan_in_parts_is_the_same_plan(tmp_path: Path, rules: str) -> None:
    """All datasets in one part or each in its own: the same bytes."""
    policies_ = policies(tmp_path, rules, labels=("X.y",))
    due = [row for row in plan(policies_, world(*lake())).rows() if row["decision"] == "mark"]
    assert due
    state: dict[str, Any] = {
        "marks": [
            (r["dataset"], r["target"], r["object"], r["policy"], r["fingerprint"], ago(20), ago(10), None)
            for r in due[:-1]
        ],
        "unmarks": [(due[0]["dataset"], None, due[0]["object"], None, "needed")],
        "holds": [(due[-1]["dataset"], date(2020, 1, 1), date(2020, 1, 2), "counsel", "case 7")],
    }
    state["marks"].append(("lake.db.nowhere", "transactions", "T1", "all", "x", ago(20), ago(10), None))
    one = plan(policies_, world(*lake()), **state)
    assert one.counts["unmarked"] > 0
    assert one.counts["sweep"] + one.counts["wait"] > 0
    with connection() as engine:
        parts = list(split(engine, world(*lake()), orders(**state), rows=1))
        work = partial(plan_part, engine, policies_, now=NOW, limits=Limits(), folder=tmp_path)
        done = run_parts(work, parts)
    assert len(done) == len(lake()) + 1, "and one for what names no dataset"
    root = objects_digest(pair for each in done for pair in each.digests)
    assert plan_digest(NOW, root, policies_.canonical()) == one.digest
    assert {name: sum(each.counts[name] for each in done) for name in DECISIONS} == one.counts
    assert together(each.measured for each in done).totals == one.totals
    whole = replace(one, folder=tmp_path)
    assert list(whole.rows()) == list(one.rows())
    assert list(whole.paths()) == list(one.paths())


def test_the_digest_does_not_depend_on_order_or_partitioning(tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES, labels=("X.y",))
    tables = lake()
    first = plan(rules, world(*tables))
    random.Random(3).shuffle(tables)
    other = world(*tables)
    sections = {f.name: getattr(other, f.name) for f in fields(World)}
    mixed: dict[str, Any] = {
        name: shuffled(rows, 2) if isinstance(rows, pa.Table) else rows for name, rows in sections.items()
    }
    second = plan(rules, World(**mixed))
    assert second.digest == first.digest
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    write_plan(first, one)
    write_plan(second, two)
    assert one.read_bytes() == two.read_bytes()
    assert Path(f"{one}.files").read_text() == "".join(f"{path}\n" for path in sorted(first.paths()))
    printed = as_json(first)
    assert all({*CODES} < row.keys() for row in printed["objects"])
    printed["objects"] = [without_codes(row) for row in printed["objects"]]
    assert printed.pop("summary"), "a line for each policy, dataset and target"
    assert json.loads(one.read_text()) == printed, "codes stand beside it, for programs"
    assert recomputed(json.loads(one.read_text()), rules.canonical()) == first.digest
    _explained_like_planned(rules, world(*lake()), first)


def _explained_like_planned(rules: Any, world_: World, made: Plan) -> None:
    chosen: dict[str, Any] = {"dataset": "lake.db.t0", "target": "transactions", "object_id": "T1"}
    told = explain(rules, world_, Orders(), now=NOW, **chosen)
    planned = [r for r in made.rows(codes=True) if (r["dataset"], r["target"], r["object"]) == tuple(chosen.values())]
    assert [told.planned] == planned
    assert [(c.policy, c.outcome, c.because) for c in told.considered] == [
        ("by label", "does not select", "select.any_labels does not match"),
        ("abc", "owns", planned[0]["because"]),
        ("all", "ignores", "abc owns it"),
    ]


def test_every_input_that_matters_changes_the_digest(tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES, labels=("X.y",))
    base = plan(rules, world(example())).digest
    later = plan(rules, world(example()), now=NOW.replace(hour=13)).digest
    held = plan(rules, world(example()), holds=[("lake.db.t", None, None, "o", "r")]).digest
    renamed = replace(rules, policies=rules.policies[::-1])
    assert len({base, later, held, plan(renamed, world(example())).digest}) == 4
