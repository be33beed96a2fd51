"""mark, sweep and run as verbs: plan files, limits, dry runs, refusals. One small Iceberg lake for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Engine
from ebbtide.app.hold import add_hold, release_hold
from ebbtide.app.plan import make_plan, write_plan
from ebbtide.cli import main
from ebbtide.cli.commands import app
from ebbtide.config.project import Limits
from ebbtide.errors import InputError, RefusedError
from ebbtide.inventory.information_schema import Inventory
from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
  - {name: nobody, select: {formats: [hudi]}, versions: {older_than: 30d}}
"""
NOBODY = "policy 'nobody' selects nothing; formats there are: iceberg"


Ran = tuple[int | str | None, str, str]
"""Exit code, stdout and stderr of a command."""


@pytest.fixture
def ebbtide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line in this process, on the session that is there."""

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr("sys.argv", ["ebbtide", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.run()
        return (ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def tide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tide:
    return Tide(spark, tmp_path_factory.mktemp("verbs") / "p", "iceberg", policies=POLICIES)


@pytest.fixture(scope="module")
def tables(tide: Tide) -> dict[str, Table]:
    driver = tide.drivers["iceberg"]
    made = {name: driver.create(name) for name in ("one", "two")}
    for table in made.values():
        for number in range(2):
            driver.append(table, [(number, "x", "d")])
        driver.overwrite(table, [(9, "y", "d")])
    tide.app.scan()
    return made


def told(tide: Tide, days: float, *verb: str) -> Any:
    """What a verb says as JSON, at a time. Whoever selects nothing is named beside it, whatever the verb."""
    asked = ["--project", str(tide.root), *verb, "--json", "--as-of", tide.at(days).isoformat()]
    done = CliRunner().invoke(app, asked, env={"COLUMNS": "300"})
    assert done.exit_code == 0, (done.stderr, done.exception)
    found = json.loads(done.stdout)
    assert found["warnings"] == [NOBODY]
    assert done.stderr.count(f"warning: {NOBODY}\n") == 1
    return found


def _write_plan(tide: Tide, days: float, file: Path) -> dict[str, Any]:
    with make_plan(tide.project, now=tide.at(days)) as made:
        write_plan(made, file)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_verbs_do_what_they_say_and_refuse_what_changed(
    tide: Tide, tables: dict[str, Table], tmp_path: Path, ebbtide: Callable[..., Ran]
) -> None:
    """In the order in which a person does it: a plan no writing verb has touched, a look, the mark, a changed world."""
    file = tmp_path / "plan.json"
    _write_plan(tide, 40, file)
    looked = told(tide, 40, "mark", "--plan", str(file), "--dry-run")
    assert len(looked["marked"]) == 4
    assert not (tide.root / ".ebbtide" / "state.db").exists(), "a dry run writes nothing"

    none = tide.mark(40, limits=Limits(max_share=0.0, lake_max_share=1.0, min_bytes=0))
    assert (none.marked, len(none.over)) == ((), 2), "both datasets are past their limit, and left out"
    with pytest.raises(RefusedError, match="of the lake"):
        tide.mark(40, limits=Limits(max_share=1.0, lake_max_share=0.0, min_bytes=0))

    marked = tide.mark(40, plan_file=file)
    assert {(key.dataset, key.object) for key in marked.marked} == {
        (key["dataset"], key["object"]) for key in looked["marked"]
    }
    with pytest.raises(RefusedError, match="the world changed"):
        tide.mark(40, plan_file=file)
    with pytest.raises(RefusedError, match="more than one tick"):
        tide.sweep(45, plan_file=file)

    early = tide.sweep(44)
    assert (early.results, early.removed_files) == ((), 0), "nothing goes within its grace"
    assert tide.mark(44).marked == (), "marking again changes nothing"
    would = told(tide, 48, "sweep", "--dry-run")
    assert {result["state"] for result in would["objects"]} == {"would go"}

    plan = _refused_after_a_commit_a_tag_and_a_hold(tide, tables["one"], tables["two"], file, ebbtide)
    _swept_as_planned_and_the_proof_fails(tide, tables["one"], file, plan, ebbtide)

    done = told(tide, 60, "run", "--yes")
    assert done["exit_code"] == 0
    assert {key["dataset"] for key in done["mark"]["marked"]} == {str(tables["one"].id)}, "what the append superseded"
    assert (done["sweep"]["objects"], done["sweep"]["findings"]) == ([], [])


def _refused_after_a_commit_a_tag_and_a_hold(
    tide: Tide, one: Table, two: Table, file: Path, ebbtide: Callable[..., Ran]
) -> dict[str, Any]:
    """Gives the plan as it is once tag and hold are gone again."""
    driver, before, kinds = tide.drivers["iceberg"], tide.files(), tide.ledger_kinds()
    _write_plan(tide, 48, file)
    driver.append(one, [(5, "z", "d")])
    with pytest.raises(RefusedError, match="the world changed"):
        tide.sweep(48, plan_file=file)

    plan = _write_plan(tide, 48, file)
    driver.create_tag(two, "keep", driver.native_ids(two)[0])
    with pytest.raises(RefusedError, match="the world changed"):
        tide.sweep(48, plan_file=file)
    driver.drop_tag(two, "keep")

    hold = add_hold(tide.project, str(two.id), owner="counsel", reason="case 7", as_of=tide.at(48))
    at = tide.at(48).isoformat()
    code, out, err = ebbtide("sweep", "--project", str(tide.root), "--plan", str(file), "--yes", "--as-of", at)
    assert (code, out) == (3, "")
    assert "the world changed" in err
    release_hold(tide.project, hold["id"], as_of=tide.at(48))
    assert before <= tide.files(), "who refuses removes nothing"
    assert set(tide.ledger_kinds()[len(kinds) :]) == {"hold.placed", "hold.released"}
    return plan


def _swept_as_planned_and_the_proof_fails(
    tide: Tide, one: Table, file: Path, plan: dict[str, Any], ebbtide: Callable[..., Ran]
) -> None:
    """Exactly the plan; but somebody loses a live file meanwhile, and the sweep says so, whoever's fault it was."""
    before, victim, entries = tide.files(), _live_data(tide, one), len(tide.ledger_entries())
    content, delete = victim.read_bytes(), Engine.delete

    def losing(self: Engine, result: ActResult, also: Sequence[str]) -> ActResult:
        ended = delete(self, result, also)
        victim.unlink(missing_ok=True)
        return ended

    at = tide.at(48).isoformat()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "delete", losing)
        code, out, err = ebbtide(
            "sweep", "--project", str(tide.root), "--plan", str(file), "--yes", "--json", "--as-of", at
        )
    said = json.loads(out)
    assert (code, said["findings"]) == (1, [f"{one.id}: a referenced file is missing"])
    assert "the proof failed" in err
    assert [entry["findings"] for entry in tide.ledger_entries()[entries:] if entry["kind"] == "act.outcome"] == [1, 0]
    victim.write_bytes(content)

    going = {(row["dataset"], row["object"]) for row in plan["objects"] if row["decision"] == "sweep"}
    assert {(row["dataset"], row["object"]) for row in said["objects"]} == going
    assert {row["state"] for row in said["objects"]} == {"swept"}
    named = {path.removeprefix(f"file://{tide.root}/") for path in Path(f"{file}.files").read_text().splitlines()}
    gone = {path for path in before - tide.files() if not path.endswith(".crc")}
    assert gone <= named
    assert len(gone) == said["removed"]["files"] == plan["totals"]["sweep"]["files"] > 0


def _live_data(tide: Tide, table: Table) -> Path:
    rows = Inventory.open(tide.project.inventory).rows("files", table_id=str(table.id))
    (path, *_) = [row["path"] for row in rows if row["live"] and row["role"] == "data"]
    return Path(path.removeprefix("file://"))


def test_a_file_that_is_no_plan_is_wrong_input(tide: Tide, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    for name, said in (("x.json", "is not a plan"), ("absent.json", "cannot be read")):
        with pytest.raises(InputError, match=said):
            tide.mark(40, plan_file=tmp_path / name)
