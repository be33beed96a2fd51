"""How much there is of what the state holds: numbers for whoever watches a project, and no names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from ebbtide.state import tables
from ebbtide.state.values import MarkState, RequestState


@dataclass(frozen=True, slots=True)
class Marks:
    """Of one state: how many, how many of them are past their grace, and the bytes that only they reference."""

    count: int
    due: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Of requests that somebody still has to see to: the first deadline, how many are past, and how many soon."""

    first: datetime | None
    overdue: int
    soon: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of a verb that ended."""

    verb: str
    started_at: datetime
    finished_at: datetime
    exit_code: int


def marks_by_state(connection: Connection, *, now: datetime) -> Mapping[MarkState, Marks]:
    """Every mark that was ever made, by what became of it."""
    table = tables.marks.c
    due = func.sum(case((table.grace_until <= now, 1), else_=0))
    query = select(table.state, func.count(), due, func.sum(table.bytes)).group_by(table.state)
    found = {
        MarkState(state): Marks(count, int(due), int(size)) for state, count, due, size in connection.execute(query)
    }
    return {state: found.get(state, Marks(0, 0, 0)) for state in MarkState}


def requests_by_state(connection: Connection) -> Mapping[RequestState, int]:
    """Every request, by how it stands."""
    table = tables.requests.c
    found: dict[str, int] = dict(
        connection.execute(select(table.state, func.count()).group_by(table.state)).tuples().all()
    )
    return {state: found.get(state.value, 0) for state in RequestState}


def deadlines(connection: Connection, *, now: datetime, soon: datetime) -> Deadlines:
    """Of open requests. One that was certified with exceptions was answered, and waits for these to end."""
    table = tables.requests.c
    deadline = func.coalesce(table.extended_to, table.due_at)
    waits = (table.closed_at.is_(None), table.state != RequestState.CERTIFIED_WITH_EXCEPTIONS)
    query = select(
        func.min(deadline, type_=table.due_at.type),
        func.coalesce(func.sum(case((deadline < now, 1), else_=0)), 0),
        func.coalesce(func.sum(case(((deadline >= now) & (deadline <= soon), 1), else_=0)), 0),
    ).where(*waits)
    first, overdue, within = connection.execute(query).one().tuple()
    return Deadlines(first, int(overdue), int(within))


def last_runs(connection: Connection) -> list[LastRun]:
    """The last one of each verb, by verb."""
    table = tables.runs.c
    newest = (
        select(table.verb, func.max(table.finished_at).label("at"))
        .where(table.finished_at.is_not(None))
        .group_by(table.verb)
        .subquery()
    )
    query = select(table.verb, table.started_at, table.finished_at, table.exit_code).join_from(
        tables.runs, newest, (table.verb == newest.c.verb) & (table.finished_at == newest.c.at)
    )
    found = {row.verb: LastRun(*row.tuple()) for row in connection.execute(query) if row.exit_code is not None}
    return [found[verb] for verb in sorted(found)]
