"""Holds and erasure requests; who they are about is never in the clear (spec §3–§5)."""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError, UnreadableError
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.state import tables
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.values import NEXT_STATES, HoldScope, RequestState
from ebbtide.state.writer import StateWriter, new_id

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
DUE = NOW + timedelta(days=30)
SUBJECT = "8841302-née-Müller"


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def _opening(request: str) -> Opening:
    return Opening(request, new_key(), (Identifier("user_id", SUBJECT),))


def _add(writer: StateWriter, keys: KeyFolder, *, state: RequestState = RequestState.RECEIVED) -> str:
    request = new_id()
    opening = _opening(request)
    keys.create_sealing(request)
    writer.add_request(
        request,
        law="gdpr",
        commitments=opening.commitments(),
        sealed=keys.seal(request, opening.encode()),
        note="by letter",
        received_at=NOW,
        due_at=DUE,
        at=NOW,
        state=state,
    )
    return request


# Holds


def test_a_hold_on_a_dataset_covers_everything_in_it_and_nothing_beside_it(database: Database) -> None:
    with database.writer() as state:
        hold = state.hold_dataset("lake.a.t", owner=state.actor("legal"), reason="case 7", at=NOW)
    assert hold.covers("lake.a.t", None)
    assert hold.covers("lake.a.t", (date(1970, 1, 1), date(1970, 1, 1)))
    assert not hold.covers("lake.a.t2", None)
    with database.reader() as reader:
        assert reader.holds() == (hold,)
        assert reader.get_hold(hold.id) == hold


@pytest.mark.parametrize(
    ("first", "last", "days", "inside"),
    [
        ("2026-01-10", "2026-01-20", ("2026-01-20", "2026-01-31"), True),
        ("2026-01-10", "2026-01-20", ("2026-01-01", "2026-01-10"), True),
        ("2026-01-10", "2026-01-20", ("2026-01-01", "2026-02-01"), True),
        ("2026-01-10", "2026-01-20", ("2026-01-21", "2026-01-21"), False),
        ("2026-01-10", "2026-01-20", ("2026-01-09", "2026-01-09"), False),
        (None, "2026-01-20", ("1999-01-01", "1999-01-01"), True),
        (None, "2026-01-20", ("2026-01-21", "2026-01-21"), False),
        ("2026-01-10", None, ("2099-01-01", "2099-01-01"), True),
        ("2026-01-10", None, ("2026-01-09", "2026-01-09"), False),
        ("2026-01-10", "2026-01-20", None, True),
    ],
)
def test_a_hold_on_partitions_covers_what_touches_its_days_and_what_has_none(
    database: Database, first: str | None, last: str | None, days: tuple[str, str] | None, inside: bool
) -> None:
    with database.writer() as state:
        hold = state.hold_partitions(
            "lake.a.t",
            date.fromisoformat(first) if first else None,
            date.fromisoformat(last) if last else None,
            owner=state.actor("legal"),
            reason="case 7",
            at=NOW,
        )
    parsed = (date.fromisoformat(days[0]), date.fromisoformat(days[1])) if days else None
    assert hold.covers("lake.a.t", parsed) is inside
    assert not hold.covers("lake.a.u", parsed)


@pytest.mark.parametrize("days", [(None, None), (date(2026, 2, 1), date(2026, 1, 1))])
def test_a_range_that_holds_nothing_or_everything_is_refused(
    database: Database, days: tuple[date | None, date | None]
) -> None:
    with pytest.raises(InputError), database.writer() as state:
        state.hold_partitions("lake.a.t", *days, owner=state.actor("legal"), reason="case", at=NOW)


def test_a_released_hold_covers_nothing_and_cannot_be_released_again(database: Database, keys: KeyFolder) -> None:
    opening = _opening("h")
    keys.create_sealing("h")
    with database.writer() as state:
        owner = state.actor("legal")
        assert state.actor("legal") == owner
        by_name = state.hold_dataset("lake.a.t", owner=owner, reason="case 7", at=NOW)
        by_subject = state.hold_subject(
            "h",
            commitments=opening.commitments(),
            sealed=keys.seal("h", opening.encode()),
            owner=owner,
            reason="case 8",
            at=NOW,
        )
        assert by_subject.scope is HoldScope.SUBJECT
        for hold in (by_name, by_subject):
            released = state.release_hold(hold.id, actor=owner, at=NOW)
            assert not released.active
            assert not released.covers("lake.a.t", None)
            assert released.sealed is None
            with pytest.raises(RefusedError):
                state.release_hold(hold.id, actor=owner, at=NOW)
    with database.reader() as reader:
        assert reader.holds() == ()
        assert len(reader.holds(only_active=False)) == 2
        assert reader.actor_name(owner) == "legal"


def test_a_hold_or_request_without_its_subject_is_refused(database: Database) -> None:
    with pytest.raises(InputError), database.writer() as state:
        state.hold_subject("h", commitments=[], sealed=b"x", owner=state.actor("a"), reason="", at=NOW)
    with pytest.raises(InputError), database.writer() as state:
        state.add_request("r", law="gdpr", commitments=["c"], sealed=b"", note="", received_at=NOW, due_at=DUE, at=NOW)


# Requests


def test_a_request_walks_its_life_and_closes(database: Database, keys: KeyFolder) -> None:
    with database.writer() as state:
        request = _add(state, keys, state=RequestState.IDENTITY_PENDING)
        for step in ("received", "planned", "deleted", "purged", "verified", "certified"):
            moved = state.move_request(request, RequestState(step), at=NOW)
            assert moved.state == step
        assert moved.closed_at == NOW
    with database.reader() as reader:
        assert reader.requests(only_open=True) == ()
        assert reader.requests() == (moved,)


def test_steps_that_do_not_follow_are_refused(database: Database, keys: KeyFolder) -> None:
    assert set(NEXT_STATES) == set(RequestState)
    with database.writer() as state:
        for found in (RequestState.RECEIVED, RequestState.IDENTITY_PENDING):
            request = _add(state, keys, state=found)
            for wanted in set(RequestState) - NEXT_STATES[found]:
                with pytest.raises(RefusedError):
                    state.move_request(request, wanted, at=NOW)
            assert state.get_request(request).state is found
        with pytest.raises(RefusedError):
            _add(state, keys, state=RequestState.CERTIFIED)


def test_a_request_with_exceptions_stays_open_and_resumes(database: Database, keys: KeyFolder) -> None:
    with database.writer() as state:
        request = _add(state, keys)
        for step in ("planned", "deleted", "purged", "verified", "certified with exceptions"):
            moved = state.move_request(request, RequestState(step), at=NOW)
        assert moved.closed_at is None
        with pytest.raises(RefusedError):
            state.forget_request(request, at=NOW)
        assert state.move_request(request, RequestState.PLANNED, at=NOW).state is RequestState.PLANNED


def test_an_extension_moves_the_deadline_forward_only(database: Database, keys: KeyFolder) -> None:
    with database.writer() as state:
        request = _add(state, keys)
        with pytest.raises(RefusedError):
            state.extend_request(request, until=DUE, reason="r", at=NOW)
        assert state.extend_request(
            request, until=DUE + timedelta(days=60), reason="r", at=NOW
        ).deadline == DUE + timedelta(days=60)
        state.move_request(request, RequestState.WITHDRAWN, at=NOW)
        with pytest.raises(RefusedError):
            state.extend_request(request, until=DUE + timedelta(days=90), reason="r", at=NOW)


def test_identifiers_open_with_the_requests_key_until_it_is_destroyed(database: Database, keys: KeyFolder) -> None:
    with database.writer() as state:
        request = _add(state, keys)
    with database.reader() as reader:
        sealed = reader.get_request(request).sealed
    assert sealed
    assert Opening.parse(keys.unseal(request, sealed)).identifiers == (Identifier("user_id", SUBJECT),)
    file, other = keys.path / f"{request}.key", keys.path / "other"
    file.rename(other)
    file.symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(RefusedError, match="is a link"):
        keys.destroy(request)
    assert other.read_bytes() == before
    other.replace(file)
    keys.destroy(request)
    keys.destroy(request)
    with pytest.raises(UnreadableError):
        keys.unseal(request, sealed)
    with database.writer() as state:
        state.move_request(request, RequestState.WITHDRAWN, at=NOW)
        assert state.forget_request(request, at=NOW).sealed is None


def test_an_unknown_id_is_bad_input(database: Database) -> None:
    database.upgrade()
    with database.reader() as reader:
        for ask in (reader.get_mark, reader.get_hold, reader.get_request, reader.get_run, reader.actor_name):
            with pytest.raises(InputError):
                ask("nobody")


def test_the_subject_is_in_no_column_no_file_no_log_no_error_and_no_repr(
    database: Database, url: str, keys: KeyFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    with database.writer() as state:
        request = _add(state, keys)
        opening = _opening("h")
        keys.create_sealing("h")
        hold = state.hold_subject(
            "h",
            commitments=opening.commitments(),
            sealed=keys.seal("h", opening.encode()),
            owner=state.actor("legal"),
            reason="case 8",
            at=NOW,
        )
        shown += [repr(opening), str(opening), repr(opening.identifiers), repr(hold), repr(keys)]
        shown += [repr(state.get_request(request)), repr(state.snapshot())]
    # A duplicate key makes the database itself complain, with the row in its mouth.
    for attempt in (
        lambda: state_error(database, request, keys),
        lambda: keys.unseal("h", keys.seal(request, opening.encode())),
        lambda: Opening.parse(opening.encode()[:-9]),
    ):
        with pytest.raises(EbbtideError) as caught:
            attempt()
        shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value), str(caught.value.hint)]
    with database.reader() as reader:
        for table in tables.metadata.sorted_tables:
            shown += [repr(row) for row in reader.connection.execute(select(table))]
    database.scrub()
    database.close()
    raw = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    needles = [SUBJECT, "8841302", "M\\xfcller", "M\\xc3\\xbcller", "Müller"]
    for needle in needles:
        assert not [text for text in [*shown, caplog.text] if needle in text]
    assert not [content for content in raw if SUBJECT.encode() in content or b"8841302" in content]


def state_error(database: Database, request: str, keys: KeyFolder) -> None:
    opening = _opening(request)
    with database.writer() as state:
        state.add_request(
            request,
            law="gdpr",
            commitments=opening.commitments(),
            sealed=keys.seal(request, opening.encode()),
            note=SUBJECT,
            received_at=NOW,
            due_at=DUE,
            at=NOW,
        )


# Keys


def test_a_key_file_is_for_its_owner_only(keys: KeyFolder) -> None:
    keys.create_sealing("a")
    assert (keys.path / "a.key").stat().st_mode & 0o777 == 0o600
    assert keys.path.stat().st_mode & 0o777 == 0o700
    deep = KeyFolder(keys.path / "made" / "too")
    deep.create_sealing("a")
    assert deep.path.parent.stat().st_mode & 0o777 == 0o700
    assert keys.names() == ("a",)
    (keys.path / "a.key").chmod(0o640)
    with pytest.raises(RefusedError, match="others may read"):
        keys.read("a")


def test_a_key_is_never_replaced(keys: KeyFolder) -> None:
    keys.create_sealing("a")
    before = keys.read("a")
    with pytest.raises(RefusedError):
        keys.create_sealing("a")
    assert keys.read("a") == before
    assert [file.name for file in keys.path.iterdir()] == ["a.key"]


def test_sealed_bytes_open_only_whole_and_only_under_their_own_name(keys: KeyFolder) -> None:
    keys.create_sealing("a")
    sealed = keys.seal("a", b"content")
    assert keys.unseal("a", sealed) == b"content"
    assert keys.seal("a", b"content") != sealed
    keys.store("b", keys.read("a"))
    with pytest.raises(ProofError):
        keys.unseal("b", sealed)
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(ProofError):
            keys.unseal("a", bytes(changed))
    for length in range(len(sealed)):
        with pytest.raises(ProofError):
            keys.unseal("a", sealed[:length])


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 20_000])
def test_a_key_file_of_a_wrong_size_is_refused(keys: KeyFolder, content: bytes) -> None:
    keys.create_sealing("a")
    (keys.path / "a.key").write_bytes(content)
    with pytest.raises(UnreadableError):
        keys.seal("a", b"content")


@pytest.mark.parametrize("name", ["", "../a", "a/b", "A", "a.b", "x" * 200])
def test_a_name_that_leaves_the_folder_is_refused(keys: KeyFolder, name: str) -> None:
    with pytest.raises(InputError):
        keys.create_sealing(name)
