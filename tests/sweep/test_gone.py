"""Datasets that no catalog lists any more: what they left is asked about, held and rescued as of any other."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.contracts import repair_tables
from ebbtide.app.explain import explain_object
from ebbtide.app.hold import add_hold
from ebbtide.app.mark import run_mark
from ebbtide.app.orphans import condemn
from ebbtide.app.plan import UNLISTED, make_plan, write_plan
from ebbtide.app.scan import run_scan
from ebbtide.app.sweep import run_sweep
from ebbtide.app.unmark import unmark_object
from ebbtide.config import Project, load_project
from ebbtide.errors import ConflictError, InputError
from ebbtide.formats.iceberg import remove as iceberg_remove
from tests.inventory.lakes import SmallLake

PROJECT = """
project: gone
clock: simulated
catalogs:
  former: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./former}
warehouses: [{prefix: ., exclusive: true}]
ledger: {origin: example.org/gone, checkpoint: ../checkpoint}
spark: {master: "local[1]"}
"""
POLICIES = """
policies:
  - {name: strays, select: {tables: ["former.**"]}, orphans: {older_than: 3d}}
  - {name: others, select: {tables: ["**"], formats: [delta]}, orphans: {}}
"""
NOW = datetime.now(UTC)
NAMES = ("held", "rescued")


def _lake(root: Path, policies: str = POLICIES, project: str = PROJECT) -> SmallLake:
    """An empty lake with a project around it."""
    (root / "policies").mkdir(parents=True)
    (root / "ebbtide.yml").write_text(project)
    (root / "policies" / "p.yml").write_text(policies)
    return SmallLake(root, "former")


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_what_dropped_tables_left_is_planned_explained_held_and_rescued(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "p"
    lake = _lake(root)
    folders = {name: lake.create(name) for name in ("there", "left", "dropped")}
    project = load_project(root)
    run_scan(project, now=NOW)
    for name in ("left", "dropped"):
        lake.tables.drop_table(("db", name))
    shutil.rmtree(folders["left"] / "metadata")  # as a purge leaves it that died
    for path in (*folders["left"].rglob("*"), *folders["dropped"].rglob("*")):
        os.utime(path, (then := time.time() - 10 * 86_400, then))
    assert condemn(project, str(folders["dropped"]), now=NOW)["dataset"] == "former.db.dropped"

    marked = run_mark(project, as_of=NOW)
    assert {key.dataset for key in marked.marked} == {"former.db.left", "former.db.dropped"}
    left, dropped = (f"former.db.{name}#orphans:file://{folders[name]}/data" for name in ("left", "dropped"))

    add_hold(project, "former.db.left", owner="counsel", reason="case 7", as_of=NOW)
    assert unmark_object(project, dropped, reason="needed", as_of=NOW)["closed_marks"] == ["orphans"]
    assert _decision(project, left) == ("held", "hold:counsel (case 7)")
    assert _decision(project, dropped) == ("unmarked", "unmarked by a person until released: needed")

    # An inventory that was made anew knows of no former dataset; an open mark still does.
    shutil.rmtree(project.inventory)
    run_scan(project, now=NOW)
    assert unmark_object(project, left, reason="needed too", as_of=NOW)["closed_marks"] == ["orphans"]
    with pytest.raises(InputError, match=r"no dataset former\.db\.lost") as caught:
        add_hold(project, "former.db.lost", owner="counsel", reason="case 8", as_of=NOW)
    assert "former.db." in str(caught.value.hint)


LABELLED = """
policies:
  - {name: strays, select: {tables: ["former.**"], exclude: {any_labels: [Team.them]}}, orphans: {older_than: 3d}}
floors:
  - {any_labels: [LegalHold.is_true], keep_at_least: 7y, basis: tax code}
"""
CLASSIFIERS = """
classifiers:
  - {name: LegalHold, kind: table, propagate: false, labels: [is_true]}
  - {name: Team, kind: table, propagate: false, labels: [us, them]}
"""


def test_labels_hold_what_is_left_of_a_dropped_table(spark: SparkSession, tmp_path: Path) -> None:
    """A floor or an exclusion by label, in YAML or in the table's properties, does not end with the drop."""
    root = tmp_path / "p"
    lake = _lake(root, LABELLED)
    for kind in ("classifiers", "tables"):
        (root / kind).mkdir()
    (root / "classifiers" / "c.yml").write_text(CLASSIFIERS)
    (root / "tables" / "t.yml").write_text("tables:\n  - {name: former.db.yaml, labels: [LegalHold.is_true]}\n")
    names = ("yaml", "property", "theirs", "nobodys")
    folders = {name: lake.create(name) for name in names}
    for name, label in (("property", "LegalHold.is_true"), ("theirs", "Team.them")):
        with lake.tables.load_table(("db", name)).transaction() as change:
            change.set_properties({"ebbtide.labels": label})
    project = load_project(root)
    run_scan(project, now=NOW)
    for name, folder in folders.items():
        lake.tables.drop_table(("db", name))
        shutil.rmtree(folder / "metadata")
        for path in folder.rglob("*"):
            os.utime(path, (then := time.time() - 10 * 86_400, then))
    run_scan(project, now=NOW)
    run_scan(project, now=NOW)  # also what was forgotten longer ago

    assert {key.dataset for key in run_mark(project, as_of=NOW).marked} == {"former.db.nobodys"}
    for name in ("yaml", "property"):
        told = explain_object(project, f"former.db.{name}#orphans:file://{folders[name]}/data", now=NOW)
        assert (told["planned"]["decision"], told["planned"]["protected_by"]) == ("keep", ["floor:7y (tax code)"])


def test_a_hold_and_an_unmark_go_with_a_table_that_is_renamed(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "p"
    lake = _lake(
        root, "policies:\n  - {name: old, select: {tables: ['**']}, versions: {older_than: 7d, keep_min: 1}}\n"
    )
    for name in NAMES:
        lake.create(name, 4)
    project, first = load_project(root), lake.tables.load_table("db.rescued").metadata.snapshots[0].snapshot_id
    run_scan(project, now=NOW)
    add_hold(project, "former.db.held", owner="counsel", reason="case 7", as_of=NOW)
    unmark_object(project, f"former.db.rescued#versions:{first}", as_of=NOW)
    for name in NAMES:
        lake.tables.rename_table(f"db.{name}", f"db.{name}_2")

    marked = run_mark(project, as_of=NOW + timedelta(days=40)).marked
    assert {key.dataset for key in marked} == {"former.db.rescued_2"}
    assert (len(marked), str(first) in {key.object for key in marked}) == (2, False)

    (root / "classifiers").mkdir()
    (root / "classifiers" / "pii.yml").write_text(
        "classifiers:\n  - {name: PII, kind: column, propagate: true, labels: [tag]}\n"
    )
    (root / "tables").mkdir()
    (root / "tables" / "t.yml").write_text(
        "".join(["tables:\n", *(f"  - {{name: former.db.{n}_2, columns: {{name: [PII.tag]}}}}\n" for n in NAMES)])
    )
    tried = repair_tables(project, [f"former.db.{name}_2" for name in NAMES], dry_run=True)
    windows = {row["table_id"]: row["because"] or "" for row in tried if row["aspect"] == "window"}
    assert windows.keys() == {"former.db.held_2", "former.db.rescued_2"}
    assert ("may need the versions" in windows["former.db.held_2"], windows["former.db.rescued_2"]) == (True, "")


def test_a_table_that_was_dropped_comes_back_whole(spark: SparkSession, tmp_path: Path) -> None:
    """A drop without purge is undone by registering the table again: until then nothing of it may go."""
    root = tmp_path / "p"
    old = "{name: old, select: {tables: ['**']}, versions: {older_than: 7d, keep_min: 1}}"
    lake = _lake(root, f"{POLICIES}  - {old}\n")
    folder, project = lake.create("back", 3), load_project(root)
    lake.create("there")
    rows = lake.tables.load_table("db.back").scan().to_arrow()
    marked = run_mark(project, as_of=NOW + timedelta(days=40))
    assert {key.target for key in marked.marked if key.dataset == "former.db.back"} == {"versions"}

    last = lake.tables.load_table("db.back").metadata_location
    lake.tables.drop_table("db.back")
    for path in folder.rglob("*"):
        os.utime(path, (then := time.time() - 10 * 86_400, then))
    before = _files(folder)
    assert not [key for key in run_mark(project, as_of=NOW + timedelta(days=60)).marked if "back" in key.dataset]
    run_sweep(project, as_of=NOW + timedelta(days=69))
    assert _files(folder) == before

    lake.tables.register_table("db.back", last)
    swept = run_sweep(project, as_of=NOW + timedelta(days=90))
    assert swept.findings == ()
    assert lake.tables.load_table("db.back").scan().to_arrow() == rows


@pytest.fixture
def adhoc(tmp_path: Path) -> tuple[Project, SmallLake, Path]:
    """A project with a table that is marked to be dropped whole, and that table's folder."""
    root = tmp_path / "p"
    policy = "policies:\n  - {name: adhoc, select: {tables: ['**.adhoc']}, tables: {older_than: 7d}}\n"
    lake = _lake(root, policy, PROJECT.replace("warehouses: [{prefix: ., exclusive: true}]\n", ""))
    folder, project = lake.create("adhoc", 3), load_project(root)
    lake.create("there")
    run_mark(project, as_of=NOW + timedelta(days=40))
    return project, lake, folder


def test_a_drop_that_was_interrupted_is_finished(
    spark: SparkSession, adhoc: tuple[Project, SmallLake, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, lake, folder = adhoc
    files = _files(folder)

    def refused(paths: Collection[str], *_: object) -> dict[str, str]:
        return dict.fromkeys(paths, "access denied")

    with monkeypatch.context() as patched:
        patched.setattr(iceberg_remove, "remove_files", refused)
        first = run_sweep(project, as_of=NOW + timedelta(days=48))
    assert [result.state for result in first.results] == ["failed"]
    assert _files(folder) == files
    assert not lake.tables.table_exists("db.adhoc"), "the catalog has forgotten it"

    second = run_sweep(project, as_of=NOW + timedelta(days=49))
    assert [(result.key.target, result.state) for result in second.results] == [("tables", "swept")]
    assert not _files(folder)


def test_a_table_that_somebody_else_dropped_after_our_drop_failed_is_left_to_them(
    spark: SparkSession, adhoc: tuple[Project, SmallLake, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, lake, folder = adhoc
    files = _files(folder)

    def refused(*_: object) -> None:
        raise ConflictError("a writer was quicker", hint="again later")

    with monkeypatch.context() as patched:
        patched.setattr(iceberg_remove, "drop_from_catalog", refused)
        assert [result.state for result in run_sweep(project, as_of=NOW + timedelta(days=48)).results] == ["failed"]
    lake.tables.drop_table("db.adhoc")
    second = run_sweep(project, as_of=NOW + timedelta(days=49))
    assert [(result.key.target, result.state) for result in second.results] == [("tables", "unmarked")]
    assert _files(folder) == files


def test_a_plan_without_a_listing_says_that_it_has_no_orphans_and_is_not_refused_for_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "p"
    folder = _lake(root).create("there")
    stray = folder / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    os.utime(stray, (then := time.time() - 10 * 86_400, then))
    project = load_project(root)
    run_scan(project, now=NOW)
    with make_plan(project, now=NOW) as made:
        assert UNLISTED in made.warnings
        write_plan(made, root / "plan.json")
    assert run_mark(project, as_of=NOW, plan_file=root / "plan.json").marked == ()
    assert {key.target for key in run_mark(project, as_of=NOW).marked} == {"orphans"}


def _decision(project: Project, name: str) -> tuple[Any, ...]:
    told = explain_object(project, name, now=NOW + timedelta(hours=1))
    assert [line["outcome"] for line in told["policies"]] == ["owns", "does not select"]
    return told["planned"]["decision"], told["planned"]["because"]
