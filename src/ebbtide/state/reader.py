"""Reading the state. Planning only ever gets this class (design, invariant 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select

from ebbtide.errors import InputError
from ebbtide.state import act_files, tables
from ebbtide.state.values import (
    ActRecord,
    Condemnation,
    Declaration,
    DeclarationKind,
    Hold,
    HoldScope,
    LeaseRecord,
    Mark,
    MarkState,
    ObjectKey,
    Request,
    RequestState,
    RunRecord,
    Snapshot,
    Unmark,
)


class StateReader:
    """What the state says, inside one transaction: two answers never contradict each other."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def marks(self, *, datasets: Collection[str] | None = None, only_open: bool = True) -> tuple[Mark, ...]:
        """Marks in the order in which they were made."""
        query = select(tables.marks).order_by(tables.marks.c.marked_at, tables.marks.c.id)
        if datasets is not None:
            query = query.where(tables.marks.c.dataset.in_(sorted(datasets)))
        if only_open:
            query = query.where(tables.marks.c.closed_at.is_(None))
        return tuple(_mark(row) for row in self._rows(query))

    def get_mark(self, mark_id: str) -> Mark:
        """One mark by its id."""
        return _mark(self._one(select(tables.marks).where(tables.marks.c.id == mark_id), f"mark {mark_id}", "marks"))

    def unmarks(self, datasets: Collection[str] | None = None) -> tuple[Unmark, ...]:
        """All unmarks, the released and expired ones included: ask each whether it is `active(now)`."""
        query = select(tables.unmarks).order_by(tables.unmarks.c.created_at, tables.unmarks.c.id)
        if datasets is not None:
            query = query.where(tables.unmarks.c.dataset.in_(sorted(datasets)))
        return tuple(Unmark(**row) for row in self._rows(query))

    def holds(self, *, only_active: bool = True) -> tuple[Hold, ...]:
        """Holds in the order in which they were placed."""
        query = select(tables.holds).order_by(tables.holds.c.created_at, tables.holds.c.id)
        if only_active:
            query = query.where(tables.holds.c.released_at.is_(None))
        return tuple(_hold(row) for row in self._rows(query))

    def get_hold(self, hold_id: str) -> Hold:
        """One hold by its id."""
        return _hold(
            self._one(select(tables.holds).where(tables.holds.c.id == hold_id), f"hold {hold_id}", "hold list")
        )

    def condemned(self) -> tuple[Condemnation, ...]:
        """Folders that people condemned, in the order in which they did."""
        query = select(tables.condemned).order_by(tables.condemned.c.condemned_at, tables.condemned.c.id)
        return tuple(Condemnation(**row) for row in self._rows(query))

    def act(self, act_id: str) -> ActRecord | None:
        """What an act said in keyed forms; None for acts from before layout 6, and where entries were pruned."""
        row = self.connection.execute(select(tables.acts).where(tables.acts.c.id == act_id)).mappings().one_or_none()
        return None if row is None else ActRecord(**_named(row))

    def paused_acts(self) -> frozenset[str]:
        """Acts that were begun and go on in a later run."""
        return frozenset(self.connection.execute(select(tables.paused_acts.c.act)).scalars())

    def files_of_act(self, act_id: str) -> dict[str, int]:
        """The files of an act that are not known to be gone, with their sizes, while a mark may need them."""
        return act_files.load(self.connection, act_id)

    def declarations(self, *, only_active: bool = True) -> tuple[Declaration, ...]:
        """What the project file says, as the last verb that acted found it, in the order in which it was found."""
        query = select(tables.declarations).order_by(tables.declarations.c.declared_at, tables.declarations.c.id)
        if only_active:
            query = query.where(tables.declarations.c.ended_at.is_(None))
        return tuple(Declaration(**(row | {"kind": DeclarationKind(row["kind"])})) for row in self._rows(query))

    def requests(self, *, only_open: bool = False) -> tuple[Request, ...]:
        """Erasure requests in the order in which they were received."""
        query = select(tables.requests).order_by(tables.requests.c.received_at, tables.requests.c.id)
        if only_open:
            query = query.where(tables.requests.c.closed_at.is_(None))
        return tuple(request_of_row(row) for row in self._rows(query))

    def get_request(self, request_id: str) -> Request:
        """One request by its id."""
        query = select(tables.requests).where(tables.requests.c.id == request_id)
        return request_of_row(self._one(query, f"request {request_id}", "erase list"))

    def runs(self, *, only_unfinished: bool = False) -> tuple[RunRecord, ...]:
        """Runs in the order in which they began."""
        query = select(tables.runs).order_by(tables.runs.c.fence, tables.runs.c.started_at, tables.runs.c.id)
        if only_unfinished:
            query = query.where(tables.runs.c.finished_at.is_(None))
        return tuple(RunRecord(**row) for row in self._rows(query))

    def get_run(self, run_id: str) -> RunRecord:
        """One run by its id."""
        return RunRecord(
            **self._one(select(tables.runs).where(tables.runs.c.id == run_id), f"run {run_id}", "runs list")
        )

    def lease(self) -> LeaseRecord | None:
        """The sweeper's lease as it was last taken; None when nobody ever swept."""
        row = self.connection.execute(select(tables.leases)).mappings().one_or_none()
        return LeaseRecord(**{name: row[name] for name in LeaseRecord.__slots__}) if row else None

    def actor_name(self, actor_id: str) -> str:
        """Who stands behind an opaque id; the ledger only knows the id."""
        query = select(tables.actors).where(tables.actors.c.id == actor_id)
        name: str = self._one(query, f"actor {actor_id}", "ledger audit")["name"]
        return name

    def snapshot(self, *, datasets: Collection[str] | None = None) -> Snapshot:
        """Open marks and unmarks, all or of some datasets, and active holds: what a plan is made of."""
        return Snapshot(marks=self.marks(datasets=datasets), unmarks=self.unmarks(datasets), holds=self.holds())

    def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        return [_named(row) for row in self.connection.execute(query).mappings()]

    def _one(self, query: Select[Any], what: str, listed_by: str) -> Mapping[str, Any]:
        row = self.connection.execute(query).mappings().one_or_none()
        if row is None:
            raise InputError(f"there is no {what}", hint=f"look at the id again: `ebbtide {listed_by}` has them")
        return _named(row)


def _mark(row: Mapping[str, Any]) -> Mark:
    values = dict(row)
    key = ObjectKey(values.pop("dataset"), values.pop("target"), values.pop("object"))
    return Mark(**(values | {"key": key, "state": MarkState(row["state"])}))


def _hold(row: Mapping[str, Any]) -> Hold:
    return Hold(**(dict(row) | {"scope": HoldScope(row["scope"])}))


def request_of_row(row: Mapping[str, Any]) -> Request:
    """A request as its row has it."""
    return Request(**(dict(row) | {"state": RequestState(row["state"])}))


def _named(row: RowMapping) -> dict[str, Any]:
    return {str(name): value for name, value in row.items()}
