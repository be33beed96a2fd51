"""Who signs what: origin and key on first use, the copy outside, restored backups, rotation (spec §5)."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import delete, select, update

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError, RewoundError, StateError, UnreadableError
from ebbtide.ledger import outside, tree
from ebbtide.ledger.audit import audit
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import KeyRotated, LedgerCreated, parse_entry
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.ledger.note import Checkpoint, Note, Signer, sign
from ebbtide.ledger.proof import TlogProof
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.tables import ledger_checkpoints, ledger_entries, metadata
from tests.ledger.conftest import Ticking
from tests.ledger.samples import said


def _append(ledger: Ledger, count: int = 1) -> None:
    with ledger.writing() as step:
        step.append(*(said(number) for number in range(count)))


def _beside(ledger: Ledger, **home: object) -> Ledger:
    """The same state, seen by another project file."""
    return Ledger(ledger.database, replace(ledger.home, **home), ledger.clock)  # type: ignore[arg-type]


def _host(ledger: Ledger, folder: Path) -> Ledger:
    """Another host: the same state and the same keys, and nothing else of this one's."""
    home = replace(ledger.home, keys=KeyFolder(folder / "keys"), folder=folder / "outside")
    home.keys.path.mkdir(parents=True)
    for key in ledger.home.keys.path.glob("*.key"):
        shutil.copy2(key, home.keys.path)
    return Ledger(ledger.database, home, ledger.clock, patience=())


def _commit_unsigned(ledger: Ledger, *entries: Entry) -> None:
    """What a process leaves that dies between its commit and its signature."""
    with ledger.database.writer() as state:
        step = ledger._begin(state)
        step.append(*entries)
        ledger._intend(step)


# First use


def test_first_use_makes_origin_key_and_first_entry_and_says_so_once(ledger: Ledger) -> None:
    key = ledger.open()
    assert key.name == "example.org/acme"
    with ledger.reading() as log:
        first = parse_entry(log.leaf(0))
        assert isinstance(first, LedgerCreated)
        assert (first.origin, first.key) == (key.name, key.encode())
    (file,) = ledger.home.keys.path.glob("*.key")
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(ledger.notices) == 1
    assert key.encode() in ledger.notices[0]
    secret = file.read_text().split("+", 4)[4]
    assert secret not in ledger.notices[0]
    again = Ledger(ledger.database, ledger.home, ledger.clock)
    assert again.open() == key
    _append(again)
    assert again.notices == []


def test_a_project_that_says_nothing_gets_an_origin_of_its_own(tmp_path: Path) -> None:
    origins = set()
    for number in range(2):
        home = Home(keys=KeyFolder(tmp_path / f"{number}/keys"), folder=tmp_path / "outside", project="a b+c")
        ledger = Ledger(Database(f"sqlite:///{tmp_path}/{number}/state.db"), home, Clock(Ticking().now))
        _append(ledger)
        origins.add(ledger.open().name)
        assert ledger.open().name.startswith("ebbtide.local/a%20b%2Bc/")
        assert audit(ledger)
    assert len(origins) == 2


def test_a_ledger_that_is_only_read_is_not_made(ledger: Ledger) -> None:
    with ledger.reading() as log:
        assert log.size == 0
        with pytest.raises(InputError, match="no ledger yet"):
            log.trust()
    with pytest.raises(InputError, match="no ledger yet"):
        ledger.sign()
    assert not ledger.home.keys.path.exists()


def test_an_origin_is_set_once(ledger: Ledger) -> None:
    ledger.open()
    other = _beside(ledger, origin="example.org/other")
    for attempt in (other.open, other.sign, other.rotate, lambda: _append(other)):
        with pytest.raises(InputError, match="but this ledger is") as refused:
            attempt()
        assert "example.org/acme" in str(refused.value.hint)
    _append(_beside(ledger, origin=None))


@pytest.mark.parametrize("origin", ["", "a b", "a+b", "a\nb"])
def test_an_origin_that_no_note_can_carry_is_refused(ledger: Ledger, origin: str) -> None:
    with pytest.raises(InputError):
        _beside(ledger, origin=origin).open()


def test_a_key_that_was_made_before_a_crash_is_used_and_not_made_twice(ledger: Ledger, home: Home) -> None:
    signer = Signer.generate("example.org/acme")
    home.keys.store(f"ledger-{signer.key.key_hash.hex()}", signer.encode().encode())
    assert ledger.open() == signer.key
    assert ledger.notices == []


def test_two_keys_for_an_empty_ledger_are_refused(ledger: Ledger, home: Home) -> None:
    for _ in range(2):
        signer = Signer.generate("example.org/acme")
        home.keys.store(f"ledger-{signer.key.key_hash.hex()}", signer.encode().encode())
    with pytest.raises(RefusedError):
        ledger.open()


@pytest.mark.parametrize(
    "content", [None, b"", b"nonsense", b"\xff\xfe", b"PRIVATE+KEY+example.org/acme+00000000+AA=="]
)
def test_a_key_that_is_missing_or_broken_stops_the_change_itself(ledger: Ledger, content: bytes | None) -> None:
    ledger.open()
    (file,) = ledger.home.keys.path.glob("*.key")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(EbbtideError) as refused:
        _append(ledger)
    assert "PRIVATE" not in str(refused.value)
    with ledger.reading() as log:
        assert log.size == 1


def test_another_key_in_the_key_file_is_refused(ledger: Ledger) -> None:
    ledger.open()
    (file,) = ledger.home.keys.path.glob("*.key")
    file.write_text(Signer.generate("example.org/acme").encode())
    with pytest.raises(ProofError):
        _append(ledger)


def test_a_key_that_others_may_read_is_refused(ledger: Ledger) -> None:
    ledger.open()
    (file,) = ledger.home.keys.path.glob("*.key")
    file.chmod(0o644)
    with pytest.raises(RefusedError, match="others may read"):
        _append(ledger)


def test_a_ledger_and_its_notices_never_show_a_secret(ledger: Ledger) -> None:
    ledger.open()
    (file,) = ledger.home.keys.path.glob("*.key")
    secret = file.read_text().split("+", 4)[4]
    assert secret not in repr(ledger)
    assert secret not in repr(Signer.parse(file.read_text()))


# Restored backups


Copy: TypeAlias = dict[str, list[dict[str, object]]]


def _copy(ledger: Ledger) -> Copy:
    """Every row of the database."""
    with ledger.database.reader() as state:
        return {
            table.name: [dict(row) for row in state.connection.execute(select(table)).mappings()]
            for table in metadata.sorted_tables
        }


def _restore(ledger: Ledger, copy: Copy) -> None:
    with ledger.database.writer() as state:
        for table in reversed(metadata.sorted_tables):
            if table.name != "ebbtide_version":
                state.connection.execute(delete(table))
        for table in metadata.sorted_tables:
            if copy[table.name] and table.name != "ebbtide_version":
                state.connection.execute(table.insert(), copy[table.name])


def test_a_restored_older_copy_is_neither_signed_nor_appended_to(ledger: Ledger) -> None:
    _append(ledger)
    copy = _copy(ledger)
    _append(ledger)
    before = ledger.sign().encode()
    _restore(ledger, copy)
    for attempt in (ledger.sign, ledger.rotate, lambda: _append(ledger), lambda: _append(ledger, 5)):
        with pytest.raises(RewoundError) as refused:
            attempt()
        assert refused.value.exit_code == 3
        assert refused.value.hint
    with ledger.reading() as log:
        assert log.size == 2
    assert ledger.home.copy(ledger.open()).path.read_bytes() == before
    report = audit(ledger)
    assert not report
    assert any("entry 2" in finding.where for finding in report.findings)


def test_a_restored_copy_that_grew_differently_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """On a host that never saw the later checkpoint the copy can grow; the first host refuses what came of it."""
    _append(ledger)
    copy = _copy(ledger)
    _append(ledger)
    _restore(ledger, copy)
    elsewhere = _host(ledger, tmp_path / "another-host")
    elsewhere.adopt()
    with elsewhere.writing() as step:
        step.append(said(7), said(8), said(9))
    with pytest.raises(RewoundError, match="root hash of the first 3 entries"):
        ledger.sign()
    with pytest.raises(RewoundError):
        _append(ledger)
    report = audit(ledger)
    assert not report
    assert any("copy at" in finding.where for finding in report.findings)


def test_a_lost_database_is_noticed_when_the_key_is_still_there(ledger: Ledger) -> None:
    _append(ledger)
    with ledger.database.writer() as state:
        for table in reversed(metadata.sorted_tables):
            if table.name.startswith("ledger_"):
                state.connection.execute(delete(table))
    for attempt in (ledger.open, lambda: _append(ledger)):
        with pytest.raises(RewoundError, match="found 0"):
            attempt()


def test_a_project_that_begins_anew_with_a_new_key_is_another_ledger(tmp_path: Path) -> None:
    for number in range(2):
        home = Home(keys=KeyFolder(tmp_path / f"{number}/keys"), folder=tmp_path / "outside", project="p", origin="o/p")
        ledger = Ledger(Database(f"sqlite:///{tmp_path}/{number}/state.db"), home, Clock(Ticking().now))
        _append(ledger, 3 - number)
        assert audit(ledger)
    assert len(list((tmp_path / "outside").iterdir())) == 2


def test_a_restored_sqlite_file_is_refused(tmp_path: Path, home: Home) -> None:
    path = tmp_path / "db" / "state.db"
    ledger = Ledger(Database(f"sqlite:///{path}"), home, Clock(Ticking().now))
    _append(ledger)
    ledger.database.scrub()
    ledger.database.close()
    shutil.copyfile(path, tmp_path / "backup.db")
    _append(ledger)
    ledger.database.close()
    for file in path.parent.iterdir():
        file.unlink()
    shutil.copyfile(tmp_path / "backup.db", path)
    path.chmod(0o600)
    with pytest.raises(RewoundError):
        Ledger(Database(f"sqlite:///{path}"), home, ledger.clock).sign()


def test_a_missing_copy_is_a_finding_and_written_again_when_a_person_says_so(ledger: Ledger) -> None:
    _append(ledger)
    copy = ledger.home.copy(ledger.open())
    copy.path.unlink()
    for attempt in (ledger.sign, lambda: _append(ledger), ledger.rotate):
        with pytest.raises(RefusedError, match="no copy of the last checkpoint") as refused:
            attempt()
        assert "ebbtide ledger checkpoint --adopt" in str(refused.value.hint)
    assert any(finding.where == "copy outside" for finding in audit(ledger).findings)
    ledger.adopt()
    assert audit(ledger)
    _append(ledger)
    assert copy.path.read_bytes() == ledger.sign().encode()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 100])
def test_a_copy_that_cannot_be_read_is_an_error_not_a_missing_one(ledger: Ledger, content: bytes) -> None:
    _append(ledger)
    ledger.home.copy(ledger.open()).path.write_bytes(content)
    with pytest.raises(UnreadableError):
        _append(ledger)
    assert not audit(ledger)


def test_a_copy_that_another_key_signed_is_refused(ledger: Ledger) -> None:
    _append(ledger)
    note = ledger.sign()
    ledger.home.copy(ledger.open()).path.write_bytes(sign(note.text, [Signer.generate("example.org/acme")]).encode())
    with pytest.raises(RewoundError):
        _append(ledger)


def test_what_cannot_be_kept_beside_the_keys_is_not_committed_and_what_cannot_be_kept_outside_is_not_handed_out(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.open()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StateError, match="what is appended could not be kept"):
            _append(ledger)
        with ledger.reading() as log:
            assert log.size == 1
    with monkeypatch.context() as patch:
        patch.setattr(outside, "replace_file", full)
        for attempt in (lambda: _append(ledger), ledger.sign):
            with pytest.raises(StateError, match="the checkpoint could not be kept"):
                attempt()
    assert len(list(ledger.home.folder.iterdir())) == 1
    assert audit(ledger)
    note = ledger.sign()
    assert Checkpoint.parse(note.text).size == 2
    assert ledger.home.copy(ledger.open()).path.read_bytes() == note.encode()


def test_the_copy_lies_where_the_project_says(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / "acme.checkpoint"
    own = _beside(ledger, checkpoint=path)
    _append(own)
    assert path.read_bytes() == own.sign().encode()
    assert not own.home.folder.exists()
    other = Ledger(
        Database(f"sqlite:///{tmp_path}/other.db"),
        replace(own.home, keys=KeyFolder(tmp_path / "other-keys")),
        own.clock,
    )
    with pytest.raises(RewoundError):
        other.open()


def test_a_checkpoint_in_the_database_that_the_log_does_not_reach_is_refused(ledger: Ledger) -> None:
    """Even without a copy outside, a log that lost its end is not signed."""
    _append(ledger, 3)
    ledger.home.copy(ledger.open()).path.unlink()
    with ledger.database.writer() as state:
        state.connection.execute(delete(ledger_entries).where(ledger_entries.c.idx == 3))
    with pytest.raises(RewoundError):
        ledger.sign()
    with pytest.raises(RewoundError):
        _append(ledger)


def test_a_leaf_that_was_changed_is_not_signed_again(ledger: Ledger) -> None:
    _append(ledger, 3)
    with ledger.database.writer() as state:
        values = {"leaf_hash": tree.leaf_hash(b"x"), "body": b"x"}
        state.connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 2).values(values))
    with pytest.raises(RewoundError, match="root hash"):
        _append(ledger)


# Rotation


def test_a_rotation_is_an_entry_with_both_keys_and_one_checkpoint_signed_by_both(ledger: Ledger) -> None:
    old = ledger.open()
    _append(ledger)
    new = ledger.rotate()
    assert new != old
    assert new.name == old.name
    with ledger.reading() as log:
        entry = parse_entry(log.leaf(2))
        assert isinstance(entry, KeyRotated)
        assert (entry.old, entry.new) == (old.encode(), new.encode())
        turn = log.checkpoint(3)
        assert turn
        assert {item.key for item in turn.verify([old, new])} == {old, new}
        assert log.trust() == Trust((TrustedKey(old, 3), TrustedKey(new, None)))
    _append(ledger)
    after = ledger.sign()
    assert [item.key for item in after.verify([old, new])] == [new]
    assert audit(ledger)


def test_proofs_from_before_and_after_a_rotation_hold_and_the_old_key_ends_at_its_size(ledger: Ledger) -> None:
    old = ledger.open()
    _append(ledger)
    before = ledger.sign()
    ledger.rotate()
    _append(ledger)
    after = ledger.sign()
    with ledger.reading() as log:
        trust = log.trust()
        for note in (before, after):
            checkpoint, _ = trust.verify(note)
            proof = TlogProof(1, tree.inclusion_proof(1, checkpoint.size, log.get), note)
            proof.verify(tree.leaf_hash(log.leaf(1)), old.name, [trusted.key for trusted in trust.ledger])
        text = Checkpoint(old.name, 4, log.root(4)).text()
    name = f"ledger-{old.key_hash.hex()}"
    stolen = sign(text, [Signer.parse(ledger.home.keys.read(name).decode())])
    with pytest.raises(ProofError, match="rotated"):
        trust.verify(stolen)
    ledger.home.copy(old).write(stolen)
    with pytest.raises(RewoundError):
        _append(ledger)


def test_the_old_key_file_may_go_after_a_rotation(ledger: Ledger) -> None:
    old = ledger.open()
    ledger.rotate()
    ledger.home.keys.destroy(f"ledger-{old.key_hash.hex()}")
    _append(ledger)
    ledger.rotate()
    assert audit(ledger)


def test_a_rotation_that_died_before_its_checkpoint_is_finished_by_the_next_signature(ledger: Ledger) -> None:
    old = ledger.open()
    new = ledger._new_signer(old.name)
    rotated = KeyRotated(at=ledger.clock.now(), old=old.encode(), new=new.key.encode())
    _commit_unsigned(ledger, rotated, said(1), said(2))
    _append(ledger)
    with ledger.reading() as log:
        sizes = [size for size, _ in log.checkpoints()]
        assert sizes == [1, 2, 5]
        turn = log.checkpoint(2)
        assert turn
        assert {item.key for item in turn.verify([old, new.key])} == {old, new.key}
    assert audit(ledger)


def test_a_copy_restored_from_before_a_rotation_is_refused(ledger: Ledger) -> None:
    _append(ledger)
    copy = _copy(ledger)
    ledger.rotate()
    _append(ledger)
    _restore(ledger, copy)
    with pytest.raises(RewoundError):
        _append(ledger)


def test_many_rotations_stay_provable(ledger: Ledger) -> None:
    for _ in range(4):
        _append(ledger)
        ledger.rotate()
    report = audit(ledger)
    assert report, report.findings
    with ledger.reading() as log:
        assert [key.until for key in log.trust().ledger] == [3, 5, 7, 9, None]


def test_a_checkpoint_of_a_rotated_key_beyond_its_size_is_found_by_the_audit(ledger: Ledger) -> None:
    old = ledger.open()
    ledger.rotate()
    _append(ledger, 2)
    signer = Signer.parse(ledger.home.keys.read(f"ledger-{old.key_hash.hex()}").decode())
    with ledger.database.writer() as state:
        note: bytes = state.connection.execute(
            select(ledger_checkpoints.c.note).where(ledger_checkpoints.c.size == 4)
        ).scalar_one()
        forged = sign(Note.parse(note).text, [signer]).encode()
        state.connection.execute(update(ledger_checkpoints).where(ledger_checkpoints.c.size == 4).values(note=forged))
    assert any(finding.where == "checkpoint 4" for finding in audit(ledger).findings)


def test_a_foreign_sqlite_file_is_not_taken_for_a_ledger(tmp_path: Path, home: Home) -> None:
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE ledger_entries (idx INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(StateError):
        Ledger(Database(f"sqlite:///{path}"), home, Clock(Ticking().now)).open()
