"""Keys of real requests outlive restored databases, other hosts' files and crashes; whoever cannot tell keeps them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event

from ebbtide.erasure.filing import Person, opening_of, request_of
from ebbtide.erasure.keyring import destroy_left_keys, filing
from ebbtide.errors import RefusedError, RewoundError, StateError, UnreadableError
from ebbtide.ledger.audit import audit
from ebbtide.ledger.home import Home
from ebbtide.ledger.ledger import Clock, Ledger
from ebbtide.ledger.request_entries import RequestMoved
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.request_keys import SLOT_BYTES
from ebbtide.state.values import RequestState
from tests.erasure.requests.people import file, person
from tests.ledger.conftest import Ticking


@pytest.fixture
def on_file(home: Home, tmp_path: Path) -> Ledger:
    """A ledger whose state can be copied and put back: that of a file, for a server's is its own affair."""
    return Ledger(Database(f"sqlite:///{tmp_path}/file/state.db"), home, Clock(Ticking().now), patience=())


def copied(ledger: Ledger, to: Path) -> Path:
    source = ledger.database.file
    assert source is not None
    with sqlite3.connect(source) as opened, sqlite3.connect(to) as kept:
        opened.backup(kept)
    return to


def restored(ledger: Ledger, backup: Path) -> None:
    target = ledger.database.file
    assert target is not None
    ledger.database.close()
    for name in (target, target.with_name(f"{target.name}-wal"), target.with_name(f"{target.name}-shm")):
        name.unlink(missing_ok=True)
    shutil.copy(backup, target)


def opens(ledger: Ledger, request_id: str, number: int) -> bool:
    return opening_of(ledger, request_id).identifiers == person(number).identifiers


def request_id(ledger: Ledger, who: Person) -> str:
    request = request_of(ledger, who)
    assert request is not None
    return request.id


def second_host(ledger: Ledger, folder: Path, *, with_file: bool) -> Ledger:
    """Another host on the same state, with copies of the keys that are files, and of the requests' as well or not."""
    home = ledger.home
    leave = () if with_file else ("requests.keys",)
    shutil.copytree(home.keys.path, folder / "keys", ignore=lambda _, names: [name for name in names if name in leave])
    url = ledger.database._url.render_as_string(hide_password=False)
    other = replace(
        ledger, database=Database(url), home=replace(home, keys=KeyFolder(folder / "keys"), folder=folder / "outside")
    )
    other.adopt()
    return other


def withdraw(ledger: Ledger, request_id: str) -> None:
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.state.move_request(request_id, RequestState.WITHDRAWN, at=at)
        step.state.forget_request(request_id, at=at)
        step.append(RequestMoved(at=at, request=request_id, state="withdrawn"))


def test_an_older_database_destroys_no_key_of_the_newer_one(on_file: Ledger, tmp_path: Path) -> None:
    ledger = on_file
    file(ledger, [person(1)])
    old = copied(ledger, tmp_path / "old.db")
    later = file(ledger, [person(2), person(3)]).requests
    new = copied(ledger, tmp_path / "new.db")
    restored(ledger, old)
    with pytest.raises(RewoundError):
        file(ledger, [person(4)])
    # Nor on a host that lost its copy of the checkpoint: what was appended lies with the keys.
    shutil.rmtree(ledger.home.folder)
    with pytest.raises(RefusedError):
        file(ledger, [person(4)])
    with pytest.raises(RewoundError):
        ledger.adopt()
    restored(ledger, new)
    ledger.adopt()
    assert all(opens(ledger, *each) for each in zip(later, (2, 3), strict=True))
    ledger.database.close()


def test_a_restored_database_that_the_ledger_may_accept_destroys_no_key_before_it_has_signed_on(
    on_file: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed and not signed: the ledger takes the database from before for one in which nothing was committed."""
    ledger = on_file
    file(ledger, [person(1)])
    old = copied(ledger, tmp_path / "old.db")

    def fail(_: Ledger) -> None:
        raise StateError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "sign", fail)
        with pytest.raises(StateError):
            file(ledger, [person(2)])
    new = copied(ledger, tmp_path / "new.db")
    restored(ledger, old)
    with pytest.raises(InterruptedError), filing(ledger):
        raise InterruptedError
    with monkeypatch.context() as patch:
        patch.setattr("ebbtide.erasure.filing.rows.insert_requests", fail)
        with pytest.raises(TypeError):
            file(ledger, [person(3)])
    restored(ledger, new)
    with ledger.database.reader() as state:
        (request,) = [each.id for each in state.requests() if each.key_slot == 1]
    assert opens(ledger, request, 2)
    ledger.database.close()


def test_a_folder_that_lost_its_frontier_or_has_two_keeps_what_lies_behind_and_says_so(ledger: Ledger) -> None:
    file(ledger, [person(1)])
    home = ledger.home
    slots, (key, *_) = home.request_keys.append(["whose", "is", "it"])
    frontier = home.frontier("example.org/acme").path
    other = frontier.with_name("example.org%2Fother.frontier")
    shutil.copy(frontier, other)
    ledger.notices.clear()
    file(ledger, [person(2)])
    assert home.request_keys.read(slots[0], "whose") == key
    assert ["slots 1 to 3" in said for said in ledger.notices] == [True]
    other.unlink()
    slots, (key,) = home.request_keys.append(["whose"])
    frontier.unlink()
    ledger.notices.clear()
    file(ledger, [person(3)])
    assert home.request_keys.read(slots[0], "whose") == key
    assert ["slots 5 to 5" in said for said in ledger.notices] == [True]
    ledger.notices.clear()
    home.request_keys.append(["never-filed"])
    file(ledger, [person(4)])
    with pytest.raises(UnreadableError):
        home.request_keys.read(7, "never-filed")
    assert ledger.notices == []


def test_a_host_without_the_file_of_keys_files_nothing_and_destroys_nothing(ledger: Ledger, tmp_path: Path) -> None:
    first = file(ledger, [person(1), person(2)]).requests
    before = ledger.home.request_keys.path.read_bytes()
    other = second_host(ledger, tmp_path / "second", with_file=False)
    missing = other.home.request_keys.path
    for act in (lambda: file(other, [person(3)]), lambda: opening_of(other, first[0])):
        with pytest.raises(UnreadableError, match="the file is not here"):
            act()
    withdraw(other, first[0])
    with pytest.raises(UnreadableError, match="the file is not here"):
        destroy_left_keys(other)
    assert not missing.exists()
    # A file of its own, in which each slot is somebody else's, or was destroyed for somebody else.
    other.home.request_keys.append(["x", "y"])
    with pytest.raises(RefusedError, match="not of request"):
        destroy_left_keys(other)
    other.home.request_keys.destroy([(0, "x"), (1, "y")])
    held = missing.read_bytes()
    for do in (lambda: destroy_left_keys(other), lambda: file(other, [person(3)])):
        with pytest.raises(RefusedError, match="not of request"):
            do()
    with pytest.raises(UnreadableError, match="does not hold it"):
        opening_of(other, first[1])
    assert missing.read_bytes() == held
    assert ledger.home.request_keys.path.read_bytes() == before
    # The one who has the keys destroys what the other could not.
    destroy_left_keys(ledger)
    with pytest.raises(UnreadableError, match="destroyed"):
        ledger.home.request_keys.read(0, first[0])
    assert opens(ledger, first[1], 2)
    assert audit(ledger)
    other.database.close()


def test_hosts_with_copies_of_the_file_never_give_one_slot_twice(ledger: Ledger, tmp_path: Path) -> None:
    file(ledger, [person(1)])
    other = second_host(ledger, tmp_path / "second", with_file=True)
    (there,) = file(other, [person(2)]).requests
    with pytest.raises(RefusedError, match="not of request"):
        file(ledger, [person(3)])
    with pytest.raises(UnreadableError):
        opening_of(ledger, there)
    assert opens(other, there, 2)
    (again,) = file(other, [person(3)]).requests
    assert opens(other, again, 3)
    other.database.close()


@contextmanager
def dying_at_commit(ledger: Ledger) -> Iterator[None]:
    """The commit is not answered: nobody here can tell whether it came to be."""

    def die(_: object) -> None:
        raise ConnectionResetError

    engine = ledger.database._writer_engine()
    event.listen(engine, "commit", die)
    try:
        with pytest.raises(ConnectionResetError):
            yield
    finally:
        event.remove(engine, "commit", die)


def test_keys_of_a_commit_without_an_answer_stay_until_the_next_filing_has_looked(ledger: Ledger) -> None:
    file(ledger, [person(1)])
    keys = ledger.home.request_keys
    with dying_at_commit(ledger):
        file(ledger, [person(2)])
    assert keys.behind((0, request_id(ledger, person(1)))) == range(1, 2), "it may have been committed"
    (request,) = file(ledger, [person(3)]).requests
    assert not any(keys.path.read_bytes()[SLOT_BYTES * 2 : SLOT_BYTES * 3])
    assert opens(ledger, request, 3)


def test_whoever_clears_up_after_a_crash_touches_no_key_of_the_filing_after_it(ledger: Ledger) -> None:
    """One process is between its signature and the destruction while another one files."""
    file(ledger, [person(1)])
    keys = ledger.home.request_keys
    with dying_at_commit(ledger):
        file(ledger, [person(4)])
    assert keys.behind((0, request_id(ledger, person(1)))) == range(1, 2)
    other = replace(ledger, database=Database(ledger.database._url.render_as_string(hide_password=False)))
    sign, filed = Ledger.sign, list[str]()

    def sign_and_let_another_file(this: Ledger) -> object:
        note = sign(this)
        if this is ledger and not filed:
            filed.append("")
            filed[:] = file(other, [person(3)]).requests
        return note

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "sign", sign_and_let_another_file)
        (mine,) = file(ledger, [person(2)]).requests
    assert not any(keys.path.read_bytes()[SLOT_BYTES * 2 : SLOT_BYTES * 3])
    assert opens(ledger, mine, 2)
    assert opens(ledger, filed[0], 3)
    other.database.close()
