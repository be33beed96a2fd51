"""Crashes: a real SIGKILL between any two writes loses nothing that was acknowledged, and doubles nothing.

Each round runs a whole story in a process of its own (hold, mark, intent, act, outcome, rotation, a long batch) and
kills it at its n-th write: a statement, a commit, a file. Then the next process looks at what is left, and finishes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from ebbtide.ledger.attachments import attach_files
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import HoldPlaced, Intent, Marked, Outcome, parse_entry, salted
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.lease import Lease, database_time
from ebbtide.state.tables import leases
from ebbtide.state.values import MarkState, ObjectKey, Proposal
from tests.ledger.kills import run_story
from tests.ledger.samples import said
from tests.state.postgres import server
from tests.tiers import deep_after_first

AT = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
BATCH = 260
STORY = Counter(
    {
        "ledger.created": 1,
        "hold.placed": 1,
        "request.verified": BATCH,
        "mark.made": 1,
        "act.intent": 1,
        "act.outcome": 1,
        "ledger.rotated": 1,
    }
)
STEPS = ["open", "hold", "mark", "intent", "swept", "rotated", "batch"]


def _ledger(url: str, folder: Path) -> Ledger:
    home = Home(keys=KeyFolder(folder / "keys"), folder=folder / "outside", project="acme", origin="example.org/acme")
    return Ledger(Database(url), home, Clock(lambda: AT))


def _story(url: str, folder: Path, say: Callable[[str], None]) -> None:
    """Everything once, whatever was done before."""
    ledger = _ledger(url, folder)
    ledger.open()
    say("open")
    with ledger.writing() as step:
        if not step.state.holds():
            placed = step.state.hold_dataset("lake.a.other", owner=step.state.actor("legal"), reason="case", at=AT)
            reason = salted(placed.salt, placed.reason)
            step.append(
                HoldPlaced(
                    at=AT, hold=placed.id, scope=placed.scope, owner=placed.owner, reason=reason, dataset=placed.dataset
                )
            )
    say("hold")
    lease = Lease.acquire(ledger.database, holder="story")
    _sweep(ledger, lease, folder, say)
    with ledger.reading() as log:
        rotated, size = len(log.trust().ledger) > 1, log.size
    if not rotated:
        ledger.rotate()
    say("rotated")
    if size < BATCH:
        with ledger.writing() as step:
            step.append(*(said(number) for number in range(BATCH)))
    say("batch")
    lease.release()
    ledger.sign()
    ledger.database.close()


def _sweep(ledger: Ledger, lease: Lease, folder: Path, say: Callable[[str], None]) -> None:
    key = ObjectKey("lake.a.t", "transactions", "1")
    proposal = Proposal(
        key=key, policy="p", because="old", fingerprint="f", grace_until=AT, rows=1, bytes=1, days=None, files=None
    )
    with ledger.sweeping(lease) as step:
        done = step.state.marks(only_open=False)
        if not done:
            (answer,) = step.state.mark([proposal], run="r", at=AT)
            assert answer.mark
            mark = answer.mark
            because = salted(mark.salt, mark.because)
            step.append(
                Marked(
                    at=AT, mark=mark.id, run="r", dataset=key.dataset, target=key.target, object=key.object, policy="p",
                    because=because, fingerprint="f", grace_until=AT,
                )
            )  # fmt: skip
        else:
            (mark,) = done
    say("mark")
    if mark.is_open:
        with ledger.sweeping(lease) as step:
            acts = [found.intent.act for found in step.log.recover()]
            if not acts:
                acts = ["act-1"]
                files = attach_files(step.state.connection, [("victim", 1)])
                step.state.begin([mark.id], act=acts[0])
                step.append(Intent(at=AT, act=acts[0], verb="sweep", marks=(mark.id,), files=files, fence=lease.fence))
        say("intent")
        lease.check()
        (folder / "victim").unlink(missing_ok=True)
        with ledger.sweeping(lease) as step:
            step.state.sweep(mark.id, because="nothing is left", at=AT)
            step.append(Outcome(at=AT, act=acts[0], result="done"))
    say("swept")


def _run(url: str, folder: Path, kill: int | None) -> tuple[bool, list[str]]:
    return run_story(lambda say: _story(url, folder, say), folder, kill)


def _look(url: str, folder: Path, said: list[str], *, finished: bool) -> str:
    """What must hold after any crash; gives what distinguishes this state from others."""
    ledger = _ledger(url, folder)
    report = audit(ledger)
    assert report.findings == () or report.entries == 0
    with ledger.database.reader() as state, ledger.reading() as log:
        rows = list(log.rows(0, log.size))
        kinds = Counter(parse_entry(body).KIND for _, _, body in rows if body)
        assert [index for index, _, _ in rows] == list(range(log.size))
        assert not kinds - STORY, "something is doubled"
        acknowledged = {
            "open": kinds["ledger.created"] == 1,
            "hold": kinds["hold.placed"] >= 1 and len(state.holds()) == 1,
            "mark": kinds["mark.made"] == 1 and len(state.marks(only_open=False)) == 1,
            "intent": kinds["act.intent"] == 1,
            "swept": kinds["act.outcome"] == 1 and not (folder / "victim").exists(),
            "rotated": kinds["ledger.rotated"] == 1,
            "batch": kinds["request.verified"] == BATCH,
        }
        assert all(acknowledged[word] for word in said), (said, kinds)
        # State and log tell the same, whatever was acknowledged.
        assert len(state.holds()) == min(1, kinds["hold.placed"])
        assert len(state.marks(only_open=False)) == kinds["mark.made"]
        swept = [mark for mark in state.marks(only_open=False) if mark.state is MarkState.SWEPT]
        assert len(swept) == kinds["act.outcome"]
        assert len(log.recover()) == kinds["act.intent"] - kinds["act.outcome"]
        # Intent before the act, always.
        assert (folder / "victim").exists() or kinds["act.intent"] == 1
        if finished:
            assert kinds == STORY
            assert report
            assert report.unsigned == 0
            assert log.recover() == ()
        checkpoints = [size for size, _ in log.checkpoints()]
        left = (sorted(kinds.items()), checkpoints, state.lease() and "lease", _files(folder))
    ledger.database.close()
    return repr(left)


def _files(folder: Path) -> list[tuple[str, int]]:
    """The files beside the database, but for the random parts of their names.

    Frontiers do not count: both that a crash can leave are resumed in `test_vouched.py`.
    """
    found = [file for file in folder.rglob("*") if file.is_file() and file.parent.name != "db"]
    found = [file for file in found if ".frontier" not in file.name]
    return sorted((f"{file.parent.name}/{file.suffix}", file.stat().st_size) for file in found)


def _time_passes(url: str) -> None:
    """The dead sweeper's lease runs out."""
    database = Database(url)
    if database.exists():
        with database.writer() as state:
            past = database_time(state.connection) - timedelta(seconds=1)
            state.connection.execute(update(leases).values(expires_at=past))
    database.close()


def _rounds(kind: str, every: int, tmp_path: Path) -> Iterator[tuple[int, str, Path]]:
    for number in range(1, 1000, every):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "victim").touch()
        yield number, f"sqlite:///{folder}/db/state.db" if kind == "sqlite" else server().new_url(), folder


@pytest.mark.parametrize(("kind", "every"), deep_after_first(("sqlite", 14), ("sqlite", 1), ("postgresql", 1)))
def test_a_kill_between_any_two_writes_loses_and_doubles_nothing(kind: str, every: int, tmp_path: Path) -> None:
    resumed: set[str] = set()
    for number, url, folder in _rounds(kind, every, tmp_path):
        finished, said = _run(url, folder, number)
        left = _look(url, folder, said, finished=finished)
        if finished:
            assert said == STEPS
            assert number > 40, "the story must have been cut at every one of its writes"
            assert len(resumed) > 25 // every, "and each state that a cut can leave must have been resumed"
            break
        # A kill inside a transaction leaves what the kill before it left: such a state is resumed once.
        if left in resumed:
            continue
        resumed.add(left)
        _time_passes(url)
        again, said = _run(url, folder, None)
        assert again
        assert said in (STEPS, [step for step in STEPS if step != "intent"])
        _look(url, folder, said, finished=True)
    else:
        pytest.fail("the story never ended")
