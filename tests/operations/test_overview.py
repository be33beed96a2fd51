"""One offline page on a project: what is due, promised, stored and asked for."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ebbtide.app.overview import Promised, make_overview
from ebbtide.app.storage_history import record_stored, stored_before
from ebbtide.cli.charts import Charts
from ebbtide.cli.overview import page
from ebbtide.config import load_project
from ebbtide.state.database import Database
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.operations.markup import Page
from tests.operations.requests import put_request

LATER = datetime(2100, 1, 1, tzinfo=UTC)
POLICIES = """\
policies:
  - {name: old-versions, select: {tables: ["**"]}, versions: {older_than: 1d}, grace: 3d}
promises:
  - {name: "<b>soon", tables: ["**.payments"], gone_within: 90d}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("overview") / "project"
    lake = SmallLake(root)
    lake.create("payments", 3)
    lake.create("odd <i>&amp;", 1)
    (root / "ebbtide.yml").write_text(PROJECT + "ledger: {origin: example.org/a, checkpoint: ../checkpoint}\n")
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    assert ebbtide("scan", cwd=root).returncode == 0
    return root


def test_the_page_is_whole_offline_and_says_its_charts_in_words(project: Path) -> None:
    done = ebbtide("report", "overview", "--html", "page.html", "--as-of", "2100-01-01", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    path = project / "page.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = Page.read(path.read_text())
    assert found.tags.count("h1") == 1
    for said in (
        "Retention of acme", "old-versions", "lake.db.payments", "versions older than 1d (old-versions, grace 3d)",
        "live", "kept for older versions", "first could go", "2100-01-04", "broken:",
        "promised 90 d", "<b>soon", "odd <i>&amp;", "Over time", "Requests of people",
    ):  # fmt: skip
        assert said in found.text, said
    assert len(found.charts) == 5, "four states and the curve: nothing bounds what is promised, so it has no bar"


def test_requests_are_shown_by_state_and_deadline_and_nobody_is_named(project: Path) -> None:
    database = Database(load_project(project).state)
    put_request(database, "r-late", due_at=LATER - timedelta(days=2))
    put_request(database, "r-soon", due_at=LATER + timedelta(days=3))
    database.close()
    found = Page.read(page(make_overview(load_project(project), now=LATER))).text
    assert "received 2" in found
    assert "overdue: 1" in found
    assert "r-late received 2099-12-30 2 d overdue r-soon received 2100-01-04 3 d left" in found


def test_a_promise_is_a_bar_of_its_terms_and_what_was_promised(project: Path) -> None:
    terms = (("day", 1.0), ("retention", 71.0), ("grace", 7.0))
    kept = Promised("gone", "lake.db.payments", 90, 79, None, terms)
    late = Promised("gone", "lake.db.users", 30, 79, "retention: 71d makes it 79 d", terms)
    overview = replace(make_overview(load_project(project), now=LATER), promises=(kept, late))
    found = Page.read(page(overview))
    assert "gone: proved, 79 d at most, promised 90 d" in found.text
    assert "broken: retention: 71d makes it 79 d" in found.text
    said = [found.ids[title] + ": " + found.ids[desc] for title, desc in found.charts]
    assert "lake.db.users: gone: broken, 79 d at most: day 1 d, retention 71 d, grace 7 d, promised 30 d" in said


def test_the_curve_has_a_line_a_scan_and_survives_one_that_is_broken(tmp_path: Path) -> None:
    root = tmp_path / "project"
    lake = SmallLake(root)
    lake.create("payments", 1)
    (root / "ebbtide.yml").write_text(PROJECT)
    assert ebbtide("scan", cwd=root).returncode == 0
    lake.append("payments", 2)
    assert ebbtide("scan", cwd=root).returncode == 0
    project = load_project(root)
    record_stored(project, now=LATER)
    file = project.inventory / "storage.jsonl"
    assert len(file.read_text().splitlines()) == 2, "the last scan has its line"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert set(json.loads(file.read_text().splitlines()[0])) == {"at", "live", "kept"}
    first, second = stored_before(project)
    assert first.at < second.at
    assert second.live > first.live > 0
    file.write_text("broken\n" + '{"at": "soon"}\n[]\n' + file.read_text())
    assert stored_before(project) == [first, second]


def test_a_file_that_two_tables_reference_counts_once_and_what_is_live_is_not_kept_too(project: Path) -> None:
    overview = make_overview(load_project(project), now=LATER)
    stored = overview.storage["live"] + overview.storage["kept for older versions"]
    assert stored == sum(table.bytes for table in overview.tables)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "promises", "--html", "p.html"], "--html FILE goes with"),
        (["report", "overview", "--html", "absent/p.html"], "cannot be written"),
    ],
)
def test_a_slip_is_told(project: Path, arguments: list[str], said: str) -> None:
    done = ebbtide(*arguments, cwd=project)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_a_chart_without_anything_is_one_still() -> None:
    charts = Charts()
    drawn = charts.bar("nothing", []) + charts.bar("zero", [("0 B", 0.0)]) + charts.curves("none", "none", [[], []])
    assert drawn.count("<svg") == 3
    assert "nan" not in drawn
