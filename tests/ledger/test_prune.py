"""The ledger's own retention: bodies go, hashes stay, proofs still work (spec §5)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from ebbtide.app import ledger as use
from ebbtide.errors import InputError, RefusedError
from ebbtide.ledger import tree
from ebbtide.ledger.attachments import attach_files, kept
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import BodiesPruned, Indexes, parse_entry
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.ledger.prune import Pruning, plan_pruning, prune
from ebbtide.ledger.request_entries import RequestMoved, RequestReceived
from ebbtide.ledger.request_index import entries_of, leaves_of
from ebbtide.state.database import Database
from ebbtide.state.tables import ledger_acts, ledger_requests
from ebbtide.state.values import RequestState
from tests.ledger.conftest import Ticking
from tests.ledger.samples import intent, outcome, said


def test_old_bodies_go_and_hashes_and_proofs_stay(ledger: Ledger, tmp_path: Path) -> None:
    ledger.open()
    with ledger.writing() as step:
        step.append(*(said(number, at=ledger.clock.now()) for number in range(300)))
    cut = ledger.clock.now()
    with ledger.writing() as step:
        step.append(said(1, at=ledger.clock.now()))
    with ledger.reading() as log:
        leaves = [item for _, item, _ in log.rows(0, log.size)]
        size, root = log.size, log.root(log.size)
    planned = plan_pruning(ledger, before=cut)
    assert audit(ledger).pruned == 0
    assert prune(ledger, before=cut) == planned
    assert planned.ranges == (Indexes(first=1, last=300),)
    assert planned.bodies == 300
    with ledger.reading() as log:
        assert [item for _, item, _ in log.rows(0, size)] == leaves
        assert [index for index, _, body in log.rows(0, log.size) if body] == [0, 301, 302]
        entry = parse_entry(log.leaf(302))
        assert isinstance(entry, BodiesPruned)
        assert (entry.before, entry.ranges) == (cut, planned.ranges)
        with pytest.raises(RefusedError) as refused:
            log.leaf(100)
        assert leaves[100].hex() in str(refused.value)
        tree.verify_inclusion(leaves[100], 100, size, tree.inclusion_proof(100, size, log.get), root)
        tree.verify_consistency(
            size, root, log.size, log.root(log.size), tree.consistency_proof(size, log.size, log.get)
        )
    report = audit(ledger)
    assert report, report.findings
    assert report.pruned == 300
    assert use.export(ledger, tmp_path / "tiles").minimum_index == 256
    assert (tmp_path / "tiles/tile/0/000").stat().st_size == 256 * 32
    assert not (tmp_path / "tiles/tile/entries").exists()


def test_pruning_twice_prunes_nothing_more(ledger: Ledger) -> None:
    with ledger.writing() as step:
        step.append(said(1, at=ledger.clock.now()))
    cut = ledger.clock.now()
    assert prune(ledger, before=cut).bodies == 1
    size = audit(ledger).entries
    assert prune(ledger, before=cut).bodies == 0
    assert audit(ledger).entries == size


def test_what_names_keys_or_prunings_and_what_waits_for_an_outcome_stays(ledger: Ledger) -> None:
    ledger.rotate()
    with ledger.writing() as step:
        step.append(intent("open", at=ledger.clock.now()))
        step.append(intent("done", at=ledger.clock.now()), outcome("done", at=ledger.clock.now()))
        step.append(intent("young outcome", at=ledger.clock.now()))
    cut = ledger.clock.now()
    with ledger.writing() as step:
        step.append(outcome("young outcome", at=ledger.clock.now()))
    assert prune(ledger, before=cut).ranges == (Indexes(first=3, last=4),)
    with ledger.reading() as log:
        assert [found.intent.act for found in log.recover()] == ["open"]
    with ledger.database.reader() as state:
        assert set(state.connection.execute(select(ledger_acts.c.act)).scalars()) == {"open", "young outcome"}
    later = ledger.clock.now() + timedelta(seconds=1)
    ledger.clock.now()
    assert prune(ledger, before=later).bodies == 2
    report = audit(ledger)
    assert report, report.findings


def test_the_entries_of_a_request_stay_while_it_is_open(ledger: Ledger) -> None:
    at = ledger.clock.now()
    with ledger.writing() as step:
        step.state.add_request(
            "r1", law="gdpr", commitments=["c"], sealed=b"x", note="", received_at=at, due_at=at, at=at
        )
        step.append(
            RequestReceived(at=at, request="r1", law="gdpr", commitments=("c",), received_at=at, due_at=at),
            RequestMoved(at=at, request="r2", state="withdrawn"),
        )
    cut = ledger.clock.now()
    assert prune(ledger, before=cut).ranges == (Indexes(first=2, last=2),)
    with ledger.database.writer() as state:
        state.move_request("r1", RequestState.WITHDRAWN, at=at)
    assert prune(ledger, before=cut).ranges == (Indexes(first=1, last=1),)
    assert audit(ledger)


def test_of_a_batch_the_leaves_of_closed_requests_go_first_and_paths_stay(ledger: Ledger) -> None:
    at, ids = ledger.clock.now(), [f"r{number}" for number in range(5)]
    with ledger.writing() as step:
        for name in ids:
            step.state.add_request(
                name, law="gdpr", commitments=["c"], sealed=b"x", note="", received_at=at, due_at=at, at=at
            )
        received = {"law": "gdpr", "commitments": ("c",), "received_at": at, "due_at": at}
        step.append_batch([RequestReceived(at=at, request=name, **received) for name in ids])  # type: ignore[arg-type]
    with ledger.database.reader() as state:
        ((_, before),) = entries_of(state.connection, "r4")
    with ledger.writing() as step:
        for name in ids[:4]:
            step.state.move_request(name, RequestState.WITHDRAWN, at=ledger.clock.now())
            step.append(RequestMoved(at=ledger.clock.now(), request=name, state="withdrawn"))
    cut = ledger.clock.now()
    planned = plan_pruning(ledger, before=cut)
    assert (planned.ranges, planned.batches) == ((Indexes(first=2, last=5),), (1,))
    assert prune(ledger, before=cut) == planned
    with ledger.database.reader() as state:
        assert [leaf.leaf is None for leaf in leaves_of(state.connection, 1)] == [True] * 4 + [False]
        assert entries_of(state.connection, "r4") == [(1, before)]
        with pytest.raises(RefusedError, match="retention"):
            entries_of(state.connection, "r0")
    report = audit(ledger)
    assert report, report.findings
    assert plan_pruning(ledger, before=cut) == Pruning((), ())
    with ledger.writing() as step:
        step.state.move_request("r4", RequestState.WITHDRAWN, at=ledger.clock.now())
        step.append(RequestMoved(at=ledger.clock.now(), request="r4", state="withdrawn"))
    later = ledger.clock.now()
    assert prune(ledger, before=later).ranges == (Indexes(first=1, last=1), Indexes(first=7, last=7))
    with ledger.database.reader() as state:
        assert list(leaves_of(state.connection, 1)) == []
    report = audit(ledger)
    assert report, report.findings


def test_a_leaf_that_is_gone_and_was_not_pruned_is_found(ledger: Ledger) -> None:
    with ledger.writing() as step:
        step.append_batch([said(number, at=ledger.clock.now()) for number in [1]])
    with ledger.database.writer() as state:
        state.connection.execute(update(ledger_requests).values(leaf=None))
    assert [str(one.where) for one in audit(ledger).findings] == ["leaf 0 of entry 1"]


def test_attachments_go_with_the_last_entry_that_names_them(ledger: Ledger) -> None:
    with ledger.writing() as step:
        shared, own = attach_files(step.state.connection, [("a", 1)]), attach_files(step.state.connection, [("b", 1)])
        for act, files in (("one", shared), ("two", own)):
            step.append(intent(act, at=ledger.clock.now(), files=files), outcome(act, at=ledger.clock.now()))
    cut = ledger.clock.now()
    with ledger.writing() as step:
        step.append(intent("three", at=ledger.clock.now(), files=shared))
    assert prune(ledger, before=cut).attachments == (own.digest,)
    with ledger.database.reader() as state:
        assert kept(state.connection) == {shared.digest}
    assert audit(ledger)


def test_the_future_cannot_be_pruned(ledger: Ledger) -> None:
    ledger.open()
    for act in (prune, plan_pruning):
        with pytest.raises(InputError):
            act(ledger, before=ledger.clock.now() + timedelta(days=1))


def test_pruned_bodies_are_gone_from_the_file_too(home: Home, tmp_path: Path) -> None:
    ledger = Ledger(Database(f"sqlite:///{tmp_path}/state.db"), home, Clock(Ticking().now))
    with ledger.writing() as step:
        step.append(said(0xABCDEF0123456789, at=ledger.clock.now()))
    needle = f"{0xABCDEF0123456789:032x}".encode()
    files = list(tmp_path.glob("state.db*"))
    assert any(needle in file.read_bytes() for file in files)
    prune(ledger, before=ledger.clock.now())
    assert not any(needle in file.read_bytes() for file in files if file.exists())
    ledger.database.close()
