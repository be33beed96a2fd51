"""What people order: unmarks, holds and erasure requests. None of it waits for a sweep (spec §5).

A writer is bound to one exclusive transaction (see `database.py`). Every method is given the time: the doors know
which clock counts (spec §2).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from ebbtide.errors import InputError, RefusedError
from ebbtide.state import tables
from ebbtide.state.requests import drop_lookups
from ebbtide.state.runs import RunWriter
from ebbtide.state.values import (
    NEXT_STATES,
    Condemnation,
    Declaration,
    DeclarationKind,
    Hold,
    HoldScope,
    Mark,
    MarkState,
    Request,
    RequestState,
    Unmark,
)

SALT_BYTES = 16


def new_id() -> str:
    """A random id, which says nothing about anything."""
    return secrets.token_hex(16)


def new_salt() -> bytes:
    """What keeps the hash of a short text from being tried out."""
    return secrets.token_bytes(SALT_BYTES)


def check_extension(request: Request, until: datetime) -> None:
    """Only what is open, and only to a later day; what its law allows is for whoever knows the law."""
    if request.closed_at is not None or until <= request.deadline:
        raise RefusedError(
            f"request {request.id} cannot be extended to {until:%Y-%m-%d}",
            hint=f"it is {request.state}, due on {request.deadline:%Y-%m-%d}",
        )


class StateWriter(RunWriter):
    """The one writer of this moment."""

    def actor(self, name: str) -> str:
        """The opaque id of a person or service; the name stays in the state."""
        query = select(tables.actors.c.id).where(tables.actors.c.name == name)
        found: str | None = self.connection.execute(query).scalar_one_or_none()
        if found is None:
            found = f"actor-{secrets.token_hex(8)}"
            self.connection.execute(insert(tables.actors), [{"id": found, "name": name}])
        return found

    def unmark(
        self, dataset: str, native_id: str, *, actor: str, reason: str, until: datetime | None, at: datetime
    ) -> tuple[Unmark, tuple[Mark, ...]]:
        """Rescue an object from every target; gives the pin and the marks that it closed (spec §1)."""
        pins, begun = self.unmark_all([(dataset, native_id)], actor=actor, reason=reason, until=until, at=at)
        if begun:
            raise RefusedError(
                "the object is being swept: its removal has begun",
                hint="place a hold on what is left; the next sweep says what became of this one",
            )
        return pins[0]

    def unmark_all(
        self,
        objects: Sequence[tuple[str, str]],
        *,
        actor: str,
        reason: str,
        until: datetime | None,
        at: datetime,
    ) -> tuple[list[tuple[Unmark, tuple[Mark, ...]]], list[tuple[str, str]]]:
        """Rescue many: each pin with the marks that it closed, and the objects left because their removal has begun."""
        if until is not None and until <= at:
            raise InputError("an unmark that has expired already", hint="give a later `--until`, or none")
        marked: dict[tuple[str, str], list[Mark]] = {}
        for mark in self.marks(datasets={dataset for dataset, _ in objects}):
            marked.setdefault((mark.key.dataset, mark.key.object), []).append(mark)
        found, begun = [], []
        for dataset, native_id in objects:
            marks = marked.get((dataset, native_id), [])
            if any(mark.state is MarkState.SWEEPING for mark in marks):
                begun.append((dataset, native_id))
                continue
            for mark in marks:
                self._set_mark(mark.id, MarkState.UNMARKED, closed_at=at, closed_because=f"unmarked by {actor}")
            pin = Unmark(
                id=new_id(), dataset=dataset, object=native_id, actor=actor, reason=reason, salt=new_salt(),
                created_at=at, until=until, released_at=None, released_by=None,
            )  # fmt: skip
            self.connection.execute(insert(tables.unmarks), [asdict(pin)])
            found.append((pin, tuple(self.get_mark(mark.id) for mark in marks)))
        return found, begun

    def release_unmark(self, dataset: str, native_id: str, *, actor: str, at: datetime) -> tuple[Unmark, ...]:
        """Let policies act on an object again; gives the pins that this released."""
        ids = [pin.id for pin in self.unmarks([dataset]) if pin.object == native_id and pin.active(at)]
        if not ids:
            raise InputError("the object is not unmarked", hint="`history` shows the state of each transaction")
        values = {"released_at": at, "released_by": actor}
        self.connection.execute(update(tables.unmarks).where(tables.unmarks.c.id.in_(ids)).values(values))
        return tuple(pin for pin in self.unmarks([dataset]) if pin.id in ids)

    def hold_dataset(self, dataset: str, *, owner: str, reason: str, at: datetime) -> Hold:
        """Hold a whole dataset (spec §3)."""
        return self._add_hold(new_id(), HoldScope.DATASET, dataset=dataset, owner=owner, reason=reason, created_at=at)

    def hold_partitions(
        self, dataset: str, first: date | None, last: date | None, *, owner: str, reason: str, at: datetime
    ) -> Hold:
        """Hold the partitions between two days, both included; None leaves that side open."""
        if first is None and last is None:
            raise InputError("a range of partitions needs a first or a last day", hint="hold the whole dataset instead")
        if first and last and last < first:
            raise InputError(f"the last day {last} is before the first day {first}", hint="swap them")
        return self._add_hold(
            new_id(),
            HoldScope.PARTITIONS,
            dataset=dataset,
            first_day=first,
            last_day=last,
            owner=owner,
            reason=reason,
            created_at=at,
        )

    def hold_subject(
        self, hold_id: str, *, commitments: Sequence[str], sealed: bytes, owner: str, reason: str, at: datetime
    ) -> Hold:
        """Hold everything about a person, who is known here only by commitments and sealed identifiers."""
        if not commitments or not sealed:
            raise InputError("a hold on a subject needs its commitments and its sealed identifiers")
        return self._add_hold(
            hold_id,
            HoldScope.SUBJECT,
            commitments=tuple(commitments),
            sealed=sealed,
            owner=owner,
            reason=reason,
            created_at=at,
        )

    def condemn(self, path: str, dataset: str, *, actor: str, at: datetime) -> Condemnation:
        """A folder that no catalog lists may go. Condemned again, the new word counts: it sees what came since."""
        # One dataset has one keyed name in the ledger, however often it is condemned.
        salts = [each.salt for each in self.condemned() if dataset == each.dataset or path == each.path]
        salt = salts[0] if salts else new_salt()
        folder = Condemnation(id=new_id(), path=path, dataset=dataset, actor=actor, condemned_at=at, salt=salt)
        self.connection.execute(delete(tables.condemned).where(tables.condemned.c.path == path))
        self.connection.execute(insert(tables.condemned), [asdict(folder)])
        return folder

    def declare(
        self, kind: DeclarationKind, name: str, *, reason: str, until: datetime | None, actor: str, at: datetime
    ) -> Declaration:
        """The project file says something that lifts a protection, and a verb is about to act under it (spec §7)."""
        said = Declaration(
            id=new_id(), kind=kind, name=name, reason=reason, until=until, salt=new_salt(), actor=actor, declared_at=at
        )
        self.connection.execute(insert(tables.declarations), [asdict(said)])
        return said

    def end_declaration(self, declaration_id: str, *, actor: str, at: datetime) -> None:
        """The project file no longer says it."""
        one = tables.declarations.c.id == declaration_id
        self.connection.execute(update(tables.declarations).where(one).values(ended_at=at, ended_by=actor))

    def release_hold(self, hold_id: str, *, actor: str, at: datetime) -> Hold:
        """End a hold. Sealed identifiers go with it."""
        if not self.get_hold(hold_id).active:
            raise RefusedError(f"hold {hold_id} is released already", hint="`hold list` shows the active ones")
        values = {"released_at": at, "released_by": actor, "sealed": None}
        self.connection.execute(update(tables.holds).where(tables.holds.c.id == hold_id).values(values))
        return self.get_hold(hold_id)

    def add_request(
        self,
        request_id: str,
        *,
        law: str,
        commitments: Sequence[str],
        sealed: bytes,
        note: str,
        received_at: datetime,
        due_at: datetime,
        at: datetime,
        state: RequestState = RequestState.RECEIVED,
    ) -> Request:
        """Keep one erasure request. `sealed` is bound to `request_id` (see `keys.py`). Many: `requests.py`."""
        if state not in (RequestState.RECEIVED, RequestState.IDENTITY_PENDING):
            raise RefusedError(f"a request cannot begin as {state}", hint="it is received first")
        if not commitments or not sealed:
            raise InputError("a request needs the commitments and the sealed identifiers of its subject")
        request = Request(
            id=request_id,
            law=law,
            state=state,
            commitments=tuple(commitments),
            sealed=sealed,
            note=note,
            salt=new_salt(),
            received_at=received_at,
            due_at=due_at,
            extended_to=None,
            updated_at=at,
            closed_at=None,
        )
        self.connection.execute(insert(tables.requests), [asdict(request)])
        return request

    def move_request(self, request_id: str, state: RequestState, *, at: datetime) -> Request:
        """The next step in the life of a request; steps that do not follow are refused."""
        request = self.get_request(request_id)
        if state not in NEXT_STATES[request.state]:
            allowed = ", ".join(sorted(NEXT_STATES[request.state])) or "nothing more"
            raise RefusedError(
                f"request {request_id} is {request.state} and cannot become {state}", hint=f"it may become {allowed}"
            )
        if not NEXT_STATES[state]:
            drop_lookups(self.connection, request_id)
        return self._set_request(request_id, state=state, updated_at=at, closed_at=None if NEXT_STATES[state] else at)

    def extend_request(self, request_id: str, *, until: datetime, reason: str, at: datetime) -> Request:
        """A later deadline, as the law allows; the caller knows the law. The reason is a line of the request's note."""
        found = self.get_request(request_id)
        check_extension(found, until)
        note = "\n".join(each for each in (found.note, reason) if each)
        return self._set_request(request_id, extended_to=until, note=note, updated_at=at)

    def forget_request(self, request_id: str, *, at: datetime) -> Request:
        """Drop the sealed identifiers and the note of a closed request; its key is destroyed after the commit."""
        if self.get_request(request_id).closed_at is None:
            raise RefusedError(f"request {request_id} is not closed", hint="its identifiers are still needed")
        return self._set_request(request_id, sealed=None, note="", updated_at=at)

    def _add_hold(self, hold_id: str, scope: HoldScope, **given: Any) -> Hold:
        absent = {"dataset": None, "first_day": None, "last_day": None, "commitments": (), "sealed": None}
        row = absent | {"id": hold_id, "scope": scope, "salt": new_salt(), "released_at": None, "released_by": None}
        self.connection.execute(insert(tables.holds), [row | given])
        return self.get_hold(hold_id)

    def _set_request(self, request_id: str, **values: Any) -> Request:
        self.connection.execute(update(tables.requests).where(tables.requests.c.id == request_id).values(values))
        return self.get_request(request_id)

    def _set_mark(self, mark_id: str, state: MarkState, **values: Any) -> Mark:
        found = self.get_mark(mark_id)
        if not found.is_open:
            raise RefusedError(f"mark {mark_id} is {found.state} already", hint="plan again")
        values = {"state": state, "waits_for": ()} | values
        self.connection.execute(update(tables.marks).where(tables.marks.c.id == mark_id).values(values))
        return self.get_mark(mark_id)
