"""Layout 9: requests by the thousand. Where each one's key lies, how it is found, and which entries it is made of."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, text

_PAGE = 2048
_ROWS = text(
    "INSERT INTO ledger_requests (entry, place, request, leaf_hash, leaf) VALUES (:entry, :place, :request, NULL, NULL)"
)
_KEYS = text("INSERT INTO ledger_certificate_keys (entry, key) VALUES (:entry, :key)")


def fill(connection: Connection) -> None:
    """Index the entries that are there, as an append would have. What cannot be read is found by the audit."""
    start = 0
    query = text("SELECT idx, body FROM ledger_entries WHERE idx >= :start ORDER BY idx LIMIT :page")
    while page := connection.execute(query, {"start": start, "page": _PAGE}).all():
        rows: list[dict[str, Any]] = []
        for index, body in page:
            said = _read(body)
            rows += [
                {"entry": index, "place": place, "request": request} for place, request in enumerate(_requests(said))
            ]
            if said.get("kind") == "certificate.key" and isinstance(said.get("key"), str):
                connection.execute(_KEYS, {"entry": index, "key": said["key"]})
        if rows:
            connection.execute(_ROWS, rows)
        start = page[-1][0] + 1


def _read(body: object) -> dict[str, Any]:
    try:
        found = json.loads(bytes(body)) if isinstance(body, bytes | memoryview) else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _requests(said: dict[str, Any]) -> list[str]:
    named = [said["request"]] if "request" in said else said.get("requests")
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


STATEMENTS = (
    "ALTER TABLE requests ADD COLUMN key_slot {count}",
    "CREATE INDEX requests_key_slot ON requests (key_slot)",
    # Closed, and its key not destroyed yet: none, unless a process died in between.
    "CREATE INDEX requests_left_keys ON requests (id) WHERE sealed IS NULL AND key_slot IS NOT NULL",
    # Filed before there were slots: its key is a file, until the next filing.
    "CREATE INDEX requests_key_files ON requests (id) WHERE sealed IS NOT NULL AND key_slot IS NULL",
    """
    CREATE TABLE request_lookups (
        digest {binary} NOT NULL,
        request TEXT NOT NULL REFERENCES requests (id),
        PRIMARY KEY (digest, request)
    )
    """,
    "CREATE INDEX request_lookups_request ON request_lookups (request)",
    "CREATE TABLE lookup_keys (id {count} NOT NULL PRIMARY KEY, fingerprint {binary} NOT NULL)",
    """
    CREATE TABLE ledger_requests (
        entry {count} NOT NULL,
        place {count} NOT NULL,
        request TEXT NOT NULL,
        leaf_hash {binary},
        leaf {binary},
        PRIMARY KEY (entry, place)
    )
    """,
    "CREATE INDEX ledger_requests_request ON ledger_requests (request)",
    "CREATE TABLE ledger_certificate_keys (entry {count} NOT NULL PRIMARY KEY, key TEXT NOT NULL)",
    fill,
)
