"""Requests by the thousand: inserted together, and found by keyed hashes of whom they are about.

A hash is HMAC under a key that lies with the requests' keys, so the database alone tells nobody who asked for what. Its
rows go when a request closes: whoever has that key could otherwise ask for ever whether somebody once made a request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import cache

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from ebbtide.errors import InputError
from ebbtide.model.canonical import timestamp
from ebbtide.state import tables
from ebbtide.state.bulk import insert_rows
from ebbtide.state.reader import request_of_row
from ebbtide.state.values import NEXT_STATES, Request, RequestState

_PAGE = 5000
_HOLDERS = """
    SELECT request_lookups.digest, requests.id, requests.law
    FROM request_lookups JOIN requests ON requests.id = request_lookups.request
    WHERE requests.closed_at IS NULL AND request_lookups.digest IN
"""


def insert_requests(connection: Connection, requests: Sequence[Request], digests: Sequence[Collection[bytes]]) -> None:
    """Keep new requests, each with the keyed hashes of its identifiers."""
    text = cache(timestamp)  # they share most of their times
    insert_rows(connection, tables.requests, [_row(request, text) for request in requests])
    lookups = [(one, request.id) for request, each in zip(requests, digests, strict=True) for one in each]
    insert_rows(connection, tables.request_lookups, sorted(lookups))  # in the order of their index


def add_lookups(connection: Connection, request: str, digests: Iterable[bytes]) -> None:
    """Let a request be found that was filed before there were lookups."""
    insert_rows(connection, tables.request_lookups, [(one, request) for one in sorted(digests)])


def drop_lookups(connection: Connection, request: str) -> None:
    """A request is closed: nobody looks it up any more."""
    connection.execute(delete(tables.request_lookups).where(tables.request_lookups.c.request == request))


def holders(connection: Connection, digests: Collection[bytes]) -> dict[bytes, list[tuple[str, str]]]:
    """The open requests, with their laws, by the hashes that they have of these."""
    wanted, found = sorted(digests), dict[bytes, list[tuple[str, str]]]()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    for start in range(0, len(wanted), _PAGE):
        page = wanted[start : start + _PAGE]
        # By the driver, as in `bulk.py`: SQLAlchemy's own way costs more than the lookups do.
        query = f"{_HOLDERS} ({', '.join([mark] * len(page))})"
        for digest, request, law in connection.exec_driver_sql(query, tuple(page)):
            found.setdefault(bytes(digest), []).append((request, law))
    return found


def requests_by_id(connection: Connection, ids: Sequence[str]) -> list[Request]:
    """Requests in the order of their ids; one that is not there is bad input."""
    found = dict[str, Request]()
    for start in range(0, len(ids), _PAGE):
        query = select(tables.requests).where(tables.requests.c.id.in_(ids[start : start + _PAGE]))
        found |= {row["id"]: _request(row) for row in connection.execute(query).mappings()}
    if missing := [one for one in ids if one not in found]:
        raise InputError(f"there is no request {missing[0]}", hint="`erase list` shows them")
    return [found[one] for one in ids]


def set_states(connection: Connection, ids: Iterable[str], state: RequestState, *, at: datetime) -> None:
    """Move open requests to an open state that may follow theirs (`values.after_search` knows it)."""
    assert NEXT_STATES[state]
    table = tables.requests
    rows = [{"moved": one} for one in ids]
    if rows:
        connection.execute(
            update(table).where(table.c.id == bindparam("moved")).values(state=state, updated_at=at), rows
        )


def reseal(connection: Connection, sealed: Iterable[tuple[str, bytes]]) -> None:
    """What is known of people has grown; it is sealed under the same keys."""
    table = tables.requests
    rows = [{"one": request, "content": content} for request, content in sealed]
    if rows:
        connection.execute(
            update(table).where(table.c.id == bindparam("one")).values(sealed=bindparam("content")), rows
        )


def known_ids(connection: Connection, ids: Collection[str]) -> set[str]:
    """Those of the ids that are requests."""
    wanted, found = sorted(ids), set[str]()
    for start in range(0, len(wanted), _PAGE):
        query = select(tables.requests.c.id).where(tables.requests.c.id.in_(wanted[start : start + _PAGE]))
        found.update(connection.execute(query).scalars())
    return found


def last_slot(connection: Connection) -> tuple[int, str] | None:
    """The last slot that a request refers to, with its id; None where none does."""
    table = tables.requests.c
    query = select(table.key_slot, table.id).where(table.key_slot.is_not(None)).order_by(table.key_slot.desc()).limit(1)
    return next(((row.key_slot, row.id) for row in connection.execute(query)), None)


def left_keys(connection: Connection) -> list[tuple[int, str]]:
    """Slots and ids of closed requests whose keys nobody destroyed yet."""
    table = tables.requests.c
    query = select(table.key_slot, table.id).where(table.sealed.is_(None), table.key_slot.is_not(None))
    return [(row.key_slot, row.id) for row in connection.execute(query)]


def with_key_files(connection: Connection) -> list[Request]:
    """Requests from before there were slots: the key of each is a file of its own."""
    table = tables.requests.c
    query = select(tables.requests).where(table.sealed.is_not(None), table.key_slot.is_(None))
    return [_request(row) for row in connection.execute(query).mappings()]


def set_slot(connection: Connection, request: str, slot: int | None) -> None:
    """Where a request's key lies now; None when it was destroyed."""
    connection.execute(update(tables.requests).where(tables.requests.c.id == request).values(key_slot=slot))


def fingerprint(connection: Connection) -> bytes | None:
    """Which key the lookups were made with; None before the first one."""
    found: bytes | None = connection.execute(select(tables.lookup_keys.c.fingerprint)).scalar_one_or_none()
    return None if found is None else bytes(found)


def keep_fingerprint(connection: Connection, found: bytes) -> None:
    """Keep which key the lookups are made with, once."""
    connection.execute(insert(tables.lookup_keys), [{"id": 1, "fingerprint": found}])


def _request(row: RowMapping) -> Request:
    return request_of_row({name: row[name] for name in Request.__dataclass_fields__})


def _row(request: Request, text: Callable[[datetime], str]) -> tuple[object, ...]:
    return (
        request.id,
        request.law,
        str(request.state),
        '["' + '", "'.join(request.commitments) + '"]',  # digits, as `Texts` writes them
        request.sealed,
        request.note,
        request.salt,
        text(request.received_at),
        text(request.due_at),
        None,
        text(request.updated_at),
        None,
        request.key_slot,
    )
