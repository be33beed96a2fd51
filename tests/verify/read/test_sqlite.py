"""SQLite: every cell of every page, in use or free, large or small, and what a log before it still holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.verify.read.search import pieces_of, places, reasons, whole_numbers


def _base(path: Path, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, n INTEGER, x REAL, b BLOB)")
    connection.execute("CREATE INDEX by_email ON person (email)")
    connection.execute("CREATE TABLE keyed (k TEXT PRIMARY KEY, v) WITHOUT ROWID")
    return connection


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_every_cell_comes_out_and_nothing_else(tmp_path: Path, encoding: str, page: int) -> None:
    base = _base(tmp_path / "b.db", f"page_size = {page}", f"encoding = '{encoding}'", "secure_delete = ON")
    rows = [
        (
            5_000_000 + n,
            f"user-{n}@example.com",
            (n - 150) * 77_777_777 ** (n % 2 + 1),
            n / 4,
            bytes([n % 256]) * (n * 9),
        )
        for n in range(300)
    ]
    base.executemany("INSERT INTO person VALUES (?, ?, ?, ?, ?)", rows)
    base.executemany("INSERT INTO keyed VALUES (?, ?)", ((f"key {n}", "long " * n) for n in range(300)))
    base.close()
    pieces = pieces_of((tmp_path / "b.db").read_bytes(), "b.db")
    assert reasons(pieces) == []
    numbers = whole_numbers(pieces)
    for id_, email, n, _, blob in rows:
        assert numbers[id_]
        assert numbers[n] or n in (0, 1)
        if id_ % 37 == 0:
            assert "cell of a database" in places(pieces, email)
            assert not blob or "cell of a database" in places(pieces, blob)
    assert places(pieces, "long " * 299)
    assert places(pieces, "key 299")


def test_a_deleted_row_is_seen_unless_it_was_overwritten(tmp_path: Path) -> None:
    found = {}
    for secure in ("OFF", "ON"):
        base = _base(tmp_path / f"{secure}.db", f"secure_delete = {secure}")
        base.executemany("INSERT INTO person (email) VALUES (?)", ((f"user-{n:04d}@example.com",) for n in range(2000)))
        base.execute("DELETE FROM person WHERE id > 5")
        base.close()
        pieces = pieces_of((tmp_path / f"{secure}.db").read_bytes(), "b.db")
        assert reasons(pieces) == []
        found[secure] = places(pieces, "user-1234@example.com")
        assert "cell of a database" in places(pieces, "user-0003@example.com")
    assert found["OFF"]
    assert not found["ON"]


def test_a_number_that_was_deleted_is_found_at_every_width(tmp_path: Path) -> None:
    """By structure: bytes of no known structure would leave it open whether a short number is among them."""
    numbers = (70_000, 8_841_302, -8_841_302, 5_000_000_000, 1 << 50, -(1 << 62))
    base = _base(tmp_path / "b.db", "secure_delete = OFF")
    base.execute("INSERT INTO person VALUES (1, 'first', 1, 1, x'')")
    base.executemany("INSERT INTO keyed VALUES (?, ?)", ((f"key {n}", n) for n in numbers))
    base.execute("DELETE FROM keyed")
    base.close()
    pieces = pieces_of((tmp_path / "b.db").read_bytes(), "b.db")
    assert reasons(pieces) == []
    for n in numbers:
        assert places(pieces, n) == {"left over in a database page"}
    assert not places(pieces, 8_841_303)


def test_a_log_holds_what_the_database_does_not_have_yet(tmp_path: Path) -> None:
    base = _base(tmp_path / "b.db", "journal_mode = WAL", "wal_autocheckpoint = 0", "secure_delete = ON")
    base.execute("INSERT INTO person VALUES (8841302, 'alice@example.com', 7654321, 1.5, x'00')")
    base.execute("DELETE FROM person")
    log = (tmp_path / "b.db-wal").read_bytes()
    index = (tmp_path / "b.db-shm").read_bytes()
    base.close()
    pieces = pieces_of(log, "b.db-wal")
    assert places(pieces, "alice@example.com") == {"cell of a database"}
    assert {8841302, 7654321} <= whole_numbers(pieces).keys()
    assert reasons(pieces) == []
    assert reasons(pieces_of(index, "b.db-shm")) == []


def test_a_database_that_shrinks_by_itself_has_pages_of_numbers_only(tmp_path: Path) -> None:
    base = _base(tmp_path / "b.db", "auto_vacuum = FULL", "secure_delete = ON", "page_size = 512")
    base.executemany("INSERT INTO person (email) VALUES (?)", ((f"user-{n:04d}@example.com" * 40,) for n in range(300)))
    base.close()
    assert reasons(pieces_of((tmp_path / "b.db").read_bytes(), "b.db")) == []


def test_what_is_no_database_cannot_be_told() -> None:
    assert (
        reasons(pieces_of(b"SQLite format 3\0" + b"x" * 5000, "b.db"))[0] == "it cannot be read: it has no whole pages"
    )


def test_texts_of_a_log_whose_database_is_in_utf_16_are_searched_as_bytes(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "b.db", isolation_level=None)
    for pragma in ("encoding = 'UTF-16le'", "journal_mode = WAL", "wal_autocheckpoint = 0"):
        base.execute(f"PRAGMA {pragma}")
    base.execute("CREATE TABLE t (a)")
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.execute("INSERT INTO t VALUES ('alice@example.com')")
    log = (tmp_path / "b.db-wal").read_bytes()
    base.close()
    assert places(pieces_of(log, "b.db-wal"), "alice@example.com".encode("utf-16-le")) == {"cell of a database"}


def test_a_log_whose_records_go_on_in_other_pages_cannot_be_told(tmp_path: Path) -> None:
    base = _base(tmp_path / "b.db", "journal_mode = WAL", "wal_autocheckpoint = 0")
    base.execute("INSERT INTO person (email) VALUES (?)", ("q" * 9000,))
    log = (tmp_path / "b.db-wal").read_bytes()
    base.close()
    assert reasons(pieces_of(log, "b.db-wal")) == [
        "records of it go on in other pages, which are searched, but not together with them"
    ]
