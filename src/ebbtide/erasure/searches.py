"""What a search said of people goes into the ledger (spec §4, §5).

A search is one entry a request, or one batch for many. Clean, it makes a request verified; what it found takes a
verification back. The inventory that it read, and the list of what it could not read, are attachments with keyed paths;
their key goes to whoever opens the request.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from ebbtide.erasure.keyring import open_with_keys
from ebbtide.errors import InputError, RefusedError
from ebbtide.ledger.attachments import attach
from ebbtide.ledger.batch import MAX_BATCH, read_batched
from ebbtide.ledger.claims import is_work
from ebbtide.ledger.commitment import Identifier, Opening, Searched
from ebbtide.ledger.leaf import VERIFIED, read_body
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.request_entries import Verified
from ebbtide.ledger.request_index import entries_of, named_since
from ebbtide.state import requests as rows
from ebbtide.state.erasure import places_of
from ebbtide.state.keys import seal
from ebbtide.state.values import Request, RequestState, after_search
from ebbtide.state.writer import StateWriter

EVERYWHERE = "everywhere"
"""The place of a search that read all that lies in storage."""

_KEYED = "hmac-sha256:"
_NOBODY_TO_FIND = (
    RequestState.IDENTITY_PENDING,
    RequestState.CERTIFIED,
    RequestState.REFUSED,
    RequestState.WITHDRAWN,
)


class SearchHit(Protocol):
    """A value of a person stands somewhere."""

    @property
    def person(self) -> str: ...
    @property
    def dataset(self) -> str | None: ...


class SearchUntold(Protocol):
    """Something of an object could not be told: of these people, or of everybody."""

    @property
    def path(self) -> str: ...
    @property
    def because(self) -> str: ...
    @property
    def people(self) -> frozenset[str] | None: ...
    @property
    def is_place(self) -> bool: ...


class SearchInventory(Protocol):
    """What was read, a line an object, paths keyed."""

    @property
    def lines(self) -> Sequence[str]: ...


class SearchAnswer(Protocol):
    """What a search says (`verify.report.SearchReport`). People are the ids of their requests."""

    @property
    def files(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def inventory(self) -> SearchInventory: ...
    @property
    def found(self) -> Sequence[SearchHit]: ...
    @property
    def untold(self) -> Sequence[SearchUntold]: ...
    @property
    def is_of_nothing(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Began:
    """When a search began to look at storage, and how many entries the ledger had then."""

    at: datetime
    size: int


def begin(ledger: Ledger) -> Began:
    """What is to be noted before storage is listed: a search says nothing of what was done since."""
    with ledger.reading() as log:
        return Began(ledger.clock.now(), log.size)


def record_search(
    ledger: Ledger,
    request_ids: Sequence[str],
    report: SearchAnswer,
    *,
    began: Began,
    path_key: bytes,
    scanner: str,
    place: str = EVERYWHERE,
    excepted: Mapping[str, Collection[str]] | None = None,
    known: Mapping[str, Sequence[Identifier]] | None = None,
) -> None:
    """Say what a search found of the people of these requests, and move the requests on, or back, by it. Refused where
    it read nothing, and where something was done for one of them since it `began`.

    `excepted` are datasets, by request, in which something is left for a reason: what was found there is said of that
    dataset, and takes no verification back. A dataset of which that was said once is spoken of in every later search.
    `known` is what was searched for, by request: nothing less is from now on.
    """
    ids = list(dict.fromkeys(request_ids))
    if not ids:
        raise InputError("a search for nobody", hint="give the requests that it was for")
    apart = excepted or {}
    found = Counter(each.person for each in report.found if each.dataset not in apart.get(each.person, ()))
    if strangers := {each.person for each in report.found} - set(ids):
        raise InputError(f"a search that found {len(strangers)} people whom it was not for", hint="name their requests")
    if report.is_of_nothing and not report.found:
        raise RefusedError(
            "nothing was read: no object lies where somebody was searched for",
            hint="look at the warehouses in ebbtide.yml, `ebbtide scan` again, and verify again",
        )
    with ledger.writing() as step:
        connection = step.state.connection
        requests = rows.requests_by_id(connection, ids)
        for request in requests:
            if request.state in _NOBODY_TO_FIND:
                raise RefusedError(f"request {request.id} is {request.state}", hint="nobody is to be searched for")
        _refuse_work_since(step, ids, began)
        inventory = attach(connection, (f"{line}\n".encode() for line in report.inventory.lines))
        untold = attach(connection, _untold_lines(report, path_key)) if report.untold else None
        unread = _Unread(report)
        at = ledger.clock.now()
        entries = [
            Verified(
                at=at,
                request=request.id,
                place=place,
                scanner=scanner,
                inventory=inventory,
                commitments=request.commitments,
                found=found[request.id],
                unread=unread.of(request.id) or None,
                objects=report.files,
                bytes=report.bytes,
                untold=untold,
                unlisted=unread.places_of(request.id) or None,
                began_at=began.at,
            )
            for request in requests
        ]
        attachments = [inventory, *([untold] if untold else [])]
        _append(step, entries, attachments)
        by_dataset = Counter((each.person, each.dataset) for each in report.found)
        spoken_of = _spoken_of(step, requests, apart)
        for dataset in sorted({each for some in spoken_of.values() for each in some}):
            there = [entry for entry in entries if dataset in spoken_of[entry.request]]
            said = [
                replace(entry, place=dataset, found=by_dataset[entry.request, dataset], unread=None, unlisted=None)
                for entry in there
            ]
            _append(step, said, attachments)
        moved: dict[RequestState, list[str]] = {}
        for request in requests:
            moved.setdefault(after_search(request.state, found=found[request.id] > 0), []).append(request.id)
        for state, each in moved.items():
            rows.set_states(connection, each, state, at=at)
        _keep(step, ledger, requests, Searched(inventory, path_key), known or {})


def _refuse_work_since(step: Step[StateWriter], ids: Sequence[str], began: Began) -> None:
    """What was written since a search began may not have been there when it was listed."""
    connection = step.state.connection
    for request in sorted(named_since(connection, began.size) & set(ids)):
        for index, batched in entries_of(connection, request):
            if index >= began.size and is_work(read_batched(read_body(step.log.leaf(index)), batched)):
                raise RefusedError(
                    f"something was done for request {request} while storage was read",
                    hint="verify again: what was written meanwhile was not searched",
                )


def _spoken_of(
    step: Step[StateWriter], requests: Sequence[Request], excepted: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """The datasets that a search speaks of, by request: those where something is left, and those where it was once."""
    found = {request.id: set(excepted.get(request.id, ())) for request in requests}
    connection = step.state.connection
    for request in {place.request for place in places_of(connection, list(found))}:
        for index, batched in entries_of(connection, request):
            body = read_batched(read_body(step.log.leaf(index)), batched)
            if body["kind"] == VERIFIED and body["place"] != EVERYWHERE:
                found[request].add(str(body["place"]))
    return found


class _Unread:
    """How many objects and places could not be told of, for each of the people."""

    def __init__(self, report: SearchAnswer) -> None:
        self._everybody = {each.path for each in report.untold if each.people is None}
        self._places = {each.path for each in report.untold if each.is_place}
        self._some: dict[str, set[str]] = {}
        for each in report.untold:
            for person in each.people or ():
                self._some.setdefault(person, set()).add(each.path)

    def of(self, person: str) -> int:
        return len(self._of(person))

    def places_of(self, person: str) -> int:
        return len(self._of(person) & self._places)

    def _of(self, person: str) -> set[str]:
        return self._everybody | self._some.get(person, set())


def _untold_lines(report: SearchAnswer, path_key: bytes) -> list[bytes]:
    lines = {f"{_keyed(path_key, each.path)}\t{' '.join(each.because.split())}\n" for each in report.untold}
    return [line.encode() for line in sorted(lines)]


def _keyed(path_key: bytes, path: str) -> str:
    """A path as the inventory has it: those that hold a value are keyed in the report already."""
    if path.startswith(_KEYED):
        return path
    return _KEYED + hmac.digest(path_key, path.encode("utf-8", "surrogateescape"), "sha256").hex()


def _append(step: Step[StateWriter], entries: Sequence[Verified], attachments: Sequence[str]) -> None:
    if len(entries) == 1:
        step.append(*entries)
        return
    for start in range(0, len(entries), MAX_BATCH):
        step.append_batch(entries[start : start + MAX_BATCH], attachments=attachments)


def _keep(
    step: Step[StateWriter],
    ledger: Ledger,
    requests: Sequence[Request],
    searched: Searched,
    known: Mapping[str, Sequence[Identifier]],
) -> None:
    rows.reseal(
        step.state.connection,
        [
            (request.id, seal(key, request.id, _after(opening, searched, known.get(request.id, ())).encode()))
            for request, key, opening in open_with_keys(ledger.home, requests)
        ],
    )


def _after(opening: Opening, searched: Searched, person: Sequence[Identifier]) -> Opening:
    return replace(opening.knowing(person), searches=(*opening.searches, searched))
