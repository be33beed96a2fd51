"""A name that nothing has is wrong input, with the nearest that there is: silence would look like nothing to do."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

POLICIES = """\
policies:
  - {name: old-versions, select: {tables: ["**"]}, versions: {older_than: 1d}, grace: 3d}
"""
SETTINGS = "clock: simulated\nledger: {origin: example.org/a, checkpoint: ../checkpoint}\n"
MARKED = "2100-01-01"


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables with marks."""
    root = tmp_path_factory.mktemp("names") / "project"
    lake = SmallLake(root)
    for name in ("payments", "users"):
        lake.create(name, 2)
    (root / "ebbtide.yml").write_text(PROJECT + SETTINGS)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    done = ebbtide("mark", "--as-of", MARKED, cwd=root)
    assert done.returncode == 0, done.stderr
    assert ebbtide("plan", "-o", "plan.json", "--as-of", MARKED, cwd=root).returncode == 0
    return root


@pytest.mark.parametrize(
    "verb",
    [
        ("plan", "--select", "lake.db.paymets", "--detailed-exitcode"),
        ("plan", "--select", "lake.db.paymets", "--json"),
        ("plan", "--select", "lake.db.users", "--select", "lake.db.paymets"),
        ("show", "plan.json", "--select", "lake.db.paymets"),
        ("mark", "--select", "lake.db.paymets", "--as-of", MARKED),
        ("mark", "--select", "lake.db.paymets", "--dry-run", "--as-of", MARKED),
        ("sweep", "--select", "lake.db.paymets", "--yes", "--as-of", MARKED),
        ("sweep", "--select", "lake.db.paymets", "--dry-run", "--as-of", MARKED),
        ("marks", "--select", "lake.db.paymets"),
        ("ledger", "log", "--dataset", "lake.db.paymets"),
        ("lineage", "--table", "lake.db.paymets"),
    ],
    ids=" ".join,
)
def test_a_table_that_is_none_is_told_with_the_nearest_and_exits_2(marked: Path, verb: tuple[str, ...]) -> None:
    done = ebbtide(*verb, cwd=marked)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "lake.db.paymets" in done.stderr
    assert "did you mean" in done.stderr
    assert "lake.db.payments" in done.stderr


@pytest.mark.parametrize("verb", [("plan",), ("mark", "--as-of", MARKED), ("show", "plan.json")], ids=" ".join)
def test_a_policy_that_is_none_is_told_with_the_nearest(marked: Path, verb: tuple[str, ...]) -> None:
    done = ebbtide(*verb, "--select", "policy:old-version", cwd=marked)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'old-versions'?" in done.stderr


def test_a_pattern_that_nothing_is_near_to_is_told_with_what_there_is(marked: Path) -> None:
    done = ebbtide("plan", "--select", "nope", cwd=marked)
    assert done.returncode == 2
    assert "no table 'nope'\nhint: known: lake.db.payments, lake.db.users" in done.stderr


def test_what_is_selected_is_not_taken_for_the_whole_plan(marked: Path) -> None:
    some = ebbtide("plan", "--select", "lake.db.us*", "--as-of", MARKED, cwd=marked)
    assert some.returncode == 0, some.stderr
    assert "payments" not in some.stdout
    assert "of the whole plan: " in some.stderr
    assert "of the whole plan" not in ebbtide("plan", "--as-of", MARKED, cwd=marked).stderr


def test_a_table_that_its_catalog_dropped_is_still_one_to_select_and_to_look_up(marked: Path, tmp_path: Path) -> None:
    shutil.copytree(marked, root := tmp_path / "project", symlinks=True)
    (root / "ebbtide.yml").write_text(PROJECT + SETTINGS.replace("../checkpoint", f"{marked.parent}/checkpoint"))
    with sqlite3.connect(root / "catalog.db") as catalog:
        catalog.execute("DELETE FROM iceberg_tables WHERE table_name = 'payments'")
    assert ebbtide("scan", cwd=root).returncode == 0
    assert "payments" not in ebbtide("tables", cwd=root).stdout
    for verb in (("plan", "--select"), ("marks", "--select"), ("ledger", "log", "--dataset")):
        done = ebbtide(*verb, "lake.db.payments", cwd=root)
        assert done.returncode == 0, done.stderr
    assert "lake.db.payments" in ebbtide("ledger", "log", "--dataset", "lake.db.payments", cwd=root).stdout


def test_a_folder_to_condemn_is_named_from_where_one_stands(tmp_path: Path) -> None:
    """A table that no catalog lists, named by a path of the current folder; and a bare URI, which names no place."""
    lake = SmallLake(tmp_path)
    lake.create("kept")
    lake.create("left")
    with sqlite3.connect(tmp_path / "catalog.db") as catalog:
        catalog.execute("DELETE FROM iceberg_tables WHERE table_name = 'left'")
    (tmp_path / "ebbtide.yml").write_text(PROJECT + "warehouses: [{prefix: ./lake, exclusive: true}]\n")
    folder = tmp_path / "lake" / "db" / "left"
    assert folder.is_dir()
    for here, path in ((tmp_path, "./lake/db/left"), (tmp_path, "lake/db/left"), (folder.parent, "left")):
        done = ebbtide("orphans", "condemn", path, "--project", str(tmp_path), "--dry-run", "--unsafe", cwd=here)
        assert done.returncode == 0, done.stderr
        assert f"file://{folder} would be condemned" in done.stderr
    wrong = ebbtide("orphans", "condemn", "file:lake/db/left", "--dry-run", cwd=tmp_path)
    assert (wrong.returncode, "not an absolute URI" in wrong.stderr) == (2, True)
