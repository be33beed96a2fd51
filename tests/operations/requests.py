"""Requests in a state, without whom they are about."""

from __future__ import annotations

from datetime import datetime, timedelta

from ebbtide.state.database import Database
from ebbtide.state.requests import insert_requests
from ebbtide.state.values import Request, RequestState


def put_request(
    database: Database, name: str, *, due_at: datetime, state: RequestState = RequestState.RECEIVED
) -> None:
    database.upgrade()
    received = due_at - timedelta(days=30)
    request = Request(
        id=name, law="gdpr", state=state, commitments=(), sealed=None, note="", salt=b"s", received_at=received,
        due_at=due_at, extended_to=None, updated_at=received, closed_at=None,
    )  # fmt: skip
    with database.writer() as writer:
        insert_requests(writer.connection, [request], [()])
