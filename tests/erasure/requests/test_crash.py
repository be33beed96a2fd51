"""A SIGKILL between any two writes of a filing, a search or a certification leaves nothing half (spec §4, §5).

Counted are statements, commits and files as in `tests/ledger/test_crash.py`, and every write to the file of keys, which
is also cut in its middle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.erasure.certify import certificate_of, certify
from ebbtide.erasure.filing import opening_of, request_of
from ebbtide.errors import RefusedError
from ebbtide.ledger.audit import audit
from ebbtide.ledger.check import check
from ebbtide.ledger.commitment import Opening, new_key
from ebbtide.ledger.home import Home
from ebbtide.ledger.ledger import Clock, Ledger
from ebbtide.ledger.request_entries import RequestReceived
from ebbtide.state import request_keys
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.request_keys import SLOT_BYTES, TAG_BYTES
from ebbtide.state.values import RequestState
from tests.erasure.requests.people import file, person
from tests.erasure.requests.test_certify import search
from tests.ledger.kills import run_story
from tests.tiers import deep_after_first

AT = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
PEOPLE = [person(number) for number in range(4)]
STEPS = ["filed", "searched", "certified", "written"]


def _ledger(folder: Path) -> Ledger:
    home = Home(keys=KeyFolder(folder / "keys"), folder=folder / "outside", project="acme", origin="example.org/acme")
    return Ledger(Database(f"sqlite:///{folder}/db/state.db"), home, Clock(lambda: AT), patience=())


def _from_before(folder: Path) -> None:
    """A ledger with one request, of the last of the people, whose key is a file of its own."""
    ledger = _ledger(folder)
    opening = Opening("00" * 16, new_key(), PEOPLE[-1].identifiers)
    with ledger.writing() as step:
        ledger.home.keys.create_sealing(opening.request)
        sealed = ledger.home.keys.seal(opening.request, opening.encode())
        said = {"law": "gdpr", "commitments": opening.commitments(), "received_at": AT, "due_at": AT, "at": AT}
        step.state.add_request(opening.request, sealed=sealed, note="", **said)  # type: ignore[arg-type]
        step.append(RequestReceived(request=opening.request, **said))  # type: ignore[arg-type]
    ledger.database.close()


def _story(folder: Path, say: Callable[[str], None]) -> None:
    """Everything once, whatever was done before."""
    ledger = _ledger(folder)
    ids = file(ledger, PEOPLE[1:]).requests
    done = [_certified(ledger, each) for each in ids]
    say("filed")
    if not any(done):
        search(ledger, ids)
    say("searched")
    certify(ledger, ids[0])
    say("certified")
    certificate_of(ledger, ids[0])
    say("written")
    ledger.database.close()


def _certified(ledger: Ledger, request_id: str) -> bool:
    with ledger.database.reader() as state:
        return state.get_request(request_id).state is RequestState.CERTIFIED


def _cut_key_writes(point: Callable[[], None]) -> None:
    """Die before a write to the file of keys, and in its middle."""
    whole = request_keys._write

    def write(descriptor: int, content: bytes, place: int) -> None:
        point()
        os.pwrite(descriptor, content[: len(content) // 2], place)
        point()
        whole(descriptor, content, place)

    request_keys._write = write


def _look(folder: Path, said: list[str]) -> None:
    """What must hold after any crash."""
    ledger = _ledger(folder)
    report = audit(ledger)
    assert report.findings == ()
    with ledger.database.reader() as state:
        requests = state.requests()
    known = {request.id: opening_of(ledger, request.id) for request in requests if request.sealed is not None}
    whose = [opening.identifiers for opening in known.values()]
    assert len(set(whose)) == len(whose), "somebody was filed twice"
    assert {each.identifiers for each in PEOPLE} >= set(whose)
    closed = [request for request in requests if request.closed_at is not None]
    assert [request.state for request in closed] in ([], [RequestState.CERTIFIED])
    assert len(requests) in (1, 3), "a batch was filed in part"
    acknowledged = {
        "filed": len(requests) == 3,
        "searched": all(request.state is not RequestState.RECEIVED for request in requests),
        "certified": len(closed) == 1,
        "written": len(closed) == 1,
    }
    assert all(acknowledged[word] for word in said), said
    for request in closed:
        with pytest.raises(RefusedError):
            opening_of(ledger, request.id)
        with ledger.reading() as log:
            trust = log.trust()
        assert check(certificate_of(ledger, request.id), trust)
    ledger.database.close()


def _live_keys(folder: Path) -> int:
    raw = (folder / "keys" / "requests.keys").read_bytes()
    return sum(any(raw[at + TAG_BYTES : at + SLOT_BYTES]) for at in range(SLOT_BYTES, len(raw), SLOT_BYTES))


@pytest.mark.parametrize("every", deep_after_first(10, 1))
def test_a_kill_between_any_two_writes_leaves_nothing_half_filed_and_no_key_too_many(
    every: int, tmp_path: Path
) -> None:
    for number in range(1, 1000, every):
        folder = tmp_path / str(number)
        folder.mkdir()
        _from_before(folder)

        def story(say: Callable[[str], None], folder: Path = folder) -> None:
            _story(folder, say)

        finished, said = run_story(story, folder, number, _cut_key_writes)
        _look(folder, said)
        if finished:
            assert said == STEPS
            assert number > 60, "the story must have been cut at every one of its writes"
            return
        # Whoever was certified in the run that died is not in this one any more: there is nobody to file, or one.
        again, said = run_story(story, folder, None)
        assert again
        assert said == STEPS
        ledger = _ledger(folder)
        file(ledger, [])
        with ledger.database.reader() as state:
            sealed = sum(request.sealed is not None for request in state.requests())
        assert _live_keys(folder) == sealed
        assert set(ledger.home.keys.names()).isdisjoint({"00" * 16})
        assert audit(ledger)
        assert request_of(ledger, PEOPLE[-1]) is not None
        ledger.database.close()
    pytest.fail("the story never ended")
