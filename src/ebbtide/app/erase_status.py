"""`ebbtide erase status`: one request, with what became of each place as its entries in the ledger say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ebbtide.app.erase_request import told_of
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.ledger.batch import read_batched
from ebbtide.ledger.leaf import CERTIFIED, VERIFIED, Body, read_body
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.request_index import entries_of
from ebbtide.state.erasure import ErasurePlace, places_of


def request_status(project: Project, request: str) -> dict[str, Any]:
    """How a request stands. Nobody is named, and no entry is read that is not its own."""
    with open_state(project).reader() as state:
        found, log = state.get_request(request), LedgerLog(state.connection)
        own = entries_of(state.connection, request)
        places = places_of(state.connection, [request])
        bodies = [read_batched(read_body(log.leaf(index)), batched) for index, batched in own]
    told = told_of(found)
    del told["closed_at"]
    return {**told, "steps": [*_places(places), *_steps(bodies)]}


def _places(places: Sequence[ErasurePlace]) -> Iterator[dict[str, str]]:
    """What became of each place so far; once a request is closed its entries say it."""
    for each in places:
        until = f", until {each.until}" if each.until is not None else ""
        yield {"place": each.place, "kind": each.kind, "state": str(each.state), "because": f"{each.because}{until}"}


def _steps(bodies: Sequence[Body]) -> Iterator[dict[str, str]]:
    """The last search of each place, then what is left of the person and why."""
    searches = {str(body["place"]): body for body in bodies if body["kind"] == VERIFIED}
    for place, body in searches.items():
        left, unread = int(str(body["found"])), int(str(body.get("unread", 0)))
        state = "found" if left else "cannot tell" if unread else "clean"
        because = f"{body.get('objects', 0)} objects read: {left} times found, {unread} cannot be told"
        yield {"place": place, "kind": "search", "state": state, "because": because}
    closing = next((body for body in reversed(bodies) if body["kind"] == CERTIFIED), None)
    exceptions = closing.get("exceptions", []) if closing is not None else []
    for each in exceptions if isinstance(exceptions, list) else []:
        if isinstance(each, dict):
            until = f", until {each['until']}" if each.get("until") else ""
            said = {"place": str(each["place"]), "kind": "exception", "state": str(each["outcome"])}
            yield {**said, "because": f"{each['basis']}{until}"}
