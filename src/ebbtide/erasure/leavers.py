"""Erasure requests for people who left: filed under the law `promise`, withdrawn when they come back (spec §3).

A filed request is pending for the subject's `notice_before`, counted from `received_at`; whoever carries requests out
asks `pending_until`. Who came back is asked of the users table: for that, the open requests are opened in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ebbtide.config.subjects import Subject
from ebbtide.erasure.filing import ENDS_BY_ITSELF as LAW
from ebbtide.erasure.filing import Case, Person, file_cases
from ebbtide.erasure.keyring import adopt_key_files, destroy_left_keys, filing, open_sealed
from ebbtide.governance.departed import Leaver
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.home import Home
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.request_entries import RequestMoved
from ebbtide.model.durations import add
from ebbtide.state.reader import StateReader
from ebbtide.state.values import NEXT_STATES, Request, RequestState
from ebbtide.state.writer import StateWriter


@dataclass(frozen=True, slots=True)
class Filing:
    """The ids of what was filed and withdrawn; `too_late` came back after their deletion had begun."""

    filed: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    too_late: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class LeaverDecision:
    """Who needs a request, and which requests end. It shows nobody."""

    file: tuple[Leaver, ...]
    withdraw: tuple[Request, ...]
    too_late: tuple[Request, ...]


def pending_until(request: Request, subject: Subject) -> datetime:
    """Until when a request of the law `promise` must not be carried out."""
    return add(request.received_at, subject.notice_before)


def open_requests(state: StateReader, home: Home, subject: Subject) -> dict[str, Request]:
    """Whom the open requests are about: that of the law `promise`, which ends by itself, before any other."""
    found: dict[str, Request] = {}
    for request, opening in open_sealed(home, state.requests(only_open=True)):
        for item in opening.identifiers:
            if item.type == subject.name and (item.value not in found or request.law == LAW):
                found[item.value] = request
    return found


def decide(known: Mapping[str, Request], leavers: Iterable[Leaver], returned: Iterable[str]) -> LeaverDecision:
    """Nobody who has an open request gets another; only requests of this law end by themselves."""
    back = [known[value] for value in returned if value in known and known[value].law == LAW]
    may_end = [RequestState.WITHDRAWN in NEXT_STATES[request.state] for request in back]
    return LeaverDecision(
        tuple(leaver for leaver in leavers if leaver.value not in known),
        tuple(request for request, may in zip(back, may_end, strict=True) if may),
        tuple(request for request, may in zip(back, may_end, strict=True) if not may),
    )


def file_and_withdraw(ledger: Ledger, subject: Subject, leavers: Sequence[Leaver], returned: Collection[str]) -> Filing:
    """One transaction of state and ledger. The open requests are read again in it: another run may have filed."""
    if not leavers and not returned:
        return Filing()
    adopt_key_files(ledger)
    note = f"left; pending for {subject.notice_before}"
    with filing(ledger) as (step, made):
        now = ledger.clock.now()
        decision = decide(open_requests(step.state, ledger.home, subject), leavers, returned)
        for request in decision.withdraw:
            _withdraw(step, request, now)
        people = [Person((Identifier(subject.name, leaver.value),)) for leaver in decision.file]
        cases = [Case(one, leaver.due_at, note) for one, leaver in zip(people, decision.file, strict=True)]
        file_cases(step, ledger, cases, made, law=LAW, received_at=now)
    destroy_left_keys(ledger)
    withdrawn = tuple(request.id for request in decision.withdraw)
    if withdrawn:
        ledger.database.scrub()
    return Filing(tuple(request for _, request in made), withdrawn, tuple(request.id for request in decision.too_late))


def _withdraw(step: Step[StateWriter], request: Request, now: datetime) -> None:
    step.state.move_request(request.id, RequestState.WITHDRAWN, at=now)
    step.state.forget_request(request.id, at=now)
    state = RequestState.WITHDRAWN.value
    step.append(RequestMoved(at=now, request=request.id, state=state, because="left_at is null again"))
