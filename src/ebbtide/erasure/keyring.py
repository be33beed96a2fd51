"""Whose key lies where: the keys of requests, made with them and destroyed after them, and the key that finds them.

A request is found by HMAC-SHA256(lookup key, type ‖ canonical value) of each identifier. The lookup key is one for a
project; it lies with the other keys and never in the database, which knows only its fingerprint.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress

from ebbtide.errors import EbbtideError, InputError, RefusedError, UnreadableError
from ebbtide.ledger.commitment import Identifier, Opening, committed
from ebbtide.ledger.home import Home
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.state import requests as rows
from ebbtide.state.keys import KeyFolder, seal, unseal
from ebbtide.state.reader import StateReader
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import Request
from ebbtide.state.writer import StateWriter

_LOOKUP = "request-lookup"
_FINGERPRINT = b"ebbtide: the key of request lookups"


def texts_of(identifiers: Sequence[Identifier]) -> list[bytes]:
    """What of a person is hashed: type and canonical value of each identifier."""
    if not identifiers:
        raise InputError("nobody: a person without identifiers", hint="give at least one, as user_id=…")
    return [committed(one.type, one.value) for one in identifiers]


def digests_of(key: bytes, texts: Iterable[bytes]) -> frozenset[bytes]:
    """What a person is looked up by."""
    return frozenset([hmac.digest(key, text, "sha256") for text in texts])


def lookup_key_of(state: StateReader, keys: KeyFolder) -> bytes | None:
    """The project's lookup key; None before the first request. A key that made other lookups is refused."""
    expected = rows.fingerprint(state.connection)
    if expected is None:
        return None
    key = keys.read(_LOOKUP)
    if hmac.digest(key, _FINGERPRINT, "sha256") != expected:
        raise RefusedError(
            f"the key {_LOOKUP} in {keys.path} is another one than requests were filed with",
            hint="with it nobody would be found: bring the key from the host that filed them",
        )
    return key


def lookup_key_for_writing(state: StateWriter, keys: KeyFolder) -> bytes:
    """The same; made with the first request."""
    found = lookup_key_of(state, keys)
    if found is None:
        # A process that died before its commit has made it already.
        if _LOOKUP not in keys.names():
            keys.create_sealing(_LOOKUP)
        found = keys.read(_LOOKUP)
        rows.keep_fingerprint(state.connection, hmac.digest(found, _FINGERPRINT, "sha256"))
    return found


@contextmanager
def filing(ledger: Ledger) -> Iterator[tuple[Step[StateWriter], list[tuple[int, str]]]]:
    """One transaction in which requests are filed, and the slots of their keys. Undone, it leaves no key behind.

    While it is open, it will not be committed after an error: its keys are destroyed at once. Whether a commit that
    failed came to be nobody here can tell: the next filing looks (`_left_behind`).
    """
    made: list[tuple[int, str]] = []
    keys = ledger.home.request_keys
    with ledger.writing() as step:
        behind = _left_behind(ledger, step)
        try:
            yield step, made
        except BaseException:
            with suppress(EbbtideError):
                keys.destroy(made)
            raise
        grown = step.log.frontier() != step.start
    if grown:
        keys.destroy_all(behind)


def _left_behind(ledger: Ledger, step: Step[StateWriter]) -> range:
    """Slots to be destroyed once this transaction is signed; those that nothing can refer to are destroyed at once.

    The transaction is exclusive: what lies behind the last slot that the database refers to was written by one that
    died, or is of a newer database than this one, or of another ledger.

    1. What was appended with these keys must be known, and be of this ledger alone: else they are kept, and it is said.
    2. If every commit that began is in this database, nothing refers to them.
    3. If one may be in another copy of it, that copy is refused once this one has signed something else in its place.
    """
    home, origin = ledger.home, step.log.trust().origin
    keys, appended = home.request_keys, home.frontier(origin).read()
    behind = keys.behind(rows.last_slot(step.state.connection))
    if behind and not (appended.certain.size and home.is_only(origin)):
        ledger.notices.append(
            f"keeps slots {behind[0]} to {behind[-1]} of {keys.path}: no request here refers to them, "
            "and what was appended with this key folder does not tell whether one elsewhere does"
        )
        return range(0)
    if appended.intended not in (None, step.start):
        return behind
    keys.destroy_all(behind)
    return range(0)


def open_sealed(home: Home, requests: Iterable[Request]) -> Iterator[tuple[Request, Opening]]:
    """Whom requests are about. A key that is missing is an error, never nobody."""
    return ((request, opening) for request, _, opening in open_with_keys(home, requests))


def open_with_keys(home: Home, requests: Iterable[Request]) -> Iterator[tuple[Request, bytes, Opening]]:
    """The same with the keys, for whoever seals more under them."""
    waiting = [request for request in requests if request.sealed is not None]
    with home.request_keys.reading() if any(one.key_slot is not None for one in waiting) else nullcontext() as keys:
        for one in waiting:
            slot = one.key_slot
            key = home.keys.read(one.id) if slot is None or keys is None else keys.key(slot, one.id)
            yield one, key, _opened(one, key)


def keep_resolved(
    step: Step[StateWriter] | Step[SweepWriter], home: Home, people: Mapping[str, Sequence[Identifier]]
) -> None:
    """Seal with each request what tables of identities gave of its person, before the rows that say so are erased."""
    requests = rows.requests_by_id(step.state.connection, sorted(people))
    rows.reseal(
        step.state.connection,
        [
            (request.id, seal(key, request.id, known.encode()))
            for request, key, opening in open_with_keys(home, requests)
            if (known := opening.knowing(people[request.id])) != opening
        ],
    )


def adopt_key_files(ledger: Ledger) -> None:
    """Move keys that are files of their own, from before there was one file for all, and let their requests be found.

    One that is missing is left as it is: its request is opened by nobody, and says so to whoever tries.
    """
    home = ledger.home
    with ledger.database.reader() as state:
        if not rows.with_key_files(state.connection):
            return
    with filing(ledger) as (step, made):
        connection = step.state.connection
        lookup, found = lookup_key_for_writing(step.state, home.keys), list[tuple[Request, bytes]]()
        for request in rows.with_key_files(connection):
            with suppress(UnreadableError):
                found.append((request, home.keys.read(request.id)))
        if found:
            slots, _ = home.request_keys.append([one.id for one, _ in found], [key for _, key in found])
            made += [(slot, one.id) for slot, (one, _) in zip(slots, found, strict=True)]
            for slot, (request, key) in zip(slots, found, strict=True):
                rows.set_slot(connection, request.id, slot)
                rows.add_lookups(
                    connection, request.id, digests_of(lookup, texts_of(_opened(request, key).identifiers))
                )


def destroy_left_keys(ledger: Ledger) -> None:
    """Destroy the keys of requests that are closed, and files of keys that moved.

    Whoever closes a request calls it after the commit; whoever files calls it for a process that died in between.
    """
    home = ledger.home
    with ledger.database.reader() as state:
        left = rows.left_keys(state.connection)
        files = [name for name in home.keys.names() if _is_over(state, name)]
    for name in files:
        home.keys.destroy(name)
    if left:
        home.request_keys.destroy(left)
        with ledger.database.writer() as writer:
            for _, request in left:
                rows.set_slot(writer.connection, request, None)


def _is_over(state: StateReader, name: str) -> bool:
    """Whether the file of a key is a request's that needs it no more."""
    if name not in rows.known_ids(state.connection, [name]):
        return False
    request = state.get_request(name)
    return request.sealed is None or request.key_slot is not None


def _opened(request: Request, key: bytes) -> Opening:
    assert request.sealed is not None
    return Opening.parse(unseal(key, request.id, request.sealed))
