"""What the project file says that lifts a protection is in the ledger, once, before a run acts under it (spec §7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ebbtide.app.ledger import open_ledger
from ebbtide.app.round import RetentionRun, sweeper
from ebbtide.config import load_project
from ebbtide.ledger.audit import audit
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import CatalogDeclared, DatasetIgnored, parse_entry, salted
from ebbtide.run import quiet

AT = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
SHARES = "project: t\nclock: simulated\nledger: {origin: example.org/t, checkpoint: ../checkpoint}\ncatalogs:\n"
PLAIN = SHARES + "  c: {format: delta, warehouse: ./c}\n"
ALONE = SHARES + "  c: {format: delta, warehouse: ./c, shares_files: false}\n"
IGNORED = "ignore: [{dataset: c.web.broken, reason: 'Jane restores it', until: 2026-12-01}]\n"

Run = Callable[..., list[Entry]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Begin a run under a project file at a time; gives the entries that it added."""
    (tmp_path / "p").mkdir()

    def begin(text: str, days: float = 0) -> list[Entry]:
        (tmp_path / "p" / "ebbtide.yml").write_text(text)
        project, now = load_project(tmp_path / "p"), AT + timedelta(days=days)
        ledger = open_ledger(project, as_of=now)
        ledger.open()
        with ledger.reading() as log:
            before = log.size
        inputs: Any = SimpleNamespace(project=project)
        plan: Any = SimpleNamespace(as_of=now)
        context = quiet(as_of=now)
        with sweeper(ledger, context) as lease:
            RetentionRun(context, ledger, inputs, plan, project.limits).declare(lease)
        assert audit(ledger)
        with ledger.reading() as log:
            return [parse_entry(body) for _, _, body in log.rows(before, log.size) if body]

    return begin


def _said(entries: list[Entry]) -> list[tuple[str, bool]]:
    assert all(isinstance(entry, CatalogDeclared | DatasetIgnored) for entry in entries)
    return [(entry.KIND, entry.ended) for entry in entries if isinstance(entry, CatalogDeclared | DatasetIgnored)]


def test_a_declaration_is_written_once_and_again_when_it_changed_or_was_taken_back(run: Run, tmp_path: Path) -> None:
    assert run(PLAIN) == [], "nothing is said"
    declared, ignored = run(ALONE + IGNORED, 1)
    assert isinstance(declared, CatalogDeclared)
    assert (declared.catalog, declared.at, declared.simulated) == ("c", AT + timedelta(days=1), True)
    assert isinstance(ignored, DatasetIgnored)
    with open_ledger(load_project(tmp_path / "p")).database.reader() as state:
        (row,) = [one for one in state.declarations() if one.kind == "dataset"]
        assert ignored.reason == salted(row.salt, "Jane restores it")
        assert state.actor_name(ignored.actor) == state.actor_name(declared.actor)
    assert (ignored.dataset, ignored.until) == ("c.web.broken", datetime(2026, 12, 1, tzinfo=UTC))
    assert run(ALONE + IGNORED, 2) == [], "a second run adds no entry"
    changed = run(ALONE + IGNORED.replace("Jane", "John"), 3)
    assert _said(changed) == [("dataset.ignored", True), ("dataset.ignored", False)]
    assert changed[0] != changed[1]
    assert run(ALONE + IGNORED.replace("Jane", "John"), 30) == [], "it ran out, as it said"
    assert _said(run(ALONE, 31)) == [("dataset.ignored", True)]
    assert _said(run(PLAIN, 32)) == [("catalog.declared", True)]
    assert run(PLAIN, 33) == []
    assert _said(run(ALONE, 34)) == [("catalog.declared", False)], "said again, it is written again"


def test_a_catalog_that_is_given_up_is_in_the_ledger_by_its_name(run: Run) -> None:
    (ignored,) = run(PLAIN + "ignore: [{catalog: old, reason: 'handed over'}]\n")
    assert isinstance(ignored, DatasetIgnored)
    assert (ignored.dataset, ignored.until, ignored.ended) == ("old", None, False)
    assert _said(run(PLAIN, 1)) == [("dataset.ignored", True)]


def test_what_ran_out_before_a_run_came_allowed_nothing_and_is_not_written(run: Run) -> None:
    assert run(PLAIN + IGNORED, 30) == []
