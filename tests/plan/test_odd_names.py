"""Names that mean something to an engine: patterns, quotes, control characters, variables. They are names here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ebbtide.model.ids import DatasetId
from ebbtide.plan.plan import Plan, plan_digest
from tests.plan.worlds import NOW, Table, decided, plan, policies, world

WORDS = (
    "a+b", "a(b)", "[ab]", "a|b", "^a$", "a\\d", "a{2}", "it's", '"q"', "${x}", "a\nb", "a\tb", "\x01\x1f", "ü",
    "\U0001f600", "a b", "--", "?", "$1", "\\", "aab", "a", "A",
)  # fmt: skip
ODD = tuple(str(DatasetId("lake", ("db",), word)) for word in WORDS)
RULES = {"policies": [{"name": name, "select": {"tables": [name]}, "versions": {"older_than": "1d"},
                       "branches": {"unused_for": "1d"}} for name in ODD]}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    tables = [
        Table(name).commit("T1", 100).branch(word, "T1").tag("keep", "T1").commit("T2", 50)
        for name, word in zip(ODD, WORDS, strict=True)
    ]
    holds = [(name, None, None, word, word) for name, word in list(zip(ODD, WORDS, strict=True))[::3]]
    unmarks = [(name, None, "T1", None, name) for name in ODD[1::3]]
    rules = policies(tmp_path_factory.mktemp("odd"), json.dumps(RULES, ensure_ascii=False))
    return plan(rules, world(*tables), holds=holds, unmarks=unmarks)


def test_a_pattern_takes_its_own_name_and_no_other(made: Plan) -> None:
    assert {(row["dataset"], row["policy"]) for row in made.rows()} == {(name, name) for name in ODD}
    assert made.warnings == ()


def test_every_name_comes_out_as_it_went_in(made: Plan) -> None:
    rows = list(made.rows())
    assert {row["object"] for row in rows if row["target"] == "branches"} == {*WORDS, "main"}
    held = {row["because"] for row in rows if row["decision"] == "held"}
    assert held == {f"hold:{word} ({word})" for word in WORDS[::3]}


def test_the_digest_is_that_of_the_lines(made: Plan, tmp_path: Path) -> None:
    """As `plan.plan` says it, by Python's own JSON. The digits of an escape are upper case, as Java has them."""
    lines: dict[str, list[str]] = {}
    for row in made.rows():
        kept = {key: value for key, value in row.items() if value is not None}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False).replace("\\u001f", "\\u001F")
        lines.setdefault(row["dataset"], []).append(hashlib.sha256(text.encode()).hexdigest())
    of_dataset = sorted(f"{n} {hashlib.sha256(chr(10).join(sorted(x)).encode()).hexdigest()}" for n, x in lines.items())
    root = hashlib.sha256("\n".join(of_dataset).encode()).hexdigest()
    assert plan_digest(NOW, root, policies(tmp_path, json.dumps(RULES, ensure_ascii=False)).canonical()) == made.digest


def test_a_star_stops_at_dots_and_takes_line_breaks(tmp_path: Path) -> None:
    names = ["lake.a.b", "lake.a.b.c", str(DatasetId("lake", ("a",), "x\ny")), "lake.ab.c"]
    tables = [Table(name).commit("T1", 100).commit("T2", 50) for name in names]
    select = [("one", ["lake.a.*"]), ("deep", ["lake.a.**"]), ("rest", ["lake.*.c"])]
    rules = [{"name": n, "select": {"tables": t}, "versions": {"older_than": "1d"}} for n, t in select]
    found = decided(plan(policies(tmp_path, json.dumps({"policies": rules}, ensure_ascii=False)), world(*tables)))
    owners = {row["dataset"]: row["policy"] for row in found.values()}
    assert owners == dict(zip(names, ("one", "deep", "one", "rest"), strict=True))
