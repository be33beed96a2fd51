"""`plan` and `explain` as their users meet them, on a real Iceberg lake."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app.explain import explain_selected
from ebbtide.config import load_project
from ebbtide.plan.plan import without_codes
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

POLICIES = """\
policies:
  - {name: old-versions, select: {tables: ["lake.db.*"]}, versions: {older_than: 7d}}
  - {name: misspelt, select: {tables: ["lake.db.payment"]}, transactions: {older_than: 7d}}
"""
LATER = ("--as-of", "2100-01-01")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(PROJECT + 'spark: {master: "local[1]", conf: {spark.driver.memory: 2g}}\n')
    assert ebbtide("scan", cwd=root).returncode == 0
    return root


def with_policies(project: Path, text: str) -> Path:
    (project / "policies").mkdir(exist_ok=True)
    (project / "policies" / "retention.yml").write_text(text)
    return project


def test_a_plan_names_objects_files_and_digest_and_explain_agrees(project: Path) -> None:
    with_policies(project, POLICIES)
    now = ebbtide("plan", "--json", cwd=project)
    assert now.returncode == 0, now.stderr
    assert "policy 'misspelt' selects nothing; nearest: lake.db.payments" in now.stderr
    assert {row["decision"] for row in json.loads(now.stdout)["objects"]} == {"keep"}
    (project / "plans").mkdir(mode=0o700)
    later = ebbtide("plan", "--as-of", "2100-01-01", "-o", "plans/p.json", cwd=project)
    assert later.returncode == 0, later.stderr
    assert later.stdout == ""
    made = json.loads((project / "plans/p.json").read_text())
    assert made["as_of"] == "2100-01-01T00:00:00.000000Z"
    assert made["digest"].startswith("sha256:")
    assert sorted(row["decision"] for row in made["objects"]) == ["keep", "mark", "mark"]
    own = [project / "plans", *(project / "plans").iterdir(), project / ".ebbtide", *(project / ".ebbtide").rglob("*")]
    assert [str(path) for path in own if path.stat().st_mode & 0o077] == [], "others may look at it"
    files = (project / "plans/p.json.files").read_text().splitlines()
    assert files == sorted(files)
    assert len(files) == sum(row["files"]["count"] for row in made["objects"])
    assert all("/metadata/snap-" in path for path in files)  # appends: old versions own their manifest lists alone
    marked = next(row for row in made["objects"] if row["decision"] == "mark")
    told = ebbtide(
        "explain", f"lake.db.payments#versions:{marked['object']}", "--as-of", "2100-01-01", "--json", cwd=project
    )
    assert told.returncode == 0, told.stderr
    planned = json.loads(told.stdout)["planned"]
    assert without_codes(planned) == marked
    assert planned["code"] == "old", "beside the text, for programs"
    assert [line["outcome"] for line in json.loads(told.stdout)["policies"]] == ["owns", "does not select"]


@pytest.mark.parametrize(
    ("arguments", "policies", "message"),
    [
        (["plan"], POLICIES.replace("older_than: 7d}}\n", "older_than: -3d}}\n", 1), "retention.yml:2: '-3d' lies in"),
        (["plan"], POLICIES.replace("older_than: 7d", "older_then: 7d"), "older_than"),
        (["plan"], "", "there are no policies"),
        (["plan", "--as-of", "yesterday"], POLICIES, "not a time: 'yesterday'"),
        (["explain", "lake.db.payments"], POLICIES, "not an object"),
        (["explain", "lake.db.payments#version:1"], POLICIES, "unknown target 'version'"),
        (["explain", "lake.db.nothing#versions:1"], POLICIES, "no dataset lake.db.nothing"),
        (["explain", "lake.db.payments#versions:1"], POLICIES, "lake.db.payments has no versions 1"),
        (["explain"], POLICIES, "name an object, or select some"),
        (["explain", "lake.db.payments#versions:1", "--select", "**"], POLICIES, "name an object, or select some"),
        (["plan", "-o", "nodir/p.json"], POLICIES, "nodir is no folder"),
    ],
)
def test_bad_input_ends_with_2_before_anything_runs(
    project: Path, arguments: list[str], policies: str, message: str
) -> None:
    done = ebbtide(*arguments, cwd=with_policies(project, policies))
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint:" in done.stderr
    assert done.stdout == ""


def test_what_is_selected_is_explained_object_by_object_and_the_rest_is_counted(project: Path) -> None:
    with_policies(project, POLICIES)
    told = ebbtide("explain", "--select", "lake.db.pay*", "--select", "decision:mark", *LATER, "--json", cwd=project)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert [one["planned"]["decision"] for one in found["objects"]] == ["mark", "mark"]
    assert found["more"] == 0
    shown = ebbtide("explain", "--select", "lake.db.*", *LATER, cwd=project)
    assert shown.stdout.count("lake.db.payments#versions:") == shown.stdout.count("decision: ") == 3
    assert "3 explained" in shown.stderr
    few, more = explain_selected(load_project(project), ["lake.db.*"], now=datetime(2100, 1, 1, tzinfo=UTC), most=1)
    assert (len(few), more) == (1, 2)
    wrong = ebbtide("explain", "--select", "lake.db.paymets", cwd=project)
    assert (wrong.returncode, "did you mean 'lake.db.payments'?" in wrong.stderr) == (2, True)


def test_files_wait_for_a_catalog_that_the_project_no_longer_names(tmp_path: Path) -> None:
    """Nobody can be asked what its tables reference, until a person says that nobody needs to wait for them."""
    root = tmp_path / "p"
    SmallLake(root).create("payments", 3)
    SmallLake(root / "old", "old").create("users")
    here = PROJECT + "clock: simulated\nledger: {origin: example.org/acme, checkpoint: ../checkpoint}\n"
    old = '  old: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:old/catalog.db", warehouse: ./old/old}\n'
    file = root / "ebbtide.yml"
    file.write_text(here.replace("clock:", old + "clock:"))
    marked = ebbtide("mark", "--as-of", "2099-12-01", cwd=with_policies(root, POLICIES))
    assert marked.returncode == 0, marked.stderr
    file.write_text(here)
    scanned = ebbtide("scan", cwd=root)
    assert scanned.returncode == 4
    assert "error: catalog old is no longer in ebbtide.yml, and 1 datasets of it are known" in scanned.stderr

    def waits() -> tuple[int, set[str]]:
        planned = ebbtide("plan", "--as-of", "2100-01-01", "--json", cwd=root)
        objects = json.loads(planned.stdout)["objects"]
        return planned.returncode, {name for row in objects for name in row["waits_for"]}

    assert waits() == (4, {"unread:old"})
    file.write_text(here + "ignore: [{catalog: old, reason: handed over}]\n")
    assert waits() == (0, set())
    assert ebbtide("scan", cwd=root).returncode == 0
    told = ebbtide("tables", "--json", cwd=root)
    assert [row["table_id"] for row in json.loads(told.stdout)] == ["lake.db.payments"]
    assert "catalog old is ignored (handed over)" in ebbtide("plan", cwd=root).stderr


TWO = """\
policies:
  - {name: old-versions, select: {tables: ["lake.db.*"]}, versions: {older_than: 7d}, grace: 3d}
  - {name: old-rows, select: {tables: ["lake.db.p*"]}, transactions: {older_than: 7d, allow_latest_view: true}}
"""


def test_a_plan_begins_with_a_summary_and_shows_only_what_changes(project: Path) -> None:
    with_policies(project, TWO)
    made = json.loads(ebbtide("plan", "--json", *LATER, cwd=project).stdout)
    lines = {(line["policy"], line["target"]): line for line in made["summary"]}
    versions, transactions = lines["old-versions", "versions"], lines["old-rows", "transactions"]
    assert versions["counts"] == {"keep": 1, "mark": 2}
    assert versions["first_sweep"] == "2100-01-04T00:00:00.000000Z", "its policy's grace after the plan"
    assert transactions["first_sweep"] == "2100-01-08T00:00:00.000000Z", "the grace that policies have by themselves"
    for line in lines.values():
        rows = [row for row in made["objects"] if (row["policy"], row["target"]) == (line["policy"], line["target"])]
        going = [row for row in rows if row["decision"] == "mark"]
        assert line["files"] == sum(row["files"]["count"] for row in going) > 0
        assert line["bytes"] == sum(row["bytes"] for row in going)
        assert line["rows"] == sum(row["leaves"].get("main", {"rows": 0})["rows"] for row in going)
        assert line["oldest"] == min(row["since"] for row in going)
    assert transactions["rows"] == 3
    shown = ebbtide("plan", *LATER, cwd=project).stdout
    head, _, objects = shown.partition("\n\n")
    assert "old-versions" in head
    assert "2 mark, 1 keep" in head
    assert "2100-01-04 00:00" in head
    assert "#versions:" not in head
    assert " keep " not in objects
    assert len(objects.splitlines()) == 1 + 2 + 3
    everything = ebbtide("plan", "--all", *LATER, cwd=project).stdout
    assert len(everything.partition("\n\n")[2].splitlines()) == 1 + len(made["objects"])


@pytest.mark.parametrize(
    ("select", "taken"),
    [
        (["lake.db.*"], 6),
        (["target:versions"], 3),
        (["target:versions", "decision:mark"], 2),
        (["decision:keep", "decision:mark"], 6),
        (["policy:old-rows", "lake.**"], 3),
    ],
)
def test_a_plan_is_looked_at_by_table_policy_target_and_decision(project: Path, select: list[str], taken: int) -> None:
    with_policies(project, TWO)
    asked = [part for each in select for part in ("--select", each)]
    made = json.loads(ebbtide("plan", "--json", *LATER, *asked, cwd=project).stdout)
    assert len(made["objects"]) == taken
    assert sum(sum(line["counts"].values()) for line in made["summary"]) == taken


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--select", "target:version"], "no target 'version'", "did you mean 'versions'?"),
        (["--select", "policy:old-version"], "no policy 'old-version'", "did you mean 'old-versions'?"),
        (["--select", "label:x"], "cannot select by 'label:x'", "policy:NAME"),
        (["--select", "lake.*"], "no table 'lake.*'", "one star stops at dots: write 'lake.**'"),
        (["--select", "lake.**", "-o", "p.json"], "a plan file is the whole plan", "leave out --select"),
        (["--diff", "nothing.json"], "the plan nothing.json cannot be read", "plan -o FILE"),
    ],
)
def test_a_selection_of_what_there_is_not_is_refused(
    project: Path, arguments: list[str], message: str, hint: str
) -> None:
    done = ebbtide("plan", *arguments, cwd=with_policies(project, TWO))
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr


def test_a_saved_plan_is_shown_without_a_project_and_compared_with_the_next(project: Path, tmp_path: Path) -> None:
    with_policies(project, TWO)
    file = tmp_path / "plan.json"
    first = ebbtide("plan", "-o", str(file), cwd=project)
    assert (first.returncode, first.stdout) == (0, "")
    assert "otherwise" not in first.stderr
    before = file.read_text()
    again = ebbtide("plan", "-o", str(file), *LATER, cwd=project)
    assert "5 objects are decided otherwise than in " in again.stderr
    assert again.stderr.count("  keep  mark\n") == 5
    saved = json.loads(file.read_text())
    shown = json.loads(ebbtide("show", str(file), "--json", cwd=tmp_path).stdout)
    assert shown["digest"] == saved["digest"]
    assert {line["policy"]: line["counts"] for line in shown["summary"]} == {
        "old-versions": {"keep": 1, "mark": 2}, "old-rows": {"mark": 3},
    }  # fmt: skip
    text = ebbtide("show", str(file), "--select", "policy:old-versions", cwd=tmp_path).stdout
    assert text.count("#versions:") == 2
    assert "#transactions:" not in text
    (tmp_path / "before.json").write_text(before)
    compared = ebbtide("plan", "--diff", str(tmp_path / "before.json"), *LATER, cwd=project)
    assert "5 objects are decided otherwise" in compared.stderr
    broken = ebbtide("show", str(project / "ebbtide.yml"), cwd=tmp_path)
    assert broken.returncode == 2
    assert "is not a plan" in broken.stderr


def test_a_detailed_exit_code_says_whether_there_is_something_to_do(project: Path) -> None:
    with_policies(project, TWO)
    assert ebbtide("plan", "--detailed-exitcode", cwd=project).returncode == 0
    assert ebbtide("plan", "--detailed-exitcode", *LATER, cwd=project).returncode == 10
    nothing = ("--select", "decision:keep")
    assert ebbtide("plan", "--detailed-exitcode", *nothing, *LATER, cwd=project).returncode == 0


def test_a_lake_with_the_pack_alone_is_planned_without_a_warning(tmp_path: Path) -> None:
    SmallLake(tmp_path).create("payments", 2)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    for verb in (["init", "--pack", "gdpr"], ["scan"], ["plan"]):
        done = ebbtide(*verb, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
