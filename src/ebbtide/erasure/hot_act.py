"""Acts on hot tables: people's rows leave a PostgreSQL table in one transaction, and their owner settles by asking the
server again.

A run that dies between the transaction and its outcome leaves the place pending: the next one acts again, finds nobody,
and settles. What the lake has of them goes by acts of its own, once the mirror has applied this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

import psycopg

from ebbtide.acts.act import Act, ActResult, Phase, Stage
from ebbtide.config.hottier import HotTable
from ebbtide.config.subjects import Identities
from ebbtide.erasure.hot import HotPlace, find_hot, values_of
from ebbtide.erasure.hot_log import written_log
from ebbtide.erasure.owner import GONE, HOT
from ebbtide.erasure.stages import MOST_NAMED
from ebbtide.hottier.log import flushed
from ebbtide.hottier.people import Session, clean_up, refuse_without, take_out
from ebbtide.hottier.recycled import log_facts
from ebbtide.hottier.server import failed
from ebbtide.hottier.table import find
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.ledger import Step
from ebbtide.model.dataset import Catalog
from ebbtide.model.removal import Committed
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import ErasurePlace, PlaceState
from ebbtide.state.requests import requests_by_id
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import HoldScope

KIND = "erase hot"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOut(Stage):
    """Rows of people go, or have columns replaced."""

    phase: ClassVar[Phase] = Phase.METADATA
    people: int
    redacts: bool

    def __str__(self) -> str:
        what = "replace columns in" if self.redacts else "delete"
        return f"{what} rows of {self.people:,} people in one transaction; the mirror brings it to the lake"


@dataclass(frozen=True, slots=True, repr=False)
class HotAsked:
    """Whom an act is about, where, and what takes the place of columns; None where rows go."""

    place: HotPlace
    requests: tuple[str, ...]
    people: tuple[tuple[Identifier, ...], ...]
    redact: Mapping[str, str | None] | None


def act_of(act_id: str, asked: HotAsked) -> Act:
    """The act that takes these people out of one hot table."""
    stage = TakeOut(people=len(asked.requests), redacts=asked.redact is not None)
    return Act(
        id=act_id, dataset=asked.place.name, catalog=Catalog("hot", "postgresql", ""), kind=KIND, stages=(stage,),
        requests=asked.requests if len(asked.requests) <= MOST_NAMED else (),
    )  # fmt: skip


@dataclass(slots=True)
class HotEraser:
    """Carries them out. `cleaned` says of each act whether the server gave the room of dead rows free."""

    session: Callable[[HotTable], Session]
    identities: Identities
    asked: Mapping[str, HotAsked]
    check: Callable[[], None]
    cleaned: dict[str, bool] = field(default_factory=dict)

    def commit(self, result: ActResult) -> ActResult:
        asked = self.asked[result.act.id]
        table = asked.place.table
        try:
            connection = self.session(table)
            found = find(connection, table)
            refuse_without(connection, found, ("SELECT", "DELETE" if asked.redact is None else "UPDATE"))
            ways, _ = asked.place.ways(found, self.identities)
            self.check()
            people = values_of(asked.people)
            taken = take_out(connection, found, ways, people, act=result.act.id, redact=asked.redact)
            self.cleaned[result.act.id] = clean_up(connection, found, list(taken.rows))
        except psycopg.Error as error:  # its words may quote rows
            raise failed(table.server, error) from None
        return replace(result, committed=Committed())

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:  # noqa: ARG002 - no act has files here
        return result


@dataclass(slots=True)
class HotRequests:
    """The requests of one run, by act. `known_holds` are those that its plan read."""

    eraser: HotEraser
    known_holds: Collection[str]
    verb: str = "erase"

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
        """Not where a hold came since the plan, or where one of its requests is closed by now: plan again."""
        asked = self.eraser.asked[act.id]
        named = (asked.place.name, asked.place.table.cold)
        for hold in step.state.holds():
            if hold.id not in self.known_holds and (hold.dataset in named or hold.scope is HoldScope.SUBJECT):
                self._put(step, act, PlaceState.HELD, f"hold {hold.id}", at)
                return None
        if any(request.state in GONE for request in requests_by_id(step.state.connection, asked.requests)):
            return None
        self._put(step, act, PlaceState.PENDING, "begun", at)
        return act

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:
        """Nothing was done: the next run looks again."""

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:
        """It has one stage."""

    def settle(self, result: ActResult, after: object) -> HotEnded:  # noqa: ARG002 - the lake's inventory
        """Whoever is there is not out; the log up to here holds whoever is."""
        act, asked = result.act, self.eraser.asked[result.act.id]
        state, because = self._state_of(result)
        if state is PlaceState.FAILED:
            return HotEnded(self, act, state, because)
        table, requests = asked.place.table, asked.requests
        try:
            connection = self.eraser.session(table)
            facts, position = log_facts(connection), flushed(connection)
        except psycopg.Error as error:
            return HotEnded(self, act, PlaceState.FAILED, failed(table.server, error).message)

        def logs(at: datetime) -> Sequence[ErasurePlace]:
            return written_log(asked.place.name, facts, position, requests, now=at)

        return HotEnded(self, act, state, because, logs)

    def _state_of(self, result: ActResult) -> tuple[PlaceState, str]:
        if result.error is not None:
            return PlaceState.FAILED, result.error
        asked = self.eraser.asked[result.act.id]
        there = find_hot([asked.place], asked.people, self.eraser.identities)
        if there.missed and any(each.failed for each in there.missed):
            return PlaceState.FAILED, there.missed[0].because
        if there.held:
            return PlaceState.FAILED, "rows of theirs are there, or came since"
        if asked.redact is not None:
            return PlaceState.REDACTED, "its columns were replaced"
        if self.eraser.cleaned.get(result.act.id):
            return PlaceState.REMOVED, "its rows were deleted, and their room was given free"
        return PlaceState.REMOVED, "its rows were deleted; their room waits for the server's own vacuum"

    def _put(self, step: Step[SweepWriter], act: Act, state: PlaceState, because: str, at: datetime) -> None:
        asked = self.eraser.asked[act.id]
        place = ErasurePlace(
            request="", place=asked.place.name, kind=HOT, state=state, because=because, act=act.id, updated_at=at
        )
        rows.put_places(step.state.connection, [replace(place, request=each) for each in asked.requests])

    def write(self, step: Step[SweepWriter], ended: HotEnded, at: datetime) -> None:
        self._put(step, ended.act, ended.state, ended.because, at)
        rows.put_places(step.state.connection, ended.logs(at))


def _no_log(_: datetime) -> Sequence[ErasurePlace]:
    return ()


@dataclass(frozen=True, slots=True)
class HotEnded:
    """How a hot table stands after an act, and the log that it wrote."""

    owner: HotRequests
    act: Act
    state: PlaceState
    because: str
    logs: Callable[[datetime], Sequence[ErasurePlace]] = _no_log

    @property
    def failed(self) -> bool:
        return self.state is PlaceState.FAILED

    @property
    def finished(self) -> bool:
        return not self.failed

    def write(self, step: Step[SweepWriter], at: datetime) -> None:
        self.owner.write(step, self, at)
