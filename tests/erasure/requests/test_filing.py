"""Requests are filed whole or not at all, once a person, and found again without opening one of them (spec §4)."""

from __future__ import annotations

import gc
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, func, select

from ebbtide.erasure import filing as filing_module
from ebbtide.erasure.filing import Person, file_requests, opening_of, request_of
from ebbtide.erasure.keyring import adopt_key_files, destroy_left_keys
from ebbtide.errors import EbbtideError, InputError, RefusedError, StateError, UnreadableError
from ebbtide.ledger.audit import audit
from ebbtide.ledger.batch import Tree
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.ledger import Clock, Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.request_entries import RequestBatch, RequestMoved, RequestReceived
from ebbtide.ledger.request_index import entries_of, leaves_of
from ebbtide.ledger.tree import leaf_hash, verify_inclusion
from ebbtide.model.canonical import dumps
from ebbtide.run import RunContext
from ebbtide.state.request_keys import SLOT_BYTES, TAG_BYTES
from ebbtide.state.requests import insert_requests
from ebbtide.state.tables import metadata, request_lookups, requests
from ebbtide.state.values import RequestState
from tests.erasure.requests.people import LAWS, RECEIVED, SECRET, file, person


def clean(ledger: Ledger) -> None:
    report = audit(ledger)
    assert report, report.findings


def rows(ledger: Ledger) -> dict[str, int]:
    with ledger.database.reader() as state:
        tables = (requests, request_lookups)
        count = {table.name: select(func.count()).select_from(table) for table in tables}
        return {name: int(state.connection.execute(query).scalar_one()) for name, query in count.items()}


def test_one_request_is_one_entry_that_names_it_and_not_the_person(ledger: Ledger) -> None:
    filed = file(ledger, [person(1)])
    assert (len(filed.requests), filed.known, filed.new) == (1, (), 1)
    request = request_of(ledger, person(1))
    assert request is not None
    assert (request.id, request.state, request.law) == (filed.requests[0], RequestState.RECEIVED, "gdpr")
    # A month from 31 October ends on 30 November: there is no 31st.
    assert (request.received_at, request.due_at) == (RECEIVED, datetime(2026, 11, 30, 9, 30, tzinfo=UTC))
    opening = opening_of(ledger, request.id)
    assert opening.identifiers == person(1).identifiers
    with ledger.database.reader() as state:
        ((index, batched),) = entries_of(state.connection, request.id)
        said = parse_entry(LedgerLog(state.connection).leaf(index))
    assert batched is None
    assert isinstance(said, RequestReceived)
    assert said.commitments == request.commitments == opening.commitments()
    clean(ledger)


@pytest.mark.parametrize("simulated", [False, True])
def test_many_requests_are_one_entry_and_each_has_a_path_to_its_root(ledger: Ledger, *, simulated: bool) -> None:
    ledger.clock = Clock(ledger.clock.now, simulated)
    filed = file(ledger, [person(number) for number in range(37)])
    with ledger.database.reader() as state:
        log = LedgerLog(state.connection)
        assert log.size == 2  # the ledger's own first entry, and the batch
        batch = parse_entry(log.leaf(1))
        assert isinstance(batch, RequestBatch)
        assert (batch.of, batch.count, batch.simulated) == (RequestReceived.KIND, 37, simulated)
        for place, (request_id, leaf) in enumerate(zip(filed.requests, leaves_of(state.connection, 1), strict=True)):
            ((index, batched),) = entries_of(state.connection, request_id)
            assert (index, batched and batched.leaf_index) == (1, place)
            assert batched is not None
            verify_inclusion(leaf_hash(batched.leaf), place, 37, batched.path, bytes.fromhex(batch.root))
            # The fast encoder writes what the entry itself would, and so the strict parser takes it.
            said, request = parse_entry(batched.leaf), state.get_request(request_id)
            assert said == RequestReceived(
                at=batch.at, simulated=simulated, request=request_id, law="gdpr", commitments=request.commitments,
                received_at=RECEIVED, due_at=request.due_at,
            )  # fmt: skip
            assert leaf.leaf == said.encode()
    clean(ledger)


def test_who_has_an_open_request_gets_no_second_one_and_is_told(ledger: Ledger) -> None:
    first = file(ledger, [person(1), person(2), person(1)])
    assert first.known == (2,)
    assert first.requests[0] == first.requests[2]
    again = file(ledger, [person(3), person(2), Person(person(1).identifiers[:1])])
    assert again.known == (1, 2)
    assert again.requests[1:] == (first.requests[1], first.requests[0])
    # One identifier that the open request lacks: it would be searched for by nobody.
    more = Person((*person(1).identifiers, Identifier("device", f"{SECRET}d")))
    assert request_of(ledger, more) is None
    assert file(ledger, [more]).new == 1
    assert rows(ledger) == {"requests": 4, "request_lookups": 9}
    clean(ledger)


def test_a_request_that_ends_by_itself_keeps_nobody_from_filing_one_that_does_not(ledger: Ledger) -> None:
    assert file(ledger, [person(1)], "promise").new == 1
    assert file(ledger, [person(1)], "promise").new == 0
    assert file(ledger, [person(1)], "gdpr").new == 1
    assert file(ledger, [person(1)], "promise").new == 0


def test_batches_are_transactions_of_their_own_and_a_second_run_files_the_rest(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filing_module, "MAX_BATCH", 4)

    def people() -> object:
        for number in range(10):
            if number == 6:
                raise KeyboardInterrupt
            yield person(number)

    with pytest.raises(KeyboardInterrupt):
        file_requests(ledger, people(), law=LAWS["gdpr"], received_at=RECEIVED, run=RunContext("t"))  # type: ignore[arg-type]
    assert rows(ledger)["requests"] == 4
    done = file(ledger, [person(number) for number in range(10)])
    assert done.known == (0, 1, 2, 3)
    assert rows(ledger)["requests"] == 10
    assert len(set(done.requests)) == 10
    clean(ledger)


def test_what_cannot_be_filed_leaves_nothing(ledger: Ledger) -> None:
    ledger.open()
    future = ledger.clock.now() + timedelta(days=1)
    with pytest.raises(InputError, match="future"):
        file_requests(ledger, [person(1)], law=LAWS["gdpr"], received_at=future, run=RunContext("t"))
    for bad in (Person(()), Person((Identifier('user"', "1"),)), Person((Identifier("u", "\ud800"),))):
        with pytest.raises(InputError):
            file(ledger, [person(1), bad])
    crowd = Person(tuple(Identifier("device", str(number)) for number in range(1000)))
    with pytest.raises(InputError) as caught:
        file(ledger, [person(1), crowd])
    assert SECRET not in str(caught.value)
    assert rows(ledger) == {"requests": 0, "request_lookups": 0}
    assert not ledger.home.request_keys.behind(None)
    clean(ledger)


def test_a_signature_that_fails_after_the_commit_keeps_the_keys_of_what_was_committed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.open()

    def fail(_: Ledger) -> None:
        raise StateError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "sign", fail)
        with pytest.raises(StateError):
            file(ledger, [person(1), person(2)])
    request = request_of(ledger, person(2))
    assert request is not None
    assert opening_of(ledger, request.id).identifiers == person(2).identifiers
    assert file(ledger, [person(1), person(2)]).new == 0
    ledger.sign()
    clean(ledger)


def test_keys_that_a_crash_left_behind_go_with_the_next_filing(ledger: Ledger) -> None:
    file(ledger, [person(1)])
    slots, _ = ledger.home.request_keys.append(["never-filed", "never-filed-either"])
    assert list(slots) == [1, 2]
    filed = file(ledger, [person(2)])
    raw = ledger.home.request_keys.path.read_bytes()
    assert not any(raw[SLOT_BYTES * 2 : SLOT_BYTES * 4])
    for number, request in ((1, request_of(ledger, person(1))), (2, request_of(ledger, person(2)))):
        assert request is not None
        assert opening_of(ledger, request.id).identifiers == person(number).identifiers
    assert filed.requests


def test_a_closed_request_is_looked_up_by_nobody_and_its_key_is_gone_alone(ledger: Ledger) -> None:
    filed = file(ledger, [person(1), person(2)])
    with ledger.writing() as step:
        at = ledger.clock.now()
        step.state.move_request(filed.requests[0], RequestState.WITHDRAWN, at=at)
        step.state.forget_request(filed.requests[0], at=at)
        step.append(RequestMoved(at=at, request=filed.requests[0], state="withdrawn"))
    assert request_of(ledger, person(1)) is None
    assert rows(ledger) == {"requests": 2, "request_lookups": 2}
    before = ledger.home.request_keys.path.read_bytes()
    destroy_left_keys(ledger)
    after = ledger.home.request_keys.path.read_bytes()
    assert not any(after[SLOT_BYTES + TAG_BYTES : SLOT_BYTES * 2])
    assert (after[:SLOT_BYTES], after[SLOT_BYTES * 2 :]) == (before[:SLOT_BYTES], before[SLOT_BYTES * 2 :])
    with pytest.raises(RefusedError, match="withdrawn"):
        opening_of(ledger, filed.requests[0])
    assert opening_of(ledger, filed.requests[1]).identifiers == person(2).identifiers
    destroy_left_keys(ledger)
    # Who comes again is filed again.
    assert file(ledger, [person(1)]).new == 1
    clean(ledger)


def test_a_key_file_of_before_moves_into_the_file_and_its_request_is_found(ledger: Ledger) -> None:
    keys, at = ledger.home.keys, ledger.clock.now()
    openings = [Opening(f"{number:032x}", new_key(), person(number).identifiers) for number in range(3)]
    with ledger.writing() as step:
        for opening in openings:
            keys.create_sealing(opening.request)
            step.state.add_request(
                opening.request, law="gdpr", commitments=opening.commitments(),
                sealed=keys.seal(opening.request, opening.encode()), note="", received_at=at, due_at=at, at=at,
            )  # fmt: skip
            step.append(
                RequestReceived(
                    at=at, request=opening.request, law="gdpr", commitments=opening.commitments(), received_at=at,
                    due_at=at,
                )
            )  # fmt: skip
    assert opening_of(ledger, openings[0].request) == openings[0]
    keys.destroy(openings[2].request)  # lost: it opens nothing, and stops nobody else
    assert file(ledger, [person(0), person(1)]).requests == (openings[0].request, openings[1].request)
    assert not {opening.request for opening in openings} & set(keys.names())
    assert [opening_of(ledger, opening.request) for opening in openings[:2]] == openings[:2]
    with pytest.raises(UnreadableError):
        opening_of(ledger, openings[2].request)
    adopt_key_files(ledger)
    clean(ledger)


def test_another_lookup_key_is_refused_and_finds_nobody_by_mistake(ledger: Ledger) -> None:
    file(ledger, [person(1)])
    keys = ledger.home.keys
    keys.destroy("request-lookup")
    for act in (lambda: request_of(ledger, person(1)), lambda: file(ledger, [person(1)])):
        with pytest.raises(UnreadableError):
            act()
    keys.create_sealing("request-lookup")
    for act in (lambda: request_of(ledger, person(1)), lambda: file(ledger, [person(1)])):
        with pytest.raises(RefusedError, match="another one"):
            act()
    assert rows(ledger)["requests"] == 1


def test_a_lookup_asks_for_its_hashes_and_opens_no_request(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    file(ledger, [person(number) for number in range(20)])
    asked: list[str] = []
    with ledger.database.reader() as state:
        event.listen(state.connection.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    monkeypatch.setattr("ebbtide.erasure.keyring.unseal", None)
    assert request_of(ledger, person(7)) is not None
    assert sum("request_lookups" in text for text in asked) == 1
    assert all("digest IN" in text for text in asked if "request_lookups" in text)


def test_values_stand_in_no_table_no_file_no_log_no_error_and_no_repr(
    ledger: Ledger, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    filed = file(ledger, [person(number) for number in range(3)])
    file(ledger, [person(9)])
    shown = [repr(person(1)), repr(filed), repr(ledger.home.request_keys), repr(opening_of(ledger, filed.requests[0]))]
    with ledger.database.reader() as state:
        first = replace(state.get_request(filed.requests[0]), note=SECRET)
    with pytest.raises(EbbtideError) as caught, ledger.writing() as step:  # a row that is there already
        insert_requests(step.state.connection, [first], [[]])
    shown += [str(caught.value), repr(caught.value), str(caught.value.hint)]
    with ledger.database.reader() as state:
        for table in metadata.sorted_tables:
            shown += [repr(row) for row in state.connection.execute(select(table))]
    ledger.database.scrub()
    ledger.database.close()
    gc.collect()
    assert not [text for text in [*shown, caplog.text] if SECRET in text]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert ledger.home.request_keys.path in files
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]


def test_the_encoder_of_an_opening_writes_canonical_json() -> None:
    opening = Opening("r", new_key(), (Identifier("user_id", 'é"\\\n'), Identifier("email", "a@b")))
    text = opening.encode()
    assert Opening.parse(text) == opening
    said = {"type": "user_id", "value": 'é"\\\n'}, {"type": "email", "value": "a@b"}
    head = {"format": "ebbtide-opening", "v": 1, "request": "r", "key": opening.key.hex()}
    assert text == dumps({**head, "identifiers": list(said)})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 33])
def test_every_leaf_of_a_batch_has_a_path_and_no_other_leaf_has_it(size: int) -> None:
    hashes = [leaf_hash(bytes([number])) for number in range(size)]
    tree = Tree(hashes)
    for place, one in enumerate(hashes):
        verify_inclusion(one, place, size, tree.path(place), tree.root)
        with pytest.raises(EbbtideError):
            verify_inclusion(leaf_hash(b"other"), place, size, tree.path(place), tree.root)
