"""Certificates of requests: when there is one, and what it is made of (spec §4, §5).

1. Certified is who was searched for after the last work, and not found: `certified` where everything was read,
   `certified with exceptions` where something was not, or is left for a reason. What a check would refuse is not
   written.
2. A request that is `certified` is closed. Its identifiers go, and its key is destroyed after the commit: whoever wants
   its `opening.json` takes it before. The certificate is made of the ledger's entries, so it can be written out again
   for as long as these are kept, and claims the same.
3. With exceptions a request is open and keeps its key: it goes on when they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from ebbtide.erasure.keyring import destroy_left_keys
from ebbtide.errors import RefusedError
from ebbtide.ledger.certificate import build, signing_key, told_by
from ebbtide.ledger.claims import CLEAN, WITH_EXCEPTIONS, check_claims, last_searches
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.home import Home
from ebbtide.ledger.leaf import CERTIFIED, MAX_LISTED, Body, LoggedEntry, listed_in, read_body
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint, Signer, VerifierKey
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.request_entries import CertificateKey, EarlierEntry, Excepted, RequestCertified, RequestListed
from ebbtide.ledger.request_index import certificate_key, entries_of
from ebbtide.state.erasure import forget_places
from ebbtide.state.values import NEXT_STATES, RequestState
from ebbtide.state.writer import StateWriter

_KEY_PREFIX = "certificates-"
_CERTIFIED = (RequestState.CERTIFIED, RequestState.CERTIFIED_WITH_EXCEPTIONS)


@dataclass(frozen=True, slots=True)
class Certified:
    """How a request ended, with what is left of the person and why."""

    request: str
    state: RequestState
    exceptions: tuple[Excepted, ...] = ()


def certify(ledger: Ledger, request_id: str, *, left: Sequence[Excepted] = ()) -> Certified:
    """Certify a request that was verified; refused unless its searches bear it out. Done before, it says so again.

    `left` is what stays in a place for a reason, or until a date.
    """
    with ledger.database.reader() as state:
        request = state.get_request(request_id)
        if request.state in _CERTIFIED:
            log = LedgerLog(state.connection)
            said = parse_entry(_last(log, state.connection, request_id).leaf)
            assert isinstance(said, RequestCertified)
            return Certified(request_id, request.state, said.exceptions)
    with ledger.writing() as step:
        request = step.state.get_request(request_id)
        if RequestState.CERTIFIED not in NEXT_STATES[request.state]:
            raise RefusedError(
                f"request {request_id} is {request.state}, not {RequestState.VERIFIED}",
                hint="`erase verify` looks for the person; who was found is not certified",
            )
        at = ledger.clock.now()
        earlier = _earlier(step, ledger, request_id, at)
        told = told_by(earlier, _bodies(earlier))
        exceptions = (*left, *_not_read(told, request.commitments))
        closing = RequestCertified(
            at=at,
            request=request_id,
            state=WITH_EXCEPTIONS if exceptions else CLEAN,
            commitments=request.commitments,
            entries=_listing(step, request_id, earlier, at),
            exceptions=exceptions,
        )
        check_claims([*told, read_body(closing.encode())])
        step.append(closing)
        certified = Certified(request_id, RequestState(closing.state), exceptions)
        step.state.move_request(request_id, certified.state, at=at)
        if certified.state is RequestState.CERTIFIED:
            step.state.forget_request(request_id, at=at)
            forget_places(step.state.connection, [request_id])
    if certified.state is RequestState.CERTIFIED:
        destroy_left_keys(ledger)
        ledger.database.scrub()
    return certified


def certificate_of(ledger: Ledger, request_id: str) -> bytes:
    """The certificate of a request that is certified: as often as it is asked for, while its entries are kept."""
    with ledger.database.reader() as state:
        request = state.get_request(request_id)
    if request.state not in _CERTIFIED:
        raise RefusedError(f"request {request_id} is {request.state}, not certified", hint="`erase verify` comes first")
    note = ledger.sign()
    head = Checkpoint.parse(note.text)
    with ledger.database.reader() as state:
        log = LedgerLog(state.connection)
        entries = _listed(log, state.connection, request_id)
        last = entries[-1].leaf_index
        proof = TlogProof(last, log.prove(last, head.size, head.root), note)
    return build(entries, proof, _signer(ledger.home, signing_key(_bodies(entries)))).encode()


def _earlier(step: Step[StateWriter], ledger: Ledger, request_id: str, at: datetime) -> list[LoggedEntry]:
    """The entries of a request so far, with that of the key which signs its certificate."""
    connection = step.state.connection
    key = LoggedEntry(index := _key_entry(step, ledger, at), step.log.leaf(index))
    own = [LoggedEntry(index, step.log.leaf(index), batch) for index, batch in entries_of(connection, request_id)]
    return sorted([key, *own])


def _key_entry(step: Step[StateWriter], ledger: Ledger, at: datetime) -> int:
    """The index of the entry of the key that signs certificates; a new one where none is known, or none lies here."""
    names = ledger.home.keys.names()
    known = certificate_key(step.state.connection)
    if known is not None and _name(VerifierKey.parse(known[1])) in names:
        return known[0]
    signer = Signer.generate(f"{step.log.trust().origin}/certificates")
    ledger.home.keys.store(_name(signer.key), signer.encode().encode())
    (index,) = step.append(CertificateKey(at=at, key=signer.key.encode()))
    return index


def _not_read(told: Sequence[Body], commitments: Sequence[str]) -> list[Excepted]:
    """What the last searches could not read, by place."""
    unread: dict[str, tuple[int, int]] = {}
    for search in last_searches(told, commitments).values():
        unread[search.place] = max((search.unread, search.unlisted), unread.get(search.place, (0, 0)))
    return [
        Excepted(place=place, outcome="not readable", basis=_counted(count - unlisted, unlisted))
        for place, (count, unlisted) in sorted(unread.items())
        if count
    ]


def _counted(objects: int, places: int) -> str:
    parts = [f"{objects} object{'s' if objects > 1 else ''}"] if objects else []
    if places:
        parts.append(f"{places} place{'s' if places > 1 else ''} that could not be listed")
    return " and ".join(parts)


def _listing(
    step: Step[StateWriter], request_id: str, earlier: Sequence[LoggedEntry], at: datetime
) -> tuple[EarlierEntry, ...]:
    """The earlier entries, for the one that certifies; where they are too many, entries that list them."""
    listed = tuple(EarlierEntry(index=entry.leaf_index, leaf=entry.hash.hex()) for entry in earlier)
    if len(listed) <= MAX_LISTED:
        return listed
    chunks: list[Entry] = [
        RequestListed(at=at, request=request_id, entries=listed[start : start + MAX_LISTED])
        for start in range(0, len(listed), MAX_LISTED)
    ]
    indexes = step.append(*chunks)
    return _listing(step, request_id, [LoggedEntry(index, step.log.leaf(index)) for index in indexes], at)


def _listed(log: LedgerLog, connection: Connection, request_id: str) -> list[LoggedEntry]:
    """The entry that certified a request last, after all that it lists, itself or through others."""
    last = _last(log, connection, request_id)
    batches = dict(entries_of(connection, request_id))
    found, waiting = {last.leaf_index: last}, [last]
    while waiting:
        for index in listed_in(read_body(waiting.pop().leaf)):
            if index not in found:
                found[index] = LoggedEntry(index, log.leaf(index), batches.get(index))
                waiting.append(found[index])
    return sorted(found.values())


def _last(log: LedgerLog, connection: Connection, request_id: str) -> LoggedEntry:
    """The entry that certified a request last."""
    for index, batch in reversed(entries_of(connection, request_id)):
        leaf = log.leaf(index)
        if batch is None and read_body(leaf)["kind"] == CERTIFIED:
            return LoggedEntry(index, leaf)
    raise RefusedError(
        f"the entries of request {request_id} are past the ledger's retention",
        hint="the certificate that was written out is what is left of the request",
    )


def _bodies(entries: Sequence[LoggedEntry]) -> list[Body]:
    return [read_body(entry.leaf) for entry in entries]


def _signer(home: Home, key: VerifierKey) -> Signer:
    return Signer.parse(home.keys.read(_name(key)).decode(errors="replace"))


def _name(key: VerifierKey) -> str:
    return f"{_KEY_PREFIX}{key.key_hash.hex()}"
