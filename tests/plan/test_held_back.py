"""What keeps a version from an erasure: what people order and formats set, never that retention is about to end it."""

from __future__ import annotations

from pathlib import Path

from ebbtide.model.reasons import Code
from ebbtide.plan.held_back import held_back
from tests.plan.test_marks import mark
from tests.plan.worlds import NOW, Table, decided, orders, plan, policies, world

RULES = """\
policies:
  - {name: v, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""
NAME = "lake.v.t"


def test_a_mark_keeps_no_version_from_an_erasure_and_a_rescue_does(tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES)
    lake = world(Table(NAME).commit("T1", 300).commit("T2", 200).commit("T3", 100))
    marks = [mark(row) for row in decided(plan(rules, lake)).values() if row["decision"] == "mark"]
    assert len(marks) == 2
    assert held_back(rules, lake, orders(marks), [NAME], now=NOW)[NAME].kept == {}
    rescued = orders(marks, [(NAME, "versions", "T1", None, "wanted")])
    assert list(held_back(rules, lake, rescued, [NAME], now=NOW)[NAME].kept) == ["T1"]


def test_a_version_that_a_setting_of_its_table_keeps_names_the_setting(tmp_path: Path) -> None:
    setting = "delta.deletedFileRetentionDuration"
    lake = world(Table(NAME, "delta", floors={setting: "interval 200 days"}).commit("T1", 300).commit("T2", 2))
    why = held_back(policies(tmp_path, RULES), lake, orders([]), [NAME], now=NOW)[NAME].kept["T1"]
    assert (why.code, why.setting) == (Code.FLOOR, setting)
