"""Rescues: what is marked, what people rescued, and many at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.state.database import Database
from ebbtide.state.tables import marks
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

POLICIES = """\
policies:
  - {name: old-versions, select: {tables: ["**"]}, versions: {older_than: 1d}, grace: 3d}
"""
MARKED, RESCUED = "2100-01-01", "2100-01-02"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    lake = SmallLake(root)
    for name in ("raw_a", "raw_b", "app"):
        lake.create(name, 3)
    settings = "clock: simulated\nledger: {origin: example.org/a, checkpoint: ../checkpoint}\n"
    (root / "ebbtide.yml").write_text(PROJECT + settings)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    done = ebbtide("mark", "--as-of", MARKED, cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def listed(root: Path, *verb: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ebbtide(*verb, "--json", cwd=root).stdout)
    return found


def kinds(root: Path) -> list[str]:
    size = int(ebbtide("ledger", "checkpoint", cwd=root).stdout.splitlines()[1])
    return [json.loads(ebbtide("ledger", "entry", str(n), cwd=root).stdout)["kind"] for n in range(size)]


def test_marks_are_listed_and_rescued_by_pattern_in_one_act_with_an_entry_each(project: Path) -> None:
    found = listed(project, "marks")
    assert [row["dataset"] for row in found] == ["lake.db.app"] * 2 + ["lake.db.raw_a"] * 2 + ["lake.db.raw_b"] * 2
    assert {row["grace_until"] for row in found} == {"2100-01-04T00:00:00.000000Z"}
    assert listed(project, "marks", "--due", "3d") == [], "the grace ends in many years, by the real clock"
    assert len(listed(project, "marks", "--select", "lake.db.raw_*")) == 4
    shown = ebbtide("marks", cwd=project)
    first = f"lake.db.app#versions:{found[0]['object']}"
    assert first in shown.stdout, "as `unmark` takes it"
    assert "6 marked, 0 past their grace" in shown.stderr
    names = ["lake.db.raw_*", first]
    asked = json.loads(ebbtide("unmark", *names, "--dry-run", "--json", "--as-of", RESCUED, cwd=project).stdout)
    assert len(asked["objects"]) == 5
    assert asked["objects"] == sorted(asked["objects"], key=lambda row: (row["dataset"], row["object"]))
    assert len(listed(project, "marks")) == 6, "a dry run writes nothing"
    done = ebbtide("unmark", *names, "--reason", "Ada asked", "--json", "--as-of", RESCUED, cwd=project)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == asked
    assert [row["object"] for row in listed(project, "marks")] == [found[1]["object"]]
    assert kinds(project) == ["ledger.created"] + ["mark.made"] * 6 + ["unmark.made"] * 5
    pins = listed(project, "unmarks")
    assert {(pin["dataset"], pin["object"], pin["reason"]) for pin in pins} == {
        (row["dataset"], row["object"], "Ada asked") for row in found if row["object"] != found[1]["object"]
    }
    released = ebbtide("unmark", "lake.db.raw_*", "--release", "--as-of", RESCUED, cwd=project)
    assert released.returncode == 0, released.stderr
    assert [pin["dataset"] for pin in listed(project, "unmarks")] == ["lake.db.app"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lake.db.row_*"], "nothing is marked that 'lake.db.row_*' names"),
        (["lake.db.raw_*", "lake.x.**"], "nothing is marked that 'lake.x.**' names"),
        (["lake.db.*", "--release"], "nothing is unmarked that 'lake.db.*' names"),
        (["lake.db.raw_a", "lake.db.raw_b"], "not an object: 'lake.db.raw_a'"),
        (["lake.db.*", "--until", "2100-01-01"], "an unmark that has expired already"),
    ],
)
def test_a_pattern_of_nothing_rescues_nothing(project: Path, arguments: list[str], message: str) -> None:
    done = ebbtide("unmark", *arguments, "--as-of", RESCUED, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(listed(project, "marks")) == 6
    assert listed(project, "unmarks") == []


def test_what_a_sweep_has_begun_with_is_left_and_named_and_the_rest_is_rescued(project: Path) -> None:
    found = listed(project, "marks")
    begun = found[0]["object"]
    database = Database(f"sqlite:///{project}/.ebbtide/state.db")
    with database.writer() as state:
        state.connection.execute(marks.update().where(marks.c.object == begun).values(state="sweeping"))
    database.close()
    done = ebbtide("unmark", "**", "--json", "--as-of", RESCUED, cwd=project)
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert [row["object"] for row in told["begun"]] == [begun]
    assert f"lake.db.app#{begun}: its removal has begun" in done.stderr
    assert len(told["objects"]) == 5
    assert [row["object"] for row in listed(project, "marks")] == [begun]
    one = ebbtide("unmark", f"lake.db.app#versions:{begun}", "--as-of", RESCUED, cwd=project)
    assert (one.returncode, "its removal has begun" in one.stderr) == (3, True)


def test_a_new_project_has_a_policy_that_marks_no_row_and_keeps_ten_versions(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    lake.create("many", 13)
    lake.create("few", 3)
    assert ebbtide("init", cwd=tmp_path).returncode == 0
    (tmp_path / "ebbtide.yml").write_text(PROJECT)  # its example has the same catalog, by another path
    assert ebbtide("scan", cwd=tmp_path).returncode == 0
    made = json.loads(ebbtide("plan", "--json", "--as-of", "2100-01-01", cwd=tmp_path).stdout)
    counts = {line["dataset"]: (line["counts"], line["rows"]) for line in made["summary"]}
    assert counts == {"lake.db.few": ({"keep": 3}, 0), "lake.db.many": ({"keep": 10, "mark": 3}, 0)}


def test_a_sweep_takes_chosen_tables_whole_and_answers_with_a_row_for_each(project: Path) -> None:
    later = ("--as-of", "2100-01-05")
    told = json.loads(ebbtide("sweep", "--dry-run", "--json", *later, cwd=project).stdout)
    assert [row["dataset"] for row in told["datasets"]] == ["lake.db.app", "lake.db.raw_a", "lake.db.raw_b"]
    assert all((row["swept"], row["files"], row["next_sweep"]) == (2, 2, None) for row in told["datasets"])
    assert sum(row["bytes"] for row in told["datasets"]) == told["removed"]["bytes"] > 0
    chosen = ("--select", "lake.db.raw_*")
    some = json.loads(ebbtide("sweep", "--dry-run", "--json", *chosen, *later, cwd=project).stdout)
    assert {row["dataset"] for row in some["objects"]} == {"lake.db.raw_a", "lake.db.raw_b"}
    assert [row["dataset"] for row in some["datasets"]] == ["lake.db.raw_a", "lake.db.raw_b"]
    assert some["removed"]["files"] == 4
    shown = ebbtide("sweep", "--dry-run", *chosen, *later, cwd=project).stdout
    assert len(shown.splitlines()) == 3, "a header and a row for each table"
    early = json.loads(ebbtide("sweep", "--dry-run", "--json", "--as-of", "2100-01-02", cwd=project).stdout)
    assert {row["next_sweep"] for row in early["datasets"]} == {"2100-01-04T00:00:00.000000Z"}
    part = ebbtide("sweep", "--dry-run", "--select", "target:versions", *later, cwd=project)
    assert part.returncode == 2
    assert "a sweep takes tables whole" in part.stderr


def test_a_mark_takes_what_is_selected(project: Path) -> None:
    assert ebbtide("unmark", "**", "--as-of", RESCUED, cwd=project).returncode == 0
    assert ebbtide("unmark", "**", "--release", "--as-of", RESCUED, cwd=project).returncode == 0
    chosen = ("--select", "lake.db.raw_*", "--select", "target:versions", "--as-of", "2100-01-03")
    would = json.loads(ebbtide("mark", "--dry-run", "--json", *chosen, cwd=project).stdout)
    assert {row["dataset"] for row in would["marked"]} == {"lake.db.raw_a", "lake.db.raw_b"}
    assert ebbtide("mark", *chosen, cwd=project).returncode == 0
    assert {row["dataset"] for row in listed(project, "marks")} == {"lake.db.raw_a", "lake.db.raw_b"}
    wrong = ebbtide("mark", "--select", "policy:old-version", cwd=project)
    assert (wrong.returncode, "did you mean 'old-versions'" in wrong.stderr) == (2, True)


def test_the_ledger_is_listed_by_dataset_kind_and_time_and_never_where_it_was_changed(project: Path) -> None:
    assert ebbtide("unmark", "lake.db.raw_*", "--as-of", RESCUED, cwd=project).returncode == 0
    assert ebbtide("unmark", "lake.db.raw_a#*", "--release", "--as-of", "2100-01-03", cwd=project).returncode == 0
    whole = listed(project, "ledger", "log")
    assert [row["index"] for row in whole] == list(range(1 + 6 + 4 + 2))
    of_one = listed(project, "ledger", "log", "--dataset", "lake.db.raw_a")
    made = ["mark.made"] * 2 + ["unmark.made"] * 2 + ["unmark.released"] * 2
    assert [row["kind"] for row in of_one] == made, "a release names no dataset, and is of the one that it released"
    marks_only = listed(project, "ledger", "log", "--kind", "mark", "--dataset", "lake.db.raw_a")
    assert [row["kind"] for row in marks_only] == ["mark.made"] * 2
    rescued = listed(project, "ledger", "log", "--since", RESCUED, "--until", "2100-01-03")
    assert [row["kind"] for row in rescued] == ["unmark.made"] * 4
    assert listed(project, "ledger", "log", "--request", "none") == []
    assert "did you mean 'hold'?" in ebbtide("ledger", "log", "--kind", "hodl", cwd=project).stderr
    path = f"sqlite:///{project}/.ebbtide/state.db"
    changes = {  # what was changed is a false proof; what was signed and is lost refuses everything
        "UPDATE ledger_entries SET body = CAST(replace(CAST(body AS TEXT), 'db', 'dc') AS BLOB) WHERE idx = 1": 1,
        "DELETE FROM ledger_entries WHERE idx = 2": 3,
    }
    for change, code in changes.items():
        database = Database(path)
        with database.writer() as state:
            state.connection.exec_driver_sql(change)
        database.close()
        done = ebbtide("ledger", "log", "--kind", "hold", cwd=project)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
