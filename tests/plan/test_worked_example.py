"""The worked example of spec §1 in all its variants, as decisions of a plan."""

from __future__ import annotations

from pathlib import Path

from ebbtide.model.history import TransactionKind
from tests.plan.worlds import Table, decided, marked, plan, policies, policy, world

ABC = "{tables: [lake.db.t], branches: [abc]}"


def example() -> Table:
    """abc: T1, T2 APPEND, T3 SNAPSHOT, T4 APPEND; xyz, forked at T2: T5 APPEND. An empty main exists as well."""
    table = Table("lake.db.t").commit("T1", 50, on="abc").commit("T2", 40, on="abc").branch("xyz", "T2")
    table.commit("T3", 30, on="abc", kind=TransactionKind.SNAPSHOT).commit("T4", 20, on="abc")
    return table.commit("T5", 10, on="xyz")


def test_branch_xyz_protects_t1_and_t2_and_nothing_is_marked(tmp_path: Path) -> None:
    made = plan(policy(tmp_path, "transactions: {older_than: 0d}", ABC), world(example()))
    found = decided(made)
    assert marked(made) == set()
    assert found["transactions:T1"]["protected_by"] == ["branch:xyz"]
    assert found["transactions:T2"]["protected_by"] == ["branch:xyz"]
    assert found["transactions:T3"]["protected_by"] == ["branch:abc"]
    assert found["transactions:T4"]["protected_by"] == ["branch:abc"]
    assert "transactions:T5" not in found  # abc does not reach it: no policy owns it


def test_without_the_branch_t1_t2_and_the_unreachable_t5_go(tmp_path: Path) -> None:
    made = plan(policy(tmp_path, "transactions: {older_than: 0d}", ABC), world(example().drop("xyz")))
    found = decided(made)
    assert marked(made) == {"T1", "T2", "T5"}
    assert found["transactions:T5"]["branches"] == []
    assert [found[f"transactions:{t}"]["bytes"] for t in ("T1", "T2", "T5")] == [100, 100, 100]
    assert made.totals["mark"].bytes == 300
    assert list(made.paths()) == [f"file:///lake/lake.db.t/{t}" for t in ("T1", "T2", "T5")]


def test_a_tag_on_t1_keeps_it_and_t2_and_t5_go(tmp_path: Path) -> None:
    table = example().drop("xyz").tag("keep", "T1")
    made = plan(policy(tmp_path, "transactions: {older_than: 0d}", ABC), world(table))
    assert marked(made) == {"T2", "T5"}
    assert decided(made)["transactions:T1"]["protected_by"] == ["tag:keep"]


def test_a_tag_keeps_its_whole_view(tmp_path: Path) -> None:
    table = example().drop("xyz").tag("keep", "T2")
    made = plan(policy(tmp_path, "transactions: {older_than: 0d}", ABC), world(table))
    assert marked(made) == {"T5"}


def test_a_hold_keeps_everything(tmp_path: Path) -> None:
    hold = [("lake.db.t", None, None, "legal", "case 7")]
    rules = policy(tmp_path, "transactions: {older_than: 0d, allow_latest_view: true}", ABC)
    made = plan(rules, world(example().drop("xyz")), holds=hold)
    assert {row["decision"] for row in decided(made).values()} == {"held"}
    assert decided(made)["transactions:T1"]["protected_by"] == ["hold:legal (case 7)"]


def test_an_unmark_sticks_for_every_target(tmp_path: Path) -> None:
    targets = "transactions: {older_than: 0d}, versions: {older_than: 0d}, tables: {older_than: 0d}"
    rules = policy(tmp_path, targets)
    unmark = [("lake.db.t", "transactions", "T2", None, "needed")]
    without = decided(plan(rules, world(example().drop("xyz"))))
    assert without["tables:lake.db.t"]["decision"] == "mark"
    made = plan(rules, world(example().drop("xyz")), unmarks=unmark)
    found = decided(made)
    assert found["transactions:T2"]["decision"] == found["versions:T2"]["decision"] == "unmarked"
    assert found["tables:lake.db.t"]["decision"] == "unmarked"
    assert found["tables:lake.db.t"]["because"] == "T2 was unmarked by a person until released: needed"
    assert found["transactions:T1"]["decision"] == "mark"
    assert found["transactions:T1"]["bytes"] == 0  # T2's version is kept, and references T1's file


def test_allow_latest_view_takes_appends_of_the_selected_branch_only(tmp_path: Path) -> None:
    rules = policy(tmp_path, "transactions: {older_than: 0d, allow_latest_view: true}", ABC)
    made = plan(rules, world(example()))
    found = decided(made)
    assert marked(made) == {"T4"}
    assert found["transactions:T3"]["decision"] == "keep"
    assert "rows of mixed age, use partitions or rows" in found["transactions:T3"]["because"]
    assert found["transactions:T1"]["protected_by"] == ["branch:xyz"]
    assert found["transactions:T4"]["files"]["count"] == 1


def test_allow_latest_view_is_refused_where_the_format_cannot(tmp_path: Path) -> None:
    rules = policy(tmp_path, "transactions: {older_than: 0d, allow_latest_view: true}", ABC)
    table = example()
    table.format, table.capabilities = "delta", ()
    found = decided(plan(rules, world(table)))
    assert found["transactions:T4"]["decision"] == "keep"
    assert "delta cannot drop exactly its files" in found["transactions:T4"]["because"]


def test_allow_latest_view_never_lifts_a_tag(tmp_path: Path) -> None:
    rules = policy(tmp_path, "transactions: {older_than: 0d, allow_latest_view: true}", ABC)
    made = plan(rules, world(example().tag("keep", "T4")))
    assert marked(made) == set()
    assert decided(made)["transactions:T4"]["protected_by"] == ["tag:keep"]


def test_of_overlapping_policies_the_first_owns_the_object(tmp_path: Path) -> None:
    text = """\
policies:
  - {name: first, select: {tables: ["lake.db.*"], branches: [abc]}, transactions: {older_than: 45d}}
  - {name: second, select: {tables: ["**"]}, transactions: {older_than: 0d}, versions: {older_than: 0d}}
"""
    found = decided(plan(policies(tmp_path, text), world(example().drop("xyz"))))
    owners = {key: row["policy"] for key, row in found.items()}
    assert owners["transactions:T2"] == owners["transactions:T5"] == "first"
    assert found["transactions:T2"]["decision"] == "keep"  # 40 days: the second would take it, but does not own it
    assert found["transactions:T1"]["decision"] == "mark"
    assert owners["versions:T2"] == "second"


def test_totals_count_a_file_once_however_many_objects_name_it(tmp_path: Path) -> None:
    rules = policy(tmp_path, "transactions: {older_than: 0d}, versions: {older_than: 0d}", ABC)
    made = plan(rules, world(example().drop("xyz")))
    named = list(made.read("files"))
    paths = list(made.paths())
    assert paths == sorted({row["path"] for row in named})
    assert len(named) > len(paths) == made.totals["mark"].files == 3
    assert sum(row["bytes"] for row in decided(made).values()) > made.totals["mark"].bytes == 300
