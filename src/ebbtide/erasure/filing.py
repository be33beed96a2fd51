"""Filing requests, one or a million, and finding them again (spec §4).

1. A person who has an open request gets no second one: one that covers all of the identifiers, and that does not end by
   itself (a request of the law `promise` does, when the person comes back).
2. Many are one entry of the ledger, a batch with the root over them (`ledger/batch.py`); each batch is one transaction.
   A run that dies leaves whole batches, and running again files the rest.
3. The key of a request is on disk before the request is committed. What a crash leaves are keys that nothing is sealed
   under: the next filing destroys them (`keyring.py`).
"""

from __future__ import annotations

import gc
import hmac
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice

from ebbtide.config.laws import Law
from ebbtide.erasure.keyring import (
    adopt_key_files,
    destroy_left_keys,
    digests_of,
    filing,
    lookup_key_for_writing,
    lookup_key_of,
    open_sealed,
    texts_of,
)
from ebbtide.errors import InputError, RefusedError
from ebbtide.ledger.batch import MAX_BATCH
from ebbtide.ledger.commitment import KEY_BYTES as COMMITMENT_KEY_BYTES
from ebbtide.ledger.commitment import Identifier, Opening, encode_opening
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.request_entries import RequestReceived
from ebbtide.model.canonical import MAX_LEAF_BYTES, dumps, timestamp
from ebbtide.run import RunContext
from ebbtide.state import requests as rows
from ebbtide.state.keys import seal
from ebbtide.state.request_keys import RequestKeys
from ebbtide.state.values import Request, RequestState
from ebbtide.state.writer import SALT_BYTES, StateWriter, new_id

ENDS_BY_ITSELF = "promise"
_NONE: frozenset[str] = frozenset()
_DIGITS = 8
"""How many of an id's digits count within what is filed together; the others are random."""


@dataclass(frozen=True, slots=True, repr=False)
class Person:
    """Somebody, by all identifiers that are known. It shows none of them."""

    identifiers: tuple[Identifier, ...]

    def __repr__(self) -> str:
        return f"Person({len(self.identifiers)} identifiers)"


@dataclass(frozen=True, slots=True)
class Filed:
    """`requests` are ids in the order of the people; `known` the places, from 0, of those who had an open one."""

    requests: tuple[str, ...] = ()
    known: tuple[int, ...] = ()

    @property
    def new(self) -> int:
        """How many requests there are that were not there before."""
        return len(self.requests) - len(self.known)


@dataclass(frozen=True, slots=True, repr=False)
class Case:
    """A person to be filed, and until when it must be done."""

    person: Person
    due_at: datetime
    note: str = ""


def file_requests(
    ledger: Ledger, people: Iterable[Person], *, law: Law, received_at: datetime, run: RunContext
) -> Filed:
    """File a request for each of the people who has none, batch by batch; tells who has one."""
    if received_at > ledger.clock.now():
        raise InputError("a request that is received in the future", hint="give the day on which it came in")
    adopt_key_files(ledger)
    destroy_left_keys(ledger)
    due_at, everybody = law.due_at(received_at), iter(people)
    ids, known = list[str](), list[int]()
    run.step("file requests", unit="requests")
    while some := list(islice(everybody, MAX_BATCH)):
        with filing(ledger) as (step, made), _uncollected():
            cases = [Case(person, due_at) for person in some]
            filed = file_cases(step, ledger, cases, made, law=law.name, received_at=received_at)
        known += [len(ids) + place for place in filed.known]
        ids += filed.requests
        run.advance(len(some))
    return Filed(tuple(ids), tuple(known))


def file_cases(
    step: Step[StateWriter],
    ledger: Ledger,
    cases: Sequence[Case],
    made: list[tuple[int, str]],
    *,
    law: str,
    received_at: datetime,
) -> Filed:
    """The same inside a transaction, with a date of their own for each. `made` gets the slots of new keys."""
    key = lookup_key_for_writing(step.state, ledger.home.keys)
    texts = [texts_of(case.person.identifiers) for case in cases]
    digests = [digests_of(key, each) for each in texts]
    holding = rows.holders(step.state.connection, set[bytes]().union(*digests))
    covered = {digest: frozenset(one for one, has in found if _counts(has, law)) for digest, found in holding.items()}
    ids, known, new = list[str](), list[int](), list[int]()
    fresh = _new_ids(len(cases))
    for place, wanted in enumerate(digests):
        has = frozenset.intersection(*[covered.get(digest, _NONE) for digest in wanted])
        if has:
            known.append(place)
        else:
            new.append(place)
            has = frozenset((next(fresh),))
            for digest in wanted:
                covered[digest] = covered.get(digest, _NONE) | has
        ids.append(min(has))
    for start in range(0, len(new), MAX_BATCH):
        places = new[start : start + MAX_BATCH]
        _file_batch(
            step,
            ledger.home.request_keys,
            [(ids[place], cases[place], texts[place], digests[place]) for place in places],
            made,
            law=law,
            received_at=received_at,
            at=ledger.clock.now(),
        )
    return Filed(tuple(ids), tuple(known))


def request_of(ledger: Ledger, person: Person) -> Request | None:
    """The open request that covers all of a person's identifiers, the newest of several; None where there is none."""
    with ledger.database.reader() as state:
        key = lookup_key_of(state, ledger.home.keys)
        if key is None:
            return None
        digests = digests_of(key, texts_of(person.identifiers))
        holding = rows.holders(state.connection, digests)
        covering = set.intersection(*({one for one, _ in holding.get(digest, [])} for digest in digests))
        found = rows.requests_by_id(state.connection, sorted(covering))
    return max(found, key=lambda one: (one.received_at, one.id), default=None)


def opening_of(ledger: Ledger, request_id: str) -> Opening:
    """Whom a request is about, and what opens its commitments; refused when its key was destroyed."""
    with ledger.database.reader() as state:
        request = state.get_request(request_id)
    if request.sealed is None:
        raise RefusedError(
            f"the identifiers of request {request_id} are gone: it is {request.state}",
            hint="its opening.json, if it was written before, is what is left of them",
        )
    ((_, opening),) = open_sealed(ledger.home, [request])
    return opening


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's collector: a batch makes a hundred thousand values that live until its end, none of them in a
    circle, and it would look through all of them again and again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _counts(has: str, wanted: str) -> bool:
    return has != ENDS_BY_ITSELF or wanted == ENDS_BY_ITSELF


def _file_batch(
    step: Step[StateWriter],
    keys: RequestKeys,
    batch: Sequence[tuple[str, Case, list[bytes], frozenset[bytes]]],
    made: list[tuple[int, str]],
    *,
    law: str,
    received_at: datetime,
    at: datetime,
) -> None:
    requests, leaves = list[Request](), list[bytes]()
    ids = [request_id for request_id, *_ in batch]
    slots, secrets = keys.append(ids)
    made += zip(slots, ids, strict=True)
    leaf = _leaves(law, received_at, at, simulated=step.simulated)
    randoms = _randoms(len(batch), COMMITMENT_KEY_BYTES), _randoms(len(batch), SALT_BYTES)
    for (request_id, case, texts, _), slot, secret, key, salt in zip(batch, slots, secrets, *randoms, strict=True):
        commitments = tuple([hmac.digest(key, text, "sha256").hex() for text in texts])
        opening = encode_opening(request_id, key, case.person.identifiers, texts)
        requests.append(
            Request(
                id=request_id,
                law=law,
                state=RequestState.RECEIVED,
                commitments=commitments,
                sealed=seal(secret, request_id, opening),
                note=case.note,
                salt=salt,
                received_at=received_at,
                due_at=case.due_at,
                extended_to=None,
                updated_at=at,
                closed_at=None,
                key_slot=slot,
            )
        )
        leaves.append(leaf(request_id, commitments, case.due_at))
    rows.insert_requests(step.state.connection, requests, [digests for *_, digests in batch])
    if len(requests) > 1:
        step.append_leaves(RequestReceived.KIND, at, ids, leaves)
        return
    (only,) = requests
    step.append(
        RequestReceived(
            at=at, request=only.id, law=law, commitments=only.commitments, received_at=received_at, due_at=only.due_at
        )
    )


def _leaves(
    law: str, received_at: datetime, at: datetime, *, simulated: bool
) -> Callable[[str, tuple[str, ...], datetime], bytes]:
    """Encodes `RequestReceived` for many requests: what they share once, and ids and commitments, which are digits."""
    begin = b'{"at":"%b","commitments":["' % timestamp(at).encode()
    shared = dumps({"kind": RequestReceived.KIND, "law": law, "received_at": timestamp(received_at)})[1:-1]
    stamp = b',"simulated":true' if simulated else b""
    due = cache(lambda due_at: timestamp(due_at).encode())

    def encode(request: str, commitments: tuple[str, ...], due_at: datetime) -> bytes:
        digits = '","'.join(commitments).encode()
        rest = b'"],"due_at":"%b",%b,"request":"%b"%b,"v":1}' % (due(due_at), shared, request.encode(), stamp)
        leaf = begin + digits + rest
        if len(leaf) > MAX_LEAF_BYTES:
            raise InputError("a person with too many identifiers", hint="a request holds some hundreds")
        return leaf

    return encode


def _new_ids(count: int) -> Iterator[str]:
    """Ids that follow each other: a thousand of them lie on a few pages of each index, and not on a thousand."""
    together = new_id()[:-_DIGITS]
    return (f"{together}{number:0{_DIGITS}x}" for number in range(count))


def _randoms(count: int, size: int) -> list[bytes]:
    drawn = os.urandom(count * size)
    return [drawn[start : start + size] for start in range(0, len(drawn), size)]
