"""Every verb of the command line is a method of `Ebbtide`, and the other way round."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide import Ebbtide
from ebbtide.app.erase_verbs import EraseVerbs
from ebbtide.app.ledger_verbs import LedgerVerbs
from ebbtide.app.tier_verbs import TierVerbs
from tests.cli.command import ebbtide
from tests.cli.generate import commands
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

ROOMS = {"": Ebbtide, "ledger ": LedgerVerbs, "erase ": EraseVerbs, "tier ": TierVerbs}
COMMANDS_ONLY = {"demo", "setup", "doctor", "lineage listen", "ledger check"}
"""A story to look at, what is to be done before there is a project, a server, and a check that needs no project."""
OTHER_NAMES = {
    "classify": "suggest_labels",
    "contract check": "contract_drift",
    "contract create": "create_tables",
    "contract repair": "repair_tables",
    "hold add": "hold",
    "hold list": "holds",
    "hold release": "release_hold",
    "orphans condemn": "condemn",
    "orphans list": "orphans",
    "runs cancel": "cancel_run",
    "runs list": "runs",
    "state upgrade": "upgrade_state",
}
"""What a group of verbs is in a library, where names are whole."""
PARTS = {
    "explain_labels": "labels",  # `labels TABLE`
    "explain_selected": "explain",  # `explain --select`
    "release": "unmark",  # `unmark --release`
    "erase requests_from": "erase request",  # `erase request --from FILE`
    "errors": "scan",  # told after a scan
    "ledger entries": "ledger log",
}
"""What is an option of a verb, or a part of what it shows."""
LIBRARY_ONLY = {"close", "incremental", "information_schema", "keep_lineage_event", *(each.strip() for each in ROOMS)}


MARKED = datetime(2100, 1, 1, tzinfo=UTC)


def _verbs() -> set[str]:
    """What does something by itself: no group that only has verbs in it."""
    return {
        name
        for name, command in commands()
        if name and (not hasattr(command, "commands") or command.invoke_without_command)
    }


def _methods() -> set[str]:
    return {
        f"{room}{name}"
        for room, class_ in ROOMS.items()
        for name, value in inspect.getmembers(class_)
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }


def test_every_verb_is_a_method() -> None:
    verbs, methods = _verbs(), _methods()
    assert len(verbs) > 50
    assert verbs >= COMMANDS_ONLY | OTHER_NAMES.keys()
    missing = {name for name in verbs - COMMANDS_ONLY if OTHER_NAMES.get(name, name) not in methods}
    assert missing == set()


def test_every_method_is_a_verb_or_a_part_of_one() -> None:
    verbs = _verbs()
    assert verbs >= {*PARTS.values()}
    named = {OTHER_NAMES.get(name, name) for name in verbs}
    assert _methods() - named - PARTS.keys() == LIBRARY_ONLY - {""}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("marked") / "project"
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(
        PROJECT + "clock: simulated\nledger: {origin: example.org/a, checkpoint: ../checkpoint}\n"
    )
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(
        'policies:\n  - {name: p, select: {tables: ["**"]}, versions: {older_than: 1d}, grace: 3d}\n'
    )
    with Ebbtide(root) as tide:
        tide.mark(as_of=MARKED)
        (first, *_) = tide.marks()
        tide.unmark(first.name, reason="a dispute", as_of=MARKED)
        with tide.plan(as_of=MARKED) as plan:
            plan.write(root / "p.json")
    return root


def test_marks_rescues_a_saved_plan_and_the_log_are_what_the_command_line_prints(marked: Path) -> None:
    with Ebbtide(marked) as tide:
        answers = {
            ("marks",): tide.marks().to_dicts(),
            ("marks", "--select", "lake.db.pay*"): tide.marks("lake.db.pay*").to_dicts(),
            ("marks", "--due", "12h"): tide.marks(due="12h").to_dicts(),
            ("unmarks",): tide.unmarks().to_dicts(),
            ("show", "p.json"): tide.show(marked / "p.json").to_dict(),
            ("ledger", "log"): tide.ledger.log().to_dicts(),
            ("ledger", "log", "--kind", "mark"): tide.ledger.log("mark").to_dicts(),
        }
        assert (len(tide.marks()), len(tide.unmarks())) == (1, 1)
        assert [entry.kind for entry in tide.ledger.log("unmark")] == ["unmark.made"]
    for arguments, found in answers.items():
        assert json.loads(ebbtide(*arguments, "--json", cwd=marked).stdout) == found, arguments
