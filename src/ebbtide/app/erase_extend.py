"""`ebbtide erase extend`: a later deadline of a request, within what its law allows (spec §4)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ebbtide.app.erase_request import told_of
from ebbtide.app.ledger import open_for_writing
from ebbtide.config import Project
from ebbtide.config.laws import Law, law_of
from ebbtide.errors import InputError, RefusedError
from ebbtide.ledger.entries import salted
from ebbtide.ledger.request_entries import RequestMoved
from ebbtide.model.times import as_text
from ebbtide.run import RunContext, quiet
from ebbtide.state.values import Request
from ebbtide.state.writer import check_extension


def extend_request(
    project: Project,
    request: str,
    *,
    until: datetime,
    reason: str,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """The request with its new deadline. Who did it and when is in the ledger, why in the state."""
    if not reason.strip():
        raise InputError("an extension needs a reason", hint="say it with --reason; the person is to be told it, too")
    context = quiet(context, as_of=as_of)
    ledger, now = open_for_writing(project, context)
    with ledger.database.reader() as state:
        found = state.get_request(request)
    check_extension(found, until)
    _check_law(found, law_of(project.root, found.law), until, now)
    if dry_run:
        return {**told_of(found), "deadline": as_text(until)}
    with ledger.writing() as step:
        extended = step.state.extend_request(request, until=until, reason=reason, at=now)
        step.append(
            RequestMoved(
                at=now, request=request, state=str(extended.state), deadline=until,
                because=salted(extended.salt, reason), actor=step.state.actor(context.actor),
            )
        )  # fmt: skip
        return told_of(extended)


def _check_law(found: Request, law: Law, until: datetime, now: datetime) -> None:
    last = law.latest(found.received_at)
    if law.extended is None:
        raise RefusedError(f"the law {law.name} knows no extension", hint=f"see its `source`: {law.source}")
    if until > last:
        raise RefusedError(
            f"request {found.id} cannot be extended to {until:%Y-%m-%d}: {law.name} allows none after {last:%Y-%m-%d}",
            hint="every extension counts from the receipt",
        )
    if now > found.deadline:
        raise RefusedError(
            f"request {found.id} is overdue since {found.deadline:%Y-%m-%d}",
            hint="an extension begins, and the person is told of it, before the deadline",
        )
