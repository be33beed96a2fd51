"""The demo as a newcomer runs it: one command, a real lake, and verbs that work on it afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import cold, ebbtide

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "lake"
    done = cold("demo", str(folder), cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    assert "9 datasets read, 0 errors" in done.stdout
    assert "a second scan reads only what changed: 0 datasets" in done.stdout
    assert "lake.app.daily_user_events is TableContent.user_data" in done.stdout
    assert "check pii_statistics fails" in done.stdout
    assert "check names_and_labels" not in done.stdout
    assert "past its 90d: lake.app.daily_user_events 0/_date=" in done.stdout
    assert "somebody needs events.web.clicks#partitions:" in done.stdout
    assert "sweep after 16 days: 17 swept, 3 waiting" in done.stdout
    return folder


def test_the_demo_shows_all_four_formats_with_branches_and_tags(lake: Path) -> None:
    rows = json.loads(ebbtide("tables", "--json", "--project", str(lake), cwd=lake).stdout)
    assert {row["format"] for row in rows} == {"iceberg", "delta", "hudi", "paimon"}
    assert all(row["error"] is None and row["rows"] for row in rows)
    by_id = {row["table_id"]: row for row in rows}
    assert (by_id["lake.raw.payment_events"]["branches"], by_id["lake.raw.payment_events"]["tags"]) == (2, 1)
    assert by_id["stream.risk.alerts"]["tags"] == 1
    assert by_id["lake.archive.payments_2019"]["unknown"], "gc.enabled=false must be told"


def test_the_demo_sweeps_what_is_past_its_retention_and_keeps_what_was_rescued(lake: Path) -> None:
    told = json.loads(ebbtide("history", "lake.raw.payment_events", "--json", "--project", str(lake), cwd=lake).stdout)
    branches = {branch["name"]: branch for branch in told["branches"]}
    # The tag and the audit branch keep what they read; main's older versions went with the partitions' mark.
    assert branches["main"]["transactions"][-1]["kind"] == "DELETE"
    assert [t["state"] for t in branches["audit"]["transactions"]][-2:] == ["live", "live"]
    told = json.loads(
        ebbtide("history", "lake.app.daily_user_events", "--json", "--project", str(lake), cwd=lake).stdout
    )
    (main,) = told["branches"]
    assert [(t["state"], t["message"]) for t in main["transactions"]] == [
        ("swept", "Transaction data has been deleted."),
        ("swept", "Transaction data has been deleted."),
        ("expired", None),
        ("expired", None),
        ("live", None),
    ]


def test_a_demo_replaces_only_a_demo(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    done = ebbtide("demo", str(tmp_path / "precious"), cwd=tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "precious" / "file").read_text() == "mine"


def test_who_is_nowhere_in_the_demo_ends_certified_and_who_is_there_is_found(lake: Path) -> None:
    """In all four formats, beside small ids: a number of seven digits that is nowhere is told from all of them."""
    project = ("--project", str(lake))
    ids = {}
    for name, said in (("nowhere", "user_id=8841302"), ("there", "email=user5@example.org")):
        (lake.parent / name).write_text(f"{said}\n")
        done = ebbtide(
            "erase", "request", *project, "--subject", f"@{name}", "--law", "gdpr", "--json", cwd=lake.parent
        )
        assert done.returncode == 0, done.stderr
        ids[name] = json.loads(done.stdout)["id"]
    done = cold("erase", "verify", *project, *ids.values(), "--json", cwd=lake.parent)
    assert done.returncode == 1, done.stderr
    nowhere, there = json.loads(done.stdout)
    assert (nowhere["grade"], nowhere["found"], nowhere["cannot_tell"]) == ("A", [], [])
    assert there["grade"] == "F"
    assert any("lake.app.users branch:main" in by for each in there["found"] for by in each["referenced_by"])
    assert ebbtide("erase", "certificate", *project, ids["there"], "-o", "c.json", cwd=lake.parent).returncode == 3
    done = ebbtide("erase", "certificate", *project, ids["nowhere"], "-o", "c.json", cwd=lake.parent)
    assert done.returncode == 0, done.stderr
    (lake.parent / "keys").write_text(ebbtide("ledger", "key", *project, "--all", cwd=lake.parent).stdout)
    checked = ebbtide("ledger", "check", "c.json", "--key", "keys", "--simulated", cwd=lake.parent)
    assert checked.returncode == 0, checked.stderr
    found = json.loads(ebbtide("erase", "status", *project, ids["nowhere"], "--json", cwd=lake.parent).stdout)
    assert found["state"] == "certified"
