"""Tampering: whatever is changed in the ledger's rows is found, and named (spec §5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Column, LargeBinary, Table, and_, delete, insert, select, update

from ebbtide.ledger import tree
from ebbtide.ledger.attachments import attach_files
from ebbtide.ledger.audit import AuditReport, audit
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.note import Note
from ebbtide.ledger.prune import prune
from ebbtide.ledger.request_entries import CertificateKey
from ebbtide.state.database import Database
from ebbtide.state.tables import (
    ledger_acts,
    ledger_attachments,
    ledger_checkpoints,
    ledger_entries,
    ledger_keys,
    ledger_nodes,
    ledger_requests,
    metadata,
)
from tests.ledger import oracle
from tests.ledger.samples import intent, outcome, said

LEDGER_TABLES = [table for table in metadata.sorted_tables if table.name.startswith("ledger_")]


@pytest.fixture
def full(ledger: Ledger) -> Ledger:
    """A ledger that has rows of everything: a rotation, acts, an attachment, a stored subtree, several checkpoints."""
    with ledger.writing() as step:
        files = attach_files(step.state.connection, [("a", 1), ("b", 2)])
        step.append(intent("a", files=files), said(1), outcome("a"), intent("b"))
    ledger.rotate()
    with ledger.writing() as step:
        step.append(*(said(number) for number in range(258)))
        step.append_batch([said(3000 + number) for number in range(5)])
        step.append(CertificateKey(at=ledger.clock.now(), key="k"))
    for count in (2, 1):
        with ledger.writing() as step:
            step.append(*(said(2000 + 10 * count + number) for number in range(count)))
    report = audit(ledger)
    assert report, report.findings
    assert report.unsigned == 0
    return ledger


def _named(report: AuditReport) -> str:
    assert not report
    assert report.findings
    return "; ".join(str(finding) for finding in report.findings)


def _rows(ledger: Ledger, table: Table) -> list[Any]:
    with ledger.database.reader() as state:
        return list(state.connection.execute(select(table)).mappings())


def _where(table: Table, row: Any) -> Any:
    return and_(*(column == row[column.name] for column in table.primary_key.columns))


def _changed(value: Any, column: Column[Any]) -> list[Any]:
    """Other values for a column: near ones, an empty one, none."""
    if isinstance(value, bytes):
        flips = [bytes([*value[:at], value[at] ^ 1, *value[at + 1 :]]) for at in {0, len(value) // 2, len(value) - 1}]
        changes: list[Any] = [*flips, value + b"\x00", value[:-1], b""]
    elif isinstance(value, str):
        changes = [f"{value}x", value[:-1], value.swapcase() if value.swapcase() != value else "?"]
    elif isinstance(value, int):
        changes = [value + 100_000, value - 1 if value > 1 else value + 99_999]
    else:
        changes = [b"x" if isinstance(column.type, LargeBinary) else 77]
    return [*changes, None] if column.nullable and value is not None else changes


def _undone(ledger: Ledger, change: Callable[[Any], None], *tables: Table) -> AuditReport:
    """The audit of a changed database; the change is taken back afterwards, in these tables or in all."""
    tables = tables or tuple(LEDGER_TABLES)
    with ledger.database.reader() as state:
        before = {table: [dict(row) for row in state.connection.execute(select(table)).mappings()] for table in tables}
    with ledger.database.writer() as state:
        change(state.connection)
    report = audit(ledger)
    with ledger.database.writer() as state:
        for table in tables:
            state.connection.execute(delete(table))
            if before[table]:
                state.connection.execute(insert(table), before[table])
    return report


@pytest.mark.parametrize("table", LEDGER_TABLES, ids=lambda table: table.name)
def test_any_column_of_any_kind_of_row_that_is_changed_is_found(full: Ledger, table: Table) -> None:
    rows = _rows(full, table)
    assert rows
    # Of the entries: the first, acts, the rotation, one inside the stored subtree, and the last.
    chosen = rows
    if table is ledger_entries:
        chosen = [row for row in rows if row["idx"] in (0, 1, 3, 4, 5, 100, len(rows) - 1)]
    elif table is ledger_nodes:
        # Of the stored hashes: one of each level.
        chosen = [row for row in rows if row["idx"] == 0]
        assert [row["height"] for row in chosen] == [4, 8]
    elif table is ledger_requests:
        # Of the index: an entry of one request, the first and the last leaf of the batch.
        leaves = [row for row in rows if row["leaf"] is not None]
        assert len(leaves) == 5
        chosen = [rows[0], leaves[0], leaves[-1]]
    for row in chosen:
        for column in table.columns:
            for value in _changed(row[column.name], column):
                keys = [row[key.name] if key is not column else value for key in table.primary_key.columns]
                if column.primary_key and any(
                    [other[k.name] for k in table.primary_key.columns] == keys for other in rows
                ):
                    continue

                def change(connection: Any, row: Any = row, column: Any = column, value: Any = value) -> None:
                    connection.execute(update(table).where(_where(table, row)).values({column.name: value}))

                report = _undone(full, change, table)
                assert not report, (table.name, dict(row), column.name, value)
                assert report.findings
    assert audit(full)


def test_a_changed_body_is_named_by_its_index(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 42).values(body=said(9999).encode()))

    assert "body of entry 42" in _named(_undone(full, change))


@pytest.mark.parametrize(("one", "two"), [(6, 7), (5, 200), (10, 263), (1, 3), (266, 268)])
def test_two_rows_that_were_swapped_are_named_by_what_signed_them(full: Ledger, one: int, two: int) -> None:
    rows = {row["idx"]: row for row in _rows(full, ledger_entries)}

    def change(connection: Any) -> None:
        for here, there in ((one, two), (two, one)):
            values = {"leaf_hash": rows[there]["leaf_hash"], "body": rows[there]["body"]}
            connection.execute(update(ledger_entries).where(ledger_entries.c.idx == here).values(values))

    report = _undone(full, change)
    named = _named(report)
    assert "root hash" in named
    spans = [finding.where.partition(", over ")[2] for finding in report.findings if ", over " in finding.where]
    covered = set[int]()
    for span in spans:
        first, _, last = span.removeprefix("entries ").removeprefix("entry ").partition(" to ")
        covered |= set(range(int(first), int(last or first) + 1))
    assert covered & {one, two}


def test_a_replaced_row_with_its_hash_and_subtree_is_found_by_what_was_signed(full: Ledger) -> None:
    """A forger who repairs every hash in the database cannot repair the signature."""
    body = said(31337).encode()

    def change(connection: Any) -> None:
        values = {"leaf_hash": tree.leaf_hash(body), "body": body}
        connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 100).values(values))
        hashes = list(connection.execute(select(ledger_entries.c.leaf_hash).order_by(ledger_entries.c.idx)).scalars())
        for row in _rows(full, ledger_nodes):
            first, width = row["idx"] << row["height"], 1 << row["height"]
            repaired = {"hash": oracle.mth(hashes[first : first + width])}
            connection.execute(update(ledger_nodes).where(_where(ledger_nodes, row)).values(repaired))

    report = _undone(full, change)
    wheres = [finding.where for finding in report.findings]
    assert "checkpoint 266, over entries 6 to 265" in wheres
    assert not any(where.startswith("stored hash") for where in wheres)


def test_the_last_row_that_was_deleted_is_named(full: Ledger) -> None:
    last = len(_rows(full, ledger_entries)) - 1

    def change(connection: Any) -> None:
        connection.execute(delete(ledger_entries).where(ledger_entries.c.idx == last))

    assert f"entry {last}: expected a row, for checkpoint {last + 1} signed it" in _named(_undone(full, change))


@pytest.mark.parametrize("index", [0, 1, 4, 100, 255])
def test_a_row_that_was_deleted_inside_is_named(full: Ledger, index: int) -> None:
    def change(connection: Any) -> None:
        connection.execute(delete(ledger_entries).where(ledger_entries.c.idx == index))

    assert f"entry {index}: expected a row" in _named(_undone(full, change))


def test_everything_after_a_row_that_was_deleted_is_named(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(delete(ledger_entries).where(ledger_entries.c.idx >= 266))
        connection.execute(delete(ledger_checkpoints).where(ledger_checkpoints.c.size > 266))

    assert "entries 266 to 268: expected a row, for the copy at" in _named(_undone(full, change))


@pytest.mark.parametrize("table", [ledger_keys, ledger_nodes, ledger_acts, ledger_attachments])
def test_a_row_that_was_deleted_elsewhere_is_named(full: Ledger, table: Table) -> None:
    for row in _rows(full, table)[:6]:

        def change(connection: Any, row: Any = row) -> None:
            connection.execute(delete(table).where(_where(table, row)))

        _named(_undone(full, change))


def test_the_last_checkpoint_that_was_deleted_is_noticed_by_the_copy_outside(full: Ledger) -> None:
    last = max(row["size"] for row in _rows(full, ledger_checkpoints))

    def change(connection: Any) -> None:
        connection.execute(delete(ledger_checkpoints).where(ledger_checkpoints.c.size == last))

    assert "last checkpoint" in _named(_undone(full, change))


def test_the_checkpoint_of_a_rotation_that_was_deleted_is_named(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(delete(ledger_checkpoints).where(ledger_checkpoints.c.size == 6))

    assert "checkpoint 6: expected a row, for a key was rotated there" in _named(_undone(full, change))


def test_a_checkpoint_of_a_rotation_that_lost_a_signature_is_named(full: Ledger) -> None:
    (row,) = [row for row in _rows(full, ledger_checkpoints) if row["size"] == 6]
    note = Note.parse(row["note"])

    def change(connection: Any) -> None:
        short = Note(note.text, note.signatures[1:]).encode()
        connection.execute(update(ledger_checkpoints).where(ledger_checkpoints.c.size == 6).values(note=short))

    assert "checkpoint 6: expected signatures of the old and the new key" in _named(_undone(full, change))


def test_a_row_before_the_first_is_named(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(insert(ledger_entries), [{"idx": -1, "leaf_hash": b"x" * 32, "body": b"{}"}])

    assert "entry -1" in _named(_undone(full, change))


def test_a_body_that_is_gone_without_an_entry_that_says_so_is_named(full: Ledger) -> None:
    def change(connection: Any) -> None:
        connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 100).values(body=None))

    assert "body of entry 100: expected a body, for no entry says that it was pruned" in _named(_undone(full, change))


def test_a_pruned_ledger_is_audited_like_any_other(full: Ledger) -> None:
    prune(full, before=full.clock.now())
    report = audit(full)
    assert report, report.findings
    assert report.pruned > 200

    def bring_back(connection: Any) -> None:
        connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 100).values(body=said(94).encode()))

    assert "body of entry 100: expected none, for it was pruned" in _named(_undone(full, bring_back))

    def change_hash(connection: Any) -> None:
        connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 100).values(leaf_hash=b"x" * 32))

    named = _named(_undone(full, change_hash))
    assert "stored hash 0 of height 8, over entries 0 to 255" in named
    assert "stored hash 6 of height 4, over entries 96 to 111" in named


def test_an_empty_database_is_not_a_good_ledger(database: Database, ledger: Ledger) -> None:
    report = audit(ledger)
    assert not report
    assert report.entries == 0


def test_entries_that_are_not_signed_yet_are_counted(ledger: Ledger) -> None:
    ledger.open()
    with ledger.database.writer() as state:
        step = ledger._begin(state)
        step.append(said(1), said(2))
        ledger._intend(step)
    report = audit(ledger)
    assert report
    assert report.unsigned == 2
