"""Erasure requests for people who left: filed under the law `promise`, withdrawn when they come back (spec §3).

A filed request is pending for the subject's `notice_before`, counted from `received_at`; whoever carries requests out
asks `pending_until`. Identifiers lie in the state sealed under a key of the request's own. Commitments cannot be
compared, because each has a random k, so the open requests are opened in memory to file nobody twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ebbtide.config.subjects import Subject
from ebbtide.governance.departed import Leaver
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.entries import RequestMoved, RequestReceived
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.model.durations import add
from ebbtide.state.keys import KeyFolder
from ebbtide.state.reader import StateReader
from ebbtide.state.values import NEXT_STATES, Request, RequestState
from ebbtide.state.writer import StateWriter, new_id

LAW = "promise"


@dataclass(frozen=True, slots=True)
class Filing:
    """The ids of what was filed and withdrawn; `too_late` came back after their deletion had begun."""

    filed: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    too_late: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Decision:
    """Who needs a request, and which requests end. It shows nobody."""

    file: tuple[Leaver, ...]
    withdraw: tuple[Request, ...]
    too_late: tuple[Request, ...]


def pending_until(request: Request, subject: Subject) -> datetime:
    """Until when a request of the law `promise` must not be carried out."""
    return add(request.received_at, subject.notice_before)


def open_requests(state: StateReader, keys: KeyFolder, subject: Subject) -> dict[str, Request]:
    """Whom the open requests are about, whatever their law. A key that is missing is an error, never nobody."""
    found: dict[str, Request] = {}
    for request in state.requests(only_open=True):
        if request.sealed is None:
            continue
        opening = Opening.parse(keys.unseal(request.id, request.sealed))
        found |= {item.value: request for item in opening.identifiers if item.type == subject.name}
    return found


def decide(known: Mapping[str, Request], leavers: Iterable[Leaver], returned: Iterable[str]) -> Decision:
    """Nobody who has an open request gets another; only requests of this law end by themselves."""
    back = [known[value] for value in returned if value in known and known[value].law == LAW]
    may_end = [RequestState.WITHDRAWN in NEXT_STATES[request.state] for request in back]
    return Decision(
        tuple(leaver for leaver in leavers if leaver.value not in known),
        tuple(request for request, may in zip(back, may_end, strict=True) if may),
        tuple(request for request, may in zip(back, may_end, strict=True) if not may),
    )


def file_and_withdraw(ledger: Ledger, subject: Subject, leavers: Sequence[Leaver], returned: Collection[str]) -> Filing:
    """One transaction of state and ledger. The open requests are read again in it: another run may have filed."""
    if not leavers and not returned:
        return Filing()
    keys, filed = ledger.home.keys, list[str]()
    try:
        with ledger.writing() as step:
            now = ledger.clock.now()
            decision = decide(open_requests(step.state, keys, subject), leavers, returned)
            for request in decision.withdraw:
                _withdraw(step, request, now)
            for leaver in decision.file:
                filed.append(new_id())
                _file(step, keys, subject, leaver, filed[-1], now)
    except BaseException:
        for request_id in filed:
            keys.destroy(request_id)
        raise
    withdrawn = tuple(request.id for request in decision.withdraw)
    for request_id in withdrawn:
        keys.destroy(request_id)
    if withdrawn:
        ledger.database.scrub()
    return Filing(tuple(filed), withdrawn, tuple(request.id for request in decision.too_late))


def destroy_left_keys(ledger: Ledger) -> None:
    """A crash between a withdrawal and the end of its key leaves a key that nothing needs."""
    with ledger.database.reader() as state:
        gone = {r.id for r in state.requests() if r.state is RequestState.WITHDRAWN and r.sealed is None}
    for name in gone & set(ledger.home.keys.names()):
        ledger.home.keys.destroy(name)


def _file(
    step: Step[StateWriter], keys: KeyFolder, subject: Subject, leaver: Leaver, request_id: str, now: datetime
) -> None:
    opening = Opening(request_id, new_key(), (Identifier(subject.name, leaver.value),))
    keys.create_sealing(request_id)
    step.state.add_request(
        request_id,
        law=LAW,
        commitments=opening.commitments(),
        sealed=keys.seal(request_id, opening.encode()),
        note=f"left; pending for {subject.notice_before}",
        received_at=now,
        due_at=leaver.due_at,
        at=now,
    )
    commitments = opening.commitments()
    step.append(
        RequestReceived(
            at=now, request=request_id, law=LAW, commitments=commitments, received_at=now, due_at=leaver.due_at
        )
    )


def _withdraw(step: Step[StateWriter], request: Request, now: datetime) -> None:
    step.state.move_request(request.id, RequestState.WITHDRAWN, at=now)
    step.state.forget_request(request.id, at=now)
    state = RequestState.WITHDRAWN.value
    step.append(RequestMoved(at=now, request=request.id, state=state, because="left_at is null again"))
