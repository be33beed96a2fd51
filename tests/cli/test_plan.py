"""`plan` and `explain` as their users meet them, on a real Iceberg lake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide.plan.plan import without_codes
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

POLICIES = """\
policies:
  - {name: old-versions, select: {tables: ["lake.db.*"]}, versions: {older_than: 7d}}
  - {name: misspelt, select: {tables: ["lake.db.payment"]}, transactions: {older_than: 7d}}
"""


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
