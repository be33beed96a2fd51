"""The verbs that read, through the library: their types are checked by mypy, strictly, as a user's would be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide import Ebbtide
from ebbtide.app.results.built import built
from ebbtide.app.results.governance import LabelExplanation, LabelsResult, LineageResult
from ebbtide.app.results.lake import History, OrphansResult, ScanError, ScanResult, Table
from ebbtide.app.results.shown import ResultRows
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.places import ODD

NAME = "lake.db.payments"
PII = "classifiers:\n  - {name: PII, kind: column, propagate: true, labels: [tag]}\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reading") / ODD
    lake = SmallLake(root)
    lake.create("payments", 2)
    lake.create("broken", 1)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "tables").mkdir()
    (root / "tables" / "t.yml").write_text(f"tables:\n  - {{name: {NAME}, columns: {{name: [PII.tag]}}}}\n")
    (root / "classifiers").mkdir()
    (root / "classifiers" / "pii.yml").write_text(PII)
    Ebbtide(root).scan()
    lake.metadata_file("broken").write_text("{")
    Ebbtide(root).scan(full=True)
    return root


def test_every_answer_is_typed_and_what_the_command_line_prints(root: Path) -> None:
    tide = Ebbtide(root)
    tables: ResultRows[Table] = tide.tables()
    history: History = tide.history(NAME)
    labels: LabelsResult = tide.labels()
    explained: LabelExplanation = tide.explain_labels(NAME)
    lineage: LineageResult = tide.lineage()
    assert [table.table_id for table in tables] == ["lake.db.broken", NAME]
    assert history.branches[0].transactions[-1].rows_added == 1
    assert explained.columns[1].why[0].label == "PII.tag"
    printed = {
        ("tables",): tables.to_dicts(),
        ("history", NAME): history.to_dict(),
        ("labels",): labels.to_dict(),
        ("labels", NAME): explained.to_dict(),
        ("lineage",): {**lineage.to_dict(), "traced": 0},
    }
    for arguments, found in printed.items():
        assert json.loads(ebbtide(*arguments, "--json", cwd=root).stdout) == found, arguments


def test_a_scan_tells_what_it_could_not_read_and_what_differs_from_contracts(root: Path) -> None:
    found: ScanResult = Ebbtide(root).scan()
    error: ScanError = found.errors[0]
    assert (found.datasets, error.table_id) == (2, "lake.db.broken")
    assert {one.table_id for one in found.drift} == {NAME}, "statistics of a PII column are kept"
    told = json.loads(ebbtide("scan", "--json", cwd=root).stdout)
    assert told["drift"] == found.to_dict()["drift"]
    assert told["errors"] == Ebbtide(root).errors().to_dicts()


def test_orphans_are_told_with_what_keeps_them(root: Path) -> None:
    found: OrphansResult = Ebbtide(root).orphans()
    assert found.orphans == ()
    assert "lake.db.broken" in found.unread[0]
    assert "<table>" in found._repr_html_()


def test_a_key_without_a_field_is_an_error_and_not_lost() -> None:
    with pytest.raises(AssertionError, match="ScanError has no field for more"):
        built(ScanError, {"catalog": "c", "table_id": None, "error": "e", "hint": None, "more": 1})
