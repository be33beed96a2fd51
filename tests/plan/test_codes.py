"""Every reason of a plan has its code, in the order of the texts (docs/reasons.md)."""

from __future__ import annotations

import random
from pathlib import Path

from ebbtide.model.reasons import Code
from tests.plan.test_against_oracle import RULES, history
from tests.plan.test_marks import mark
from tests.plan.test_unread import POLICIES, UNREAD, lake
from tests.plan.worlds import NOW, ago, plan, policies, world

CODES = {*Code}


def test_every_reason_has_a_code(tmp_path: Path) -> None:
    rng = random.Random(11)
    made = plan(policies(tmp_path, RULES), world(*(history(rng, n) for n in range(40))))
    seen: set[str] = set()
    for row in made.rows(codes=True):
        assert row["code"] in CODES
        for texts, codes in (("waits_for", "waits_for_codes"), ("protected_by", "protected_by_codes")):
            assert len(row[codes]) == len(row[texts])
            assert {*row[codes]} <= CODES, dict(zip(row[texts], row[codes], strict=True))
            seen |= {*row[codes]}
        seen.add(row["code"])
    assert seen >= {"branch", "tag", "staged", "old", "young", "protected", "mixed_age", "keep_min", "current"}


def test_what_waits_says_for_what_by_code(tmp_path: Path) -> None:
    rules, tables = policies(tmp_path, POLICIES), lake("lake.db")
    marks = [mark(row) for row in plan(rules, world(*tables), now=NOW).rows("mark")]
    gone = ("lake.db.old", "versions", "9", "old", "f", ago(10), ago(1), None, None, "act-1")
    made = plan(rules, world(*tables, unread=UNREAD), marks=[*marks, gone], now=NOW)
    found = {f"{row['dataset']}#{row['target']}:{row['object']}": row for row in made.rows("wait", codes=True)}
    assert found["lake.db.old#versions:9"]["code"] == Code.NOT_LISTED
    assert found["lake.db.old#versions:9"]["waits_for_codes"] == [Code.PROOF, Code.UNREAD]
