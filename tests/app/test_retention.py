"""The verbs of retention through the library: typed, frozen, readable, and as the command line has them."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ebbtide import Ebbtide
from ebbtide.app.opened import database_of
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.places import ODD

POLICY = """
policies:
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d, keep_min: 1}, grace: 7d}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / ODD
    SmallLake(root).create("payments", 3)
    settings = "clock: simulated\nledger: {origin: example.org/acme, checkpoint: ../seen.txt}\n"
    (root / "ebbtide.yml").write_text(PROJECT + settings)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    return root


def test_one_walk_from_plan_to_ledger_in_one_process(root: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=40)
    with Ebbtide(root) as tide:
        tide.scan()
        with tide.plan(as_of=later) as plan:
            planned = [each.name for each in plan.objects("mark")]
            assert plan.to_dict()["digest"] == plan.digest
            assert len(planned) == plan.counts["mark"] == 2
            plan.write(root / "plan.json")
        explained = tide.explain(planned[0], as_of=later)
        assert (explained.decision, explained.policies[0].policy) == ("mark", "old")
        marked = tide.mark(as_of=later, plan_file=root / "plan.json")
        assert [each.name for each in marked.marked] == planned
        rescued = tide.unmark(planned[0], reason="a dispute", as_of=later)
        assert rescued.closed_marks == ("versions",)
        swept = tide.sweep(as_of=later + timedelta(days=8), dry_run=True)
        assert (swept.run, len(swept.objects)) == (None, 1)
        assert tide.release(planned[0], as_of=later).released
        held = tide.hold("lake.db.payments", owner="counsel", reason="case 7", as_of=later)
        assert [each.id for each in tide.holds()] == [held.id]
        assert tide.run(as_of=later + timedelta(days=9), dry_run=True).exit_code == 0
        assert tide.release_hold(held.id or "", as_of=later).released_at
        kinds = [entry.kind for entry in tide.ledger.entries()]
        assert kinds == [
            "ledger.created", "mark.made", "mark.made", "unmark.made", "unmark.released", "hold.placed", "hold.released"
        ]  # fmt: skip
        assert tide.ledger.audit()
        assert tide.ledger.checkpoint().size == len(kinds)
        assert json.loads(tide.ledger.entry(1).leaf)["kind"] == kinds[1]


def test_results_are_frozen_and_people_can_read_them(root: Path) -> None:
    tide = Ebbtide(root)
    tide.scan()
    later = datetime.now(UTC) + timedelta(days=40)
    marked = tide.mark(as_of=later, dry_run=True)
    with pytest.raises(FrozenInstanceError):
        marked.marked_before = 7  # type: ignore[misc]
    assert repr(marked).startswith("MarkResult\n  marked_before: 0\nmarked (2)\n")
    assert "<td>lake.db.payments</td><td>versions</td>" in marked._repr_html_()
    held = tide.hold("lake.db.payments", owner="<b>ann</b>", reason="a\x1b[31mb", as_of=later)
    assert "&lt;b&gt;ann" in held._repr_html_()
    assert "\x1b" not in repr(held)
    assert repr(tide.holds()).startswith("1 rows\n")
    with tide.plan(as_of=later) as plan:
        assert "objects that are not simply kept" in repr(plan)
    assert repr(plan).startswith("PlanResult"), "also when its folder is gone"


def test_the_command_line_prints_what_the_library_answers(root: Path) -> None:
    tide = Ebbtide(root)
    tide.scan()
    later = datetime.now(UTC) + timedelta(days=40)
    at = ("--as-of", later.isoformat(), "--json")
    for verb, found in {
        "mark": tide.mark(as_of=later, dry_run=True).to_dict(),
        "sweep": tide.sweep(as_of=later, dry_run=True).to_dict(),
        "run": tide.run(as_of=later, dry_run=True).to_dict(),
    }.items():
        assert json.loads(ebbtide(verb, "--dry-run", *at, cwd=root).stdout) == found
    with tide.plan(as_of=later) as plan:
        assert json.loads(ebbtide("plan", *at, cwd=root).stdout) == plan.to_dict()
    tide.hold("lake.db.payments", owner="ann", reason="case 1", as_of=later)
    assert json.loads(ebbtide("hold", "list", "--json", cwd=root).stdout) == tide.holds().to_dicts()
    told = json.loads(ebbtide("ledger", "checkpoint", "--json", cwd=root).stdout)
    assert told == tide.ledger.checkpoint().to_dict()


def test_an_instance_has_one_database_until_it_is_closed(root: Path) -> None:
    tide = Ebbtide(root)
    first = database_of(tide.project)
    assert database_of(tide.project) is first
    tide.close()
    assert database_of(tide.project) is not first
