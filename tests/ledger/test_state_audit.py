"""State and entries, both ways: a row that nobody told of, one that is gone, one that was changed (spec §5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, delete, insert, select, update

from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import (
    DatasetIgnored,
    FolderCondemned,
    HoldPlaced,
    HoldReleased,
    Intent,
    Marked,
    MarkSentBack,
    Outcome,
    Unmarked,
    UnmarkReleased,
    salted,
)
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.prune import prune
from ebbtide.ledger.request_entries import RequestMoved, RequestReceived
from ebbtide.state import tables
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import DeclarationKind, ObjectKey, Proposal, RequestState

UNSAID = {
    "marks": {"frozen", "files", "rows", "bytes", "waits_for", "acted_at", "facts", "salt", "closed_because"},
    "requests": {"sealed", "note", "salt", "updated_at", "closed_at"},
    "holds": {"sealed", "salt"},
    "unmarks": {"salt"},
    "condemned": {"salt"},
    "declarations": {"salt"},
}
"""Columns that no entry tells of. A salt that was changed opens nothing, and what it was the salt of differs."""
LATER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One database for all: what is compared has left it."""
    return f"sqlite:///{tmp_path / 'state.db'}"


@pytest.fixture
def full(ledger: Ledger) -> Ledger:
    """A state with rows of everything that people order and policies schedule, each with its entries."""
    ledger.open()
    with Lease.acquire(ledger.database, holder="test") as lease, ledger.sweeping(lease) as step:
        _orders(step, ledger.clock.now())
        _marks(step, ledger.clock.now())
    report = audit(ledger)
    assert report, report.findings
    return ledger


def _orders(step: Step[SweepWriter], at: datetime) -> None:
    who, state = step.state.actor("legal"), step.state
    for name in ("a", "b"):
        hold = state.hold_partitions(f"lake.a.{name}", date(2026, 1, 1), None, owner=who, reason="case 7", at=at)
        step.append(
            HoldPlaced(
                at=at, hold=hold.id, scope=str(hold.scope), owner=who, reason=salted(hold.salt, "case 7"),
                dataset=hold.dataset, first_day=hold.first_day,
            )
        )  # fmt: skip
        pin, _ = state.unmark(f"lake.a.{name}", "5", actor=who, reason="needed", until=None, at=at)
        step.append(
            Unmarked(
                at=at, unmark=pin.id, dataset=pin.dataset, object=salted(pin.salt, "5"), actor=who,
                reason=salted(pin.salt, "needed"),
            )
        )  # fmt: skip
    state.release_hold(hold.id, actor=who, at=at)
    step.append(HoldReleased(at=at, hold=hold.id, actor=who))
    state.release_unmark("lake.a.b", "5", actor=who, at=at)
    step.append(UnmarkReleased(at=at, unmark=pin.id, actor=who))
    for number in range(2):  # condemned again: the new word has the row
        word = state.condemn("file:///lake/left", "unregistered.lake.left", actor=who, at=at + timedelta(hours=number))
        step.append(
            FolderCondemned(
                at=word.condemned_at, condemned=word.id, dataset=salted(word.salt, word.dataset),
                path=salted(word.salt, word.path), actor=who, files=1, bytes=1,
            )
        )  # fmt: skip
    said = state.declare(DeclarationKind.DATASET, "lake.a.t", reason="lost", until=None, actor=who, at=at)
    reason = salted(said.salt, "lost")
    step.append(DatasetIgnored(at=at, declaration=said.id, dataset="lake.a.t", actor=who, reason=reason))
    state.add_request("r1", law="gdpr", commitments=["c"], sealed=b"x", note="", received_at=at, due_at=at, at=at)
    step.append(RequestReceived(at=at, request="r1", law="gdpr", commitments=("c",), received_at=at, due_at=at))
    state.extend_request("r1", until=at + timedelta(days=60), reason="many copies", at=at)
    step.append(RequestMoved(at=at, request="r1", state="received", deadline=at + timedelta(days=60)))
    state.move_request("r1", RequestState.PLANNED, at=at)
    step.append(RequestMoved(at=at, request="r1", state="planned"))


def _marks(step: Step[SweepWriter], at: datetime) -> None:
    """One that is open, one that was sent back, one that was swept, one that a person closed, one in a dead sweep."""
    names = ("open", "back", "swept", "closed", "dying")
    proposals = [
        Proposal(
            key=ObjectKey("lake.a.t", "partitions", f"0/uid={name}"), policy="p", because="old", fingerprint="f",
            grace_until=at, rows=1, bytes=1,
        )
        for name in names
    ]  # fmt: skip
    made = {}
    for name, answer in zip(names, step.state.mark(proposals, run="r", at=at), strict=True):
        mark = made[name] = answer.mark
        assert mark is not None
        step.append(
            Marked(
                at=at, mark=mark.id, run="r", dataset="lake.a.t", target="partitions",
                object=salted(mark.salt, mark.key.object), policy="p", because=salted(mark.salt, "old"),
                fingerprint=salted(mark.salt, "f"), grace_until=at,
            )
        )  # fmt: skip
    back, swept, dying = (made[name] for name in ("back", "swept", "dying"))
    assert back
    assert swept
    assert dying
    step.state.send_back(back.id, because="tagged", at=at)
    step.append(MarkSentBack(at=at, mark=back.id, run="r", because=salted(back.salt, "tagged")))
    for act, mark in (("act-1", swept), ("act-2", dying)):
        step.state.begin([mark.id], act=act)
        step.append(Intent(at=at, act=act, verb="sweep", marks=(mark.id,)))
    step.state.sweep(swept.id, because="nothing is left", at=at)
    step.append(Outcome(at=at, act="act-1", result="done"))
    who = step.state.actor("legal")
    pin, closed = step.state.unmark("lake.a.t", "0/uid=closed", actor=who, reason="", until=at + timedelta(1), at=at)
    step.append(
        Unmarked(
            at=at, unmark=pin.id, dataset="lake.a.t", object=salted(pin.salt, pin.object), actor=who,
            reason=salted(pin.salt, ""), until=pin.until, marks=tuple(mark.id for mark in closed),
        )
    )  # fmt: skip


def _findings(ledger: Ledger, change: Callable[[Any], None], table: Table) -> list[str]:
    """What the audit says of a changed table; the change is taken back afterwards."""
    with ledger.database.reader() as state:
        before = [dict(row) for row in state.connection.execute(select(table)).mappings()]
    with ledger.database.writer() as state:
        change(state.connection)
    report = audit(ledger)
    with ledger.database.writer() as state:
        state.connection.execute(delete(table))
        state.connection.execute(insert(table), before)
    return [str(finding) for finding in report.findings]


@pytest.mark.parametrize("name", UNSAID)
def test_a_row_that_is_gone_new_or_changed_is_named_with_what_to_do(full: Ledger, name: str) -> None:
    table = tables.metadata.tables[name]
    with full.database.reader() as state:
        rows = list(state.connection.execute(select(table)).mappings())
    assert rows
    for row in rows:
        one, id_ = table.c.id == row["id"], row["id"]
        gone = _findings(full, lambda c, one=one: c.execute(delete(table).where(one)), table)  # type: ignore[misc]
        assert any(id_ in said and "found none: bring back" in said for said in gone), (name, gone)
        other = {key: "x" for key in ("object", "path") if key in row}  # the database has each once
        copy = dict(row) | {"id": "forged"} | other
        new = _findings(full, lambda c, copy=copy: c.execute(insert(table), [copy]), table)  # type: ignore[misc]
        assert any("forged: expected an entry that made it, found none: " in said for said in new), (name, new)
        for column in table.c:
            if column.name in UNSAID[name] | {"id"}:
                continue
            value = _other(name, column.name, row[column.name])
            if value is None:
                continue
            change = {column.name: value}
            if (name, column.name) == ("marks", "state"):
                change |= {"closed_at": row["closed_at"] or row["marked_at"]}  # the database asks for it
            said = _findings(full, lambda c, v=change, one=one: c.execute(update(table).where(one).values(v)), table)  # type: ignore[misc]
            assert any(id_ in each and "expected" in each for each in said), (name, column.name, value, said)
            assert not any("uid=" in each or "case 7" in each for each in said), "no value of anybody"
    assert audit(full)


def _other(table: str, column: str, value: Any) -> Any:
    """Another value of a column; None where the database takes none, or where it has the one."""
    others = {
        "scope": "dataset", "kind": "catalog", "state": "withdrawn" if table == "requests" else "unmarked",
        "released_at": LATER, "ended_at": LATER, "until": LATER, "extended_to": LATER, "last_day": date(2026, 2, 2),
        "act": "act-x", "actor": None, "owner": None, "released_by": None, "ended_by": None,
    }  # fmt: skip
    if column in others:
        return None if others[column] == value else others[column]
    match value:
        case datetime():
            return value + timedelta(seconds=1)
        case date():
            return value + timedelta(days=1)
        case tuple():
            return (*value, "x")
        case str():
            return f"{value}x"
    return None


def test_the_reason_why_a_mark_was_sent_back_is_compared(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(update(tables.marks).values(closed_because="another"))

    (finding,) = _findings(full, change, tables.marks)
    assert "expected state as entry" in finding, "of the others the ledger says none"


def test_a_row_that_cannot_be_read_is_a_finding(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(update(tables.requests).values(state="unheard of"))

    assert any(
        "rows of the state: expected rows that can be read" in f for f in _findings(full, change, tables.requests)
    )


def test_what_was_pruned_is_no_finding_and_what_is_left_still_counts(full: Ledger) -> None:
    cut = full.clock.now()
    assert prune(full, before=cut).bodies > 0
    report = audit(full)
    assert report, report.findings
    with full.database.writer() as state:
        late = replace(state.holds()[0], id="late", created_at=cut + timedelta(seconds=1))
        row = {name: getattr(late, name) for name in tables.holds.c.keys()}  # noqa: SIM118
        state.connection.execute(insert(tables.holds), [row])
    (finding,) = audit(full).findings
    assert str(finding).startswith(
        "hold late: expected an entry that made it, found none: someone wrote it past Ebbtide"
    )
