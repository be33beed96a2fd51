"""The index of requests' entries: made by every append, and by the migration for entries from before it."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, insert, select

from ebbtide.errors import InputError
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import Intent, Outcome
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.request_entries import CertificateKey, RequestMoved
from ebbtide.ledger.request_index import certificate_key, entries_of
from ebbtide.state.migrations import m0009_requests
from ebbtide.state.tables import ledger_certificate_keys, ledger_entries, ledger_requests
from tests.ledger.samples import hold, said


def test_the_migration_indexes_what_is_there_as_an_append_would_have(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m0009_requests, "_PAGE", 4)
    at = ledger.clock.now()
    with ledger.writing() as step:
        step.append(
            *(said(number, at=at) for number in range(7)),
            Intent(at=at, act="a", verb="erase", requests=("r1", "r2", "r1")),
            Outcome(at=at, act="a", result="done", requests=("r2", "r1")),
            CertificateKey(at=at, key="k"),
            Intent(at=at, act="b", verb="sweep"),
            said(1, at=at),
        )
    report = audit(ledger)
    assert report, report.findings
    tables = (ledger_requests, ledger_certificate_keys)
    with ledger.database.writer() as state:
        connection = state.connection
        before = [sorted(map(tuple, connection.execute(select(table)).all()), key=repr) for table in tables]
        assert [len(rows) for rows in before] == [7 + 3 + 2 + 1, 1]
        for table in tables:
            connection.execute(delete(table))
        # What cannot be read stays out of the index, and is the audit's to find.
        connection.execute(insert(ledger_entries), [{"idx": 90, "leaf_hash": b"h", "body": b"\xff{"}])
        connection.execute(insert(ledger_entries), [{"idx": 91, "leaf_hash": b"h", "body": None}])
        m0009_requests.fill(connection)
        after = [sorted(map(tuple, connection.execute(select(table)).all()), key=repr) for table in tables]
        assert before == after
        connection.execute(delete(ledger_entries).where(ledger_entries.c.idx >= 90))
        assert [index for index, _ in entries_of(connection, "r1")] == [8, 9]
        assert certificate_key(connection) == (10, "k")


def test_a_batch_is_of_one_kind_and_time_and_each_of_one_request(ledger: Ledger) -> None:
    at, later = ledger.clock.now(), ledger.clock.now()
    moved = RequestMoved(at=at, request="r", state="planned")
    for entries in (
        [moved, said(1, at=at)],
        [moved, RequestMoved(at=later, request="r", state="planned")],
        [moved, hold(at=at)],
        [Intent(at=at, act="a", verb="erase", requests=("r", "s"))],
    ):
        with pytest.raises(InputError), ledger.writing() as step:
            step.append_batch(entries)
    assert audit(ledger).entries == 0
