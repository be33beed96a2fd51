"""The log in the database: dense, proved in O(log n), with intents and outcomes bound together."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest
from sqlalchemy import delete, select, update

from ebbtide.errors import InputError, ProofError, RefusedError
from ebbtide.ledger import tree
from ebbtide.ledger.attachments import attach_files, attachment
from ebbtide.ledger.audit import audit
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Files, Intent, parse_entry
from ebbtide.ledger.ledger import Clock, Home, Ledger, Step
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint
from ebbtide.ledger.request_entries import Verified
from ebbtide.state import tables
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease
from ebbtide.state.migrations import LATEST, migrate
from ebbtide.state.tables import ledger_nodes
from ebbtide.state.values import Hold
from ebbtide.state.writer import StateWriter
from tests.ledger import oracle
from tests.ledger.conftest import Ticking
from tests.ledger.samples import AT, FILES, hold, intent, outcome, said


def _fill(ledger: Ledger, count: int) -> None:
    with ledger.writing() as step:
        step.append(*(said(number) for number in range(count)))


def test_entries_come_back_byte_for_byte_at_their_index(ledger: Ledger) -> None:
    with ledger.writing() as step:
        assert list(step.append(said(1), said(2))) == [1, 2]
    with ledger.writing() as step:
        assert list(step.append(said(3))) == [3]
        assert list(step.append()) == []
    with ledger.reading() as log:
        assert [log.leaf(index) for index in (1, 2, 3)] == [said(n).encode() for n in (1, 2, 3)]
        assert [index for index, _, _ in log.rows(0, log.size)] == [0, 1, 2, 3]
        for index in (-1, 4, 2**62):
            with pytest.raises(InputError):
                log.leaf(index)


def test_the_tree_is_the_one_of_rfc_6962_whatever_the_batches(ledger: Ledger) -> None:
    random.seed(7)
    ledger.open()
    while True:
        with ledger.writing() as step:
            step.append(*(said(number) for number in range(random.choice([1, 2, 3, 60, 255, 256, 257]))))
            if step.log.size > 1500:
                break
    with ledger.reading() as log:
        leaves = [item for _, item, _ in log.rows(0, log.size)]
        for size in (1, 2, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, log.size):
            root = oracle.mth(leaves[:size])
            assert log.root(size) == root
            for index in {0, size // 3, size // 2, size - 1}:
                tree.verify_inclusion(leaves[index], index, size, tree.inclusion_proof(index, size, log.get), root)
            for old in {1, size // 3 + 1, size}:
                proof = tree.consistency_proof(old, size, log.get)
                tree.verify_consistency(old, oracle.mth(leaves[:old]), size, root, proof)


def test_a_proof_reads_and_hashes_little_more_than_it_holds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    read = hashed = 0
    stored, node_hash = LedgerLog._stored, tree.node_hash

    def reading(self: LedgerLog, height: int, start: int, end: int) -> list[bytes]:
        nonlocal read
        hashes = stored(self, height, start, end)
        read += len(hashes)
        return hashes

    def hashing(left: bytes, right: bytes) -> bytes:
        nonlocal hashed
        hashed += 1
        return node_hash(left, right)

    monkeypatch.setattr(LedgerLog, "_stored", reading)
    monkeypatch.setattr(tree, "node_hash", hashing)
    for size in (1_000, 20_001):
        with ledger.writing() as step:
            step.append(*(said(number) for number in range(size - max(step.log.size, 1))))
        levels = size.bit_length()
        # Sixteen rows and eleven hashings for every four levels, beside the entry and along the right edge.
        for index in (0, 1, size // 3, size - 1):
            with ledger.reading() as log:
                read = hashed = 0
                tree.inclusion_proof(index, size, log.get)
            assert read <= 8 * (levels + 4), (size, index, read)
            assert hashed <= 6 * (levels + 4), (size, index, hashed)
        with ledger.reading() as log:
            read = hashed = 0
            log.root(size)
        assert read <= 4 * (levels + 4)
        with ledger.reading() as log:
            read = 0
            tree.consistency_proof(size // 2 - 1, size, log.get)
        assert read <= 8 * (levels + 4)


def test_a_ledger_of_the_layout_before_gets_the_hashes_between(ledger: Ledger) -> None:
    _fill(ledger, 5_000)
    with ledger.database.writer() as state:
        before = state.connection.execute(select(ledger_nodes).order_by("height", "idx")).all()
        state.connection.execute(delete(ledger_nodes).where(ledger_nodes.c.height.in_([4, 12])))
        state.connection.execute(update(tables.version).values(version=4))
        assert migrate(state.connection, to=5) == (4, 5)
        state.connection.execute(update(tables.version).values(version=LATEST))
    assert {row.height for row in before} == {4, 8, 12}
    with ledger.database.reader() as state:
        assert state.connection.execute(select(ledger_nodes).order_by("height", "idx")).all() == before
    assert audit(ledger)


def test_a_hash_that_is_not_stored_is_refused(ledger: Ledger) -> None:
    _fill(ledger, 10)
    with ledger.reading() as log:
        for level, index in ((0, 11), (3, 1), (4, 0), (8, 0), (16, 0)):
            with pytest.raises(ProofError):
                log.get(level, index)


def test_a_batch_is_all_or_nothing(ledger: Ledger) -> None:
    ledger.open()
    with pytest.raises(RefusedError), ledger.writing() as step:
        step.append(*(said(number) for number in range(300)), outcome("never begun"))
    with ledger.reading() as log:
        assert log.size == 1
    assert audit(ledger)


def test_many_writers_at_once_stay_dense_and_nothing_is_lost(ledger: Ledger, url: str, home: Home) -> None:
    ledger.open()
    errors: list[BaseException] = []

    def write(writer: int) -> None:
        own = Ledger(Database(url), home, Clock(Ticking().now))
        try:
            for turn in range(6):
                with own.writing() as step:
                    step.append(*(said(1000 * writer + 10 * turn + n) for n in range(turn)))
        except BaseException as error:
            errors.append(error)
        finally:
            own.database.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with ledger.reading() as log:
        rows = list(log.rows(0, log.size))
    assert [index for index, _, _ in rows] == list(range(1 + 5 * 15))
    entries = [parse_entry(body) for _, _, body in rows[1:] if body]
    assert len({entry.request for entry in entries if isinstance(entry, Verified)}) == 75
    report = audit(ledger)
    assert report, report.findings
    assert report.unsigned == 0


def test_the_checkpoint_is_signed_after_each_batch_by_the_ledgers_key(ledger: Ledger) -> None:
    key = ledger.open()
    for count in (1, 300):
        _fill(ledger, count)
        with ledger.reading() as log:
            note = log.checkpoint()
            assert note
            checkpoint = Checkpoint.parse(note.text)
            assert (checkpoint.origin, checkpoint.size) == ("example.org/acme", log.size)
            assert checkpoint.root == log.root(log.size)
        assert [item.key for item in note.verify([key])] == [key]
        assert home_copy(ledger) == note.encode()
    assert ledger.sign() == note


def home_copy(ledger: Ledger) -> bytes:
    return ledger.home.copy(ledger.open()).path.read_bytes()


def test_an_intent_without_an_outcome_is_listed_until_it_has_one(ledger: Ledger) -> None:
    with ledger.writing() as step:
        step.append(intent("a"), said(), intent("b"), outcome("a"))
    with ledger.writing() as step:
        step.append(intent("c"))
    with ledger.reading() as log:
        assert [(found.leaf_index, found.intent.act) for found in log.recover()] == [(3, "b"), (5, "c")]
    with ledger.writing() as step:
        step.append(outcome("c", result="failed"), outcome("b", result="nothing"))
    with ledger.reading() as log:
        assert log.recover() == ()


@pytest.mark.parametrize(
    "entries",
    [
        [outcome("a")],
        [outcome("a"), intent("a")],
        [intent("a"), intent("a")],
        [intent("a"), outcome("a"), outcome("a")],
        [intent("a"), outcome("a"), intent("a")],
        [intent("old")],
        [outcome("done")],
    ],
)
def test_an_outcome_follows_its_own_intent_once(ledger: Ledger, entries: list[Intent]) -> None:
    with ledger.writing() as step:
        step.append(intent("old"), intent("done"), outcome("done"))
    with pytest.raises(RefusedError), ledger.writing() as step:
        step.append(*entries)
    with ledger.reading() as log:
        assert log.size == 4
    assert audit(ledger)


def test_an_attachment_comes_back_and_is_kept_once(ledger: Ledger) -> None:
    listed = [(f"s3://lake/t/part-{number}.parquet", number) for number in range(40_000)]
    with ledger.writing() as step:
        files = attach_files(step.state.connection, listed)
        assert attach_files(step.state.connection, iter(listed)) == files
        step.append(intent("a", files=files))
    assert (files.count, files.bytes) == (40_000, sum(range(40_000)))
    with ledger.database.reader() as state:
        content = b"".join(attachment(state.connection, files.digest))
        assert content.decode().splitlines()[7] == "s3://lake/t/part-7.parquet\t7"
        assert content.count(b"\n") == 40_000
        with pytest.raises(InputError):
            list(attachment(state.connection, FILES.digest))
    assert audit(ledger).attachments == 1


def test_an_empty_list_of_files_is_an_attachment_too(ledger: Ledger) -> None:
    with ledger.writing() as step:
        files = attach_files(step.state.connection, [])
        step.append(intent("a", files=files))
    assert files.digest == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with ledger.database.reader() as state:
        assert b"".join(attachment(state.connection, files.digest)) == b""


def test_an_entry_whose_attachment_is_not_kept_is_refused(ledger: Ledger) -> None:
    with pytest.raises(RefusedError), ledger.writing() as step:
        step.append(intent("a", files=Files(count=1, bytes=1, digest="sha256:" + "1" * 64)))


@pytest.mark.parametrize("path", ["a\nb", "a\tb"])
def test_a_path_that_would_break_the_list_is_refused(ledger: Ledger, path: str) -> None:
    with pytest.raises(InputError), ledger.writing() as step:
        attach_files(step.state.connection, [(path, 1)])


def test_a_change_of_the_state_and_its_entry_are_one(ledger: Ledger) -> None:
    ledger.open()

    def place(step: Step[StateWriter], *more: Entry) -> Hold:
        placed = step.state.hold_dataset("lake.a.t", owner=step.state.actor("legal"), reason="case", at=AT)
        step.append(replace(hold(), hold=placed.id), *more)
        return placed

    with pytest.raises(RefusedError), ledger.writing() as step:
        place(step, outcome("never begun"))
    with ledger.database.reader() as state:
        assert state.holds() == ()
    with ledger.writing() as step:
        placed = place(step)
    with ledger.database.reader() as state:
        assert state.holds() == (placed,)


def test_a_sweeper_reads_holds_again_in_the_transaction_of_its_intent(ledger: Ledger) -> None:
    """A hold that was placed while the sweeper was thinking is seen, and never waits for the lease."""
    with Lease.acquire(ledger.database, holder="sweeper") as lease:
        with ledger.writing() as person:
            owner = person.state.actor("legal")
            person.state.hold_dataset("lake.a.t", owner=owner, reason="case", at=AT)
            person.append(said())
        with ledger.sweeping(lease) as step:
            assert step.state.fence == lease.fence
            assert len(step.state.holds()) == 1
            step.append(intent("a"))
    with ledger.reading() as log:
        assert len(log.recover()) == 1


def test_a_simulated_clock_stamps_every_entry(database: Database, home: Home) -> None:
    ledger = Ledger(database, home, Clock(Ticking().now, simulated=True))
    with ledger.writing() as step:
        step.append(said(), intent("a"))
    with ledger.reading() as log:
        assert [parse_entry(body).simulated for _, _, body in log.rows(0, 3) if body] == [True] * 3
