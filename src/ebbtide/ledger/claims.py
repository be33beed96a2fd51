"""What a certificate claims, against the entries that it rests on (spec §5). Each rule refuses.

1. Every entry but that of the certificates' key names the request; a batch does by a leaf that its root proves.
2. There is one receipt, it comes first, and it is of the commitments that are certified.
3. There was a search for every commitment after the last work on the request, and again in every place that was ever
   searched. Whatever is no receipt, search, listing or word about the request is work: unknown means no. A search is
   after work that was written before it and at no later time than it began: it says when that was.
4. `certified`: the last search of every place read everything and found nothing, and there are no exceptions.
5. `certified with exceptions`: there are some, each with place, outcome and basis, and a date where its outcome has
   one; what the last search of a place found, or could not read, is among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.leaf import (
    CERTIFICATE_KEY,
    CERTIFIED,
    LISTED,
    MOVED,
    RECEIVED,
    VERIFIED,
    Body,
    check_exception,
    is_digest,
    requests_of,
)
from ebbtide.model.canonical import Json, parse_timestamp

CLEAN = "certified"
WITH_EXCEPTIONS = "certified with exceptions"

_WORDS = (CERTIFICATE_KEY, RECEIVED, VERIFIED, LISTED, CERTIFIED)
_WORK_STATES = ("planned", "deleted", "purged")
_NOT_READABLE = "not readable"
_EXCEPTION = {"place", "outcome", "basis", "until"}


class Closing(NamedTuple):
    """What the last entry of a request says. Exceptions are outcomes by place."""

    request: str
    state: str
    commitments: list[str]
    exceptions: dict[str, set[str]]


class SearchClaim(NamedTuple):
    """Where somebody was searched for, since when, what was found, and what could not be read: of that, places as a
    whole.
    """

    place: str
    commitments: list[str]
    began_at: datetime
    found: int
    unread: int
    unlisted: int = 0


def read_closing(body: Body) -> Closing:
    """The entry that certifies a request."""
    match body:
        case {"kind": kind, "request": str(request), "state": str(state), "commitments": [_, *_] as commitments}:
            if kind == CERTIFIED and state in (CLEAN, WITH_EXCEPTIONS):
                return Closing(request, state, _texts(commitments), _exceptions(body.get("exceptions", [])))
    raise InputError(
        "the last entry does not certify a request",
        hint=f"its kind is {CERTIFIED}, with request, commitments, and state `{CLEAN}` or `{WITH_EXCEPTIONS}`",
    )


def check_claims(bodies: Sequence[Body]) -> None:
    """Refuse unless the entries, of batches the leaves, bear out what the last of them says."""
    closing = read_closing(bodies[-1])
    own = [body for body in bodies if body["kind"] != CERTIFICATE_KEY]
    for body in own:
        belongs = requests_of(body) or ()
        if closing.request not in belongs:
            raise ProofError("request of an entry", expected=closing.request, found=", ".join(belongs) or "none")
    _check_receipt(own, closing)
    last = last_searches(own, closing.commitments)
    if closing.state == CLEAN:
        _check_clean(last, closing)
    else:
        _check_excepted(last, closing)


def _check_receipt(own: Sequence[Body], closing: Closing) -> None:
    receipts = [place for place, body in enumerate(own) if body["kind"] == RECEIVED]
    if len(receipts) != 1:
        raise ProofError(f"entries of kind {RECEIVED}", expected="1", found=str(len(receipts)))
    if receipts != [0]:
        raise ProofError("first entry of the request", expected=RECEIVED, found=str(own[0]["kind"]))
    said = own[0].get("commitments")
    received = sorted(_texts(said)) if isinstance(said, list) else []
    if received != sorted(closing.commitments):
        raise ProofError("commitments", expected=", ".join(received), found=", ".join(sorted(closing.commitments)))


def last_searches(own: Sequence[Body], commitments: Sequence[str]) -> dict[tuple[str, str], SearchClaim]:
    """The last search by commitment and place, after the last work on the request; refused where one is missing."""
    work = max((at for at, body in enumerate(own) if is_work(body)), default=-1)
    worked = max((parse_timestamp(str(body["at"])) for body in own if is_work(body)), default=None)
    last: dict[tuple[str, str], SearchClaim] = {}
    ever: dict[tuple[str, str], None] = {}
    for at, body in enumerate(own):
        if body["kind"] == VERIFIED:
            search = _search(body)
            keys = [(commitment, search.place) for commitment in search.commitments]
            ever |= dict.fromkeys(keys)
            if at > work and (worked is None or worked <= search.began_at):
                last |= dict.fromkeys(keys, search)
    for commitment in commitments:
        if not any(searched == commitment for searched, _ in last):
            after = f"search for commitment {commitment} that began after the last work on the request"
            raise ProofError(after, expected="at least one", found="none")
    for _, place in ever.keys() - last.keys():
        after = f"search in {place} that began after the last work on the request"
        raise ProofError(after, expected="at least one", found="none")
    return last


def _check_clean(last: dict[tuple[str, str], SearchClaim], closing: Closing) -> None:
    for (commitment, place), search in last.items():
        if search.found or search.unread:
            raise ProofError(
                f"last search for commitment {commitment} in {place}",
                expected="0 found, 0 not readable",
                found=f"{search.found} found, {search.unread} not readable",
            )
    if closing.exceptions:
        raise ProofError(
            f"exceptions of a request that is {CLEAN}", expected="none", found=", ".join(closing.exceptions)
        )


def _check_excepted(last: dict[tuple[str, str], SearchClaim], closing: Closing) -> None:
    if not closing.exceptions:
        raise ProofError(f"exceptions of a request that is {WITH_EXCEPTIONS}", expected="at least one", found="none")
    for (_, place), search in last.items():
        outcomes = closing.exceptions.get(place, set())
        if search.found and not outcomes - {_NOT_READABLE}:
            raise ProofError(f"exception for {place}", expected="one that says why it is left", found="none")
        if search.unread and _NOT_READABLE not in outcomes:
            raise ProofError(f"exception for {place}", expected=f"one that is {_NOT_READABLE}", found="none")


def is_work(body: Body) -> bool:
    """Whether something was done for the request: a search from before it says nothing of what it left."""
    if body["kind"] == MOVED:
        return body.get("state") in _WORK_STATES
    return body["kind"] not in _WORDS


def _search(body: Body) -> SearchClaim:
    """Where a verification searched, for whom, and how much it found and could not read."""
    counts = [body.get("found"), body.get("unread", 0), body.get("unlisted", 0)]
    match body:
        case {
            "place": str(place),
            "scanner": str(),
            "inventory": str(inventory),
            "began_at": str(began_at),
            "commitments": [_, *_] as commitments,
        }:
            found, unread, unlisted = (each if type(each) is int and each >= 0 else -1 for each in counts)
            began = parse_timestamp(began_at)
            is_known = min(found, unread, unlisted) >= 0 and unlisted <= unread and is_digest(inventory)
            if is_known and began <= parse_timestamp(str(body["at"])):
                return SearchClaim(place, _texts(commitments), began, found, unread, unlisted)
    raise InputError(
        f"a {VERIFIED} entry without place, scanner, inventory, commitments, began_at and found",
        hint="`found` and `unread` count from 0, `unlisted` is of the latter, the inventory is a digest, and it began "
        "before it was written",
    )


def _exceptions(items: Json) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for item in items if isinstance(items, list) else [None]:
        said = item if isinstance(item, dict) else {}
        until = said.get("until")
        match said:
            case {"place": str(place), "outcome": str(outcome), "basis": str(basis)} if said.keys() <= _EXCEPTION:
                check_exception(place, outcome, basis, None if until is None else _day(until))
                found.setdefault(place, set()).add(outcome)
            case _:
                raise InputError("an exception that cannot be read", hint="place, outcome, basis, and maybe `until`")
    return found


def _day(value: Json) -> str:
    try:
        if isinstance(value, str) and date.fromisoformat(value).isoformat() == value:
            return value
    except ValueError:
        pass
    raise InputError("an exception whose `until` is no day", hint="YYYY-MM-DD")


def _texts(items: Sequence[Json]) -> list[str]:
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) != len(items):
        raise InputError("a commitment that is not text", hint="commitments are hexadecimal text")
    return texts
