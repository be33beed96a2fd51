"""From a search to a certificate: who is nowhere gets one, who was found gets none, and nobody twice (spec §4, §5)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from ebbtide.erasure.certify import certificate_of, certify
from ebbtide.erasure.filing import opening_of, request_of
from ebbtide.erasure.searches import EVERYWHERE, Began, begin, record_search
from ebbtide.errors import InputError, ProofError, RefusedError
from ebbtide.ledger import certificate as certificates
from ebbtide.ledger import leaf as leaves
from ebbtide.ledger.attachments import attachment
from ebbtide.ledger.audit import audit
from ebbtide.ledger.check import check
from ebbtide.ledger.entries import Intent, Outcome, parse_entry
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.ledger import Clock, Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.prune import prune
from ebbtide.ledger.request_entries import Excepted, RequestBatch, RequestMoved, Verified
from ebbtide.ledger.request_index import entries_of
from ebbtide.state.request_keys import SLOT_BYTES, TAG_BYTES
from ebbtide.state.tables import requests
from ebbtide.state.values import RequestState
from tests.erasure.requests.people import SECRET, file, person
from tests.ledger.leaks import everything, in_clear

PATH_KEY = b"k" * 32
UNREADABLE = f"s3://lake/users/part-{SECRET}.parquet"


@dataclass(frozen=True)
class Found:
    person: str
    dataset: str | None = None


@dataclass(frozen=True)
class Untold:
    path: str
    because: str
    people: frozenset[str] | None = None
    is_place: bool = False


@dataclass(frozen=True)
class Inventory:
    lines: tuple[str, ...] = ("hmac-sha256:aa\t\t10\tsha256:bb",)


@dataclass(frozen=True)
class Report:
    """What a search would say; `tests/verify` has real ones."""

    found: Sequence[Found] = ()
    untold: Sequence[Untold] = ()
    files: int = 1
    bytes: int = 10
    inventory: Inventory = Inventory()
    is_of_nothing: bool = False


def search(ledger: Ledger, ids: Sequence[str], report: Report | None = None, began: Began | None = None) -> None:
    began = began or begin(ledger)
    record_search(ledger, ids, report or Report(), began=began, path_key=PATH_KEY, scanner="verify/1")


def state_of(ledger: Ledger, request_id: str) -> RequestState:
    with ledger.database.reader() as state:
        return state.get_request(request_id).state


def trust(ledger: Ledger) -> Trust:
    with ledger.reading() as log:
        return log.trust()


def clean(ledger: Ledger) -> None:
    report = audit(ledger)
    assert report, report.findings


@pytest.mark.parametrize("many", [1, 3])
def test_a_person_who_is_nowhere_ends_certified(ledger: Ledger, many: int) -> None:
    ids = file(ledger, [person(number) for number in range(many)]).requests
    search(ledger, ids)
    assert {state_of(ledger, each) for each in ids} == {RequestState.VERIFIED}
    opening = opening_of(ledger, ids[0])
    done = certify(ledger, ids[0])
    assert (done.state, done.exceptions) == (RequestState.CERTIFIED, ())
    data = certificate_of(ledger, ids[0])
    report = check(data, trust(ledger), opening=opening)
    assert report, report.failed
    batches = [entry for entry in json.loads(data)["entries"] if "batch" in entry]
    assert len(batches) == (0 if many == 1 else 2)
    assert all(entry["batch"]["index"] == 0 and len(entry["batch"]["path"]) == 2 for entry in batches)
    # Nothing of the others is in it, and nothing of anybody's values.
    assert not [each for each in ids[1:] if each in data.decode()]
    assert SECRET not in data.decode()
    assert {state_of(ledger, each) for each in ids[1:]} <= {RequestState.VERIFIED}
    clean(ledger)


def test_the_opening_has_the_key_of_the_inventorys_paths(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    search(ledger, [request_id], Report(untold=[Untold(UNREADABLE, "encrypted\tParquet")]))
    opening = opening_of(ledger, request_id)
    (searched,) = opening.searches
    assert searched.key == PATH_KEY
    assert SECRET not in repr(opening)
    with ledger.database.reader() as state:
        index, _ = entries_of(state.connection, request_id)[-1]
        said = parse_entry(LedgerLog(state.connection).leaf(index))
        assert isinstance(said, Verified)
        assert (said.place, said.objects, said.bytes, said.found, said.unread) == (EVERYWHERE, 1, 10, 0, 1)
        assert searched.inventory == said.inventory
        assert b"".join(attachment(state.connection, said.inventory)) == b"hmac-sha256:aa\t\t10\tsha256:bb\n"
        keyed = hmac.new(PATH_KEY, UNREADABLE.encode(), hashlib.sha256).hexdigest()
        untold = b"".join(attachment(state.connection, said.untold or "")).decode()
        assert untold == f"hmac-sha256:{keyed}\tencrypted Parquet\n"


def test_a_request_that_is_certified_is_closed_its_key_gone_and_its_certificate_written_out_again(
    ledger: Ledger,
) -> None:
    one, two = file(ledger, [person(1), person(2)]).requests
    search(ledger, [one, two])
    certify(ledger, one)
    raw = ledger.home.request_keys.path.read_bytes()
    assert not any(raw[SLOT_BYTES + TAG_BYTES : SLOT_BYTES * 2])
    assert any(raw[SLOT_BYTES * 2 :])
    with pytest.raises(RefusedError, match="gone"):
        opening_of(ledger, one)
    assert request_of(ledger, person(1)) is None
    assert opening_of(ledger, two).identifiers == person(2).identifiers
    first, again = certificate_of(ledger, one), certificate_of(ledger, one)
    assert first == again
    with ledger.reading() as log:
        size = log.size
    assert certify(ledger, one).state is RequestState.CERTIFIED
    with ledger.reading() as log:
        assert log.size == size
    for act in (lambda: search(ledger, [one]), lambda: certificate_of(ledger, two)):
        with pytest.raises(RefusedError):
            act()
    clean(ledger)


def test_who_was_found_is_not_certified_and_what_was_verified_is_taken_back(ledger: Ledger) -> None:
    one, two = file(ledger, [person(1), person(2)]).requests
    search(ledger, [one, two], Report(found=[Found(two), Found(two)]))
    assert (state_of(ledger, one), state_of(ledger, two)) == (RequestState.VERIFIED, RequestState.RECEIVED)
    with pytest.raises(RefusedError):
        certify(ledger, two)
    search(ledger, [one], Report(found=[Found(one)]))
    assert state_of(ledger, one) is RequestState.RECEIVED
    with pytest.raises(RefusedError):
        certify(ledger, one)
    clean(ledger)
    # Even one who puts the state right past Ebbtide gets no certificate.
    with ledger.database.writer() as state:
        state.connection.execute(update(requests).values(state=RequestState.VERIFIED))
    with pytest.raises(ProofError, match="last search"):
        certify(ledger, one)
    assert not audit(ledger)


def test_what_could_not_be_read_is_an_exception_and_a_later_search_can_lift_it(ledger: Ledger) -> None:
    one, two = file(ledger, [person(1), person(2)]).requests
    some = frozenset({two})
    everybody = [Untold("a.bin", "no known format"), Untold("a.bin", "too short"), Untold("b.bin", "cut", some)]
    search(ledger, [one, two], Report(untold=everybody))
    done = certify(ledger, one)
    assert done.state is RequestState.CERTIFIED_WITH_EXCEPTIONS
    assert done.exceptions == (Excepted(place=EVERYWHERE, outcome="not readable", basis="1 object"),)
    assert certify(ledger, two).exceptions[0].basis == "2 objects"
    assert certify(ledger, one) == done
    assert check(certificate_of(ledger, one), trust(ledger), opening=opening_of(ledger, one))
    # It stays open, and keeps key and lookup, for it goes on.
    assert request_of(ledger, person(1)) is not None
    search(ledger, [one])
    assert state_of(ledger, one) is RequestState.VERIFIED
    opening = opening_of(ledger, one)
    assert len(opening.searches) == 2
    assert certify(ledger, one).state is RequestState.CERTIFIED
    assert check(certificate_of(ledger, one), trust(ledger), opening=opening)
    clean(ledger)


def test_what_is_left_for_a_reason_is_an_exception_with_place_basis_and_date(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    search(ledger, [request_id])
    left = Excepted(place="lake.app.payments", outcome="retained", basis="tax", until=date(2033, 12, 31))
    done = certify(ledger, request_id, left=[left])
    assert (done.state, done.exceptions) == (RequestState.CERTIFIED_WITH_EXCEPTIONS, (left,))
    said = certificates.Certificate.parse(certificate_of(ledger, request_id))
    assert said.last["exceptions"] == [
        {"place": "lake.app.payments", "outcome": "retained", "basis": "tax", "until": "2033-12-31"}
    ]
    with pytest.raises(InputError):
        Excepted(place="lake.app.payments", outcome="retained", basis="tax")


def test_a_search_before_the_last_work_certifies_nobody(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    search(ledger, [request_id])
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.append(
            Intent(at=at, act="a", verb="erase", request=request_id),
            Outcome(at=at, act="a", result="done", request=request_id),
        )
    with pytest.raises(ProofError, match="after the last work"):
        certify(ledger, request_id)
    search(ledger, [request_id])
    assert certify(ledger, request_id).state is RequestState.CERTIFIED


def test_a_long_request_is_certified_by_entries_that_list(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ebbtide.erasure.certify.MAX_LISTED", 3)
    (request_id,) = file(ledger, [person(1)]).requests
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.append(*(RequestMoved(at=at, request=request_id, state="received") for _ in range(11)))
    search(ledger, [request_id])
    certify(ledger, request_id)
    data = certificate_of(ledger, request_id)
    assert check(data, trust(ledger))
    kinds = [leaves.read_body(entry.leaf)["kind"] for entry in certificates.Certificate.parse(data).entries]
    assert kinds.count(leaves.LISTED) == 7  # 14 in fives, and these in twos
    clean(ledger)


def test_a_rehearsal_is_stamped_in_every_entry(ledger: Ledger) -> None:
    ledger.clock = Clock(ledger.clock.now, True)
    ids = file(ledger, [person(1), person(2)]).requests
    search(ledger, ids)
    certify(ledger, ids[0])
    data = certificate_of(ledger, ids[0])
    assert check(data, trust(ledger), simulated=True)
    assert not check(data, trust(ledger))


def test_searches_for_nobody_and_for_strangers_are_refused(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    for ids, report in (([], Report()), (["nobody"], Report()), ([request_id], Report(found=[Found("other")]))):
        with pytest.raises(InputError):
            search(ledger, ids, report)
    assert state_of(ledger, request_id) is RequestState.RECEIVED


def test_the_index_finds_what_reading_the_whole_log_finds(ledger: Ledger) -> None:
    ids = file(ledger, [person(number) for number in range(5)]).requests
    search(ledger, ids)
    search(ledger, ids[:1])
    certify(ledger, ids[0])
    with ledger.database.reader() as state:
        log = LedgerLog(state.connection)
        said = {index: parse_entry(body or b"") for index, _, body in log.rows(0)}
        batches = [index for index, entry in said.items() if isinstance(entry, RequestBatch)]
        own = [index for index, entry in said.items() if getattr(entry, "request", None) == ids[0]]
        found = entries_of(state.connection, ids[0])
    assert [index for index, _ in found] == sorted([*batches, *own])
    assert [index for index, batch in found if batch is not None] == batches


def test_after_a_pruning_there_is_no_certificate_and_it_says_so(ledger: Ledger) -> None:
    one, two = file(ledger, [person(1), person(2)]).requests
    search(ledger, [one, two])
    certify(ledger, one)
    before = ledger.clock.now()
    prune(ledger, before=before)
    with pytest.raises(RefusedError, match="retention"):
        certificate_of(ledger, one)
    certify(ledger, two)
    assert check(certificate_of(ledger, two), trust(ledger))
    clean(ledger)


def test_nobody_stands_in_the_ledger_in_clear(ledger: Ledger, tmp_path: Path) -> None:
    ids = file(ledger, [person(1), person(2)]).requests
    search(ledger, ids, Report(untold=[Untold(UNREADABLE, "encrypted")]))
    certify(ledger, ids[0])
    values: list[Any] = [one.value for each in (person(1), person(2)) for one in each.identifiers]
    assert in_clear(everything(ledger, tmp_path / "export"), [*values, SECRET]) == []


@pytest.mark.parametrize("many", [1, 3])
def test_a_search_from_before_work_on_a_request_is_refused_when_it_is_recorded(ledger: Ledger, many: int) -> None:
    ids = file(ledger, [person(number) for number in range(many)]).requests
    began = begin(ledger)
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.append(Intent(at=at, act="a", verb="erase", request=ids[0]), Outcome(at=at, act="a", result="done"))
    with pytest.raises(RefusedError, match="while storage was read") as caught:
        search(ledger, ids, began=began)
    assert "verify again" in str(caught.value.hint)
    assert {state_of(ledger, each) for each in ids} == {RequestState.RECEIVED}
    search(ledger, ids)
    assert {state_of(ledger, each) for each in ids} == {RequestState.VERIFIED}
    clean(ledger)


def test_a_search_beside_work_on_others_and_other_searches_is_recorded(ledger: Ledger) -> None:
    mine, other = file(ledger, [person(1), person(2)]).requests
    began = begin(ledger)
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.append(Intent(at=at, act="a", verb="erase", request=other), Outcome(at=at, act="a", result="done"))
    search(ledger, [mine], began=began)
    search(ledger, [mine], began=began)
    assert state_of(ledger, mine) is RequestState.VERIFIED
    with ledger.database.reader() as state:
        index, _ = entries_of(state.connection, mine)[-1]
        entry = parse_entry(LedgerLog(state.connection).leaf(index))
    assert isinstance(entry, Verified)
    assert entry.began_at == began.at


def test_a_search_that_read_nothing_verifies_nobody(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    with pytest.raises(RefusedError, match="nothing was read"):
        search(ledger, [request_id], Report(files=0, bytes=0, is_of_nothing=True))
    assert state_of(ledger, request_id) is RequestState.RECEIVED


def test_places_that_could_not_be_listed_are_counted_apart_from_objects(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    gone = [
        Untold("s3://gone", "no permission", is_place=True),
        Untold("s3://gone", "nothing lies there", is_place=True),
    ]
    search(ledger, [request_id], Report(untold=[*gone, Untold("a.bin", "cut"), Untold("b.bin", "cut")]))
    (exception,) = certify(ledger, request_id).exceptions
    assert exception.basis == "2 objects and 1 place that could not be listed"
    report = check(certificate_of(ledger, request_id), trust(ledger))
    assert report, report.failed


def test_a_certificate_whose_whole_places_alone_were_not_listed_says_so(ledger: Ledger) -> None:
    (request_id,) = file(ledger, [person(1)]).requests
    search(ledger, [request_id], Report(untold=[Untold("s3://gone", "no permission", is_place=True)]))
    assert certify(ledger, request_id).exceptions[0].basis == "1 place that could not be listed"
