"""Layout 5: the ledger's stored hashes on every fourth level, where layouts before it had every eighth."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import Connection, text

_NEW = (4, 12, 20, 28, 36, 44, 52, 60)
_WIDTH = 16
_PAGE = 16_384


def fill(connection: Connection) -> None:
    """Compute the levels between from the ones below them, as an append would have. What has a gap is left as it is."""
    for height in _NEW:
        below = "SELECT idx, leaf_hash FROM ledger_entries"
        if height > 4:
            below = f"SELECT idx, hash FROM ledger_nodes WHERE height = {height - 4}"  # noqa: S608
        start, made = 0, False
        while page := _page(connection, below, start):
            whole = range(0, len(page) - _WIDTH + 1, _WIDTH)
            rows = [
                {"height": height, "idx": (start + first) // _WIDTH, "hash": _root(page[first : first + _WIDTH])}
                for first in whole
            ]
            if rows:
                made = True
                connection.execute(text("INSERT INTO ledger_nodes VALUES (:height, :idx, :hash)"), rows)
            if len(page) < _PAGE:
                break
            start += _PAGE
        if not made:
            return


def _page(connection: Connection, below: str, start: int) -> list[bytes]:
    """The hashes from `start` on, up to the end of the page or the first gap."""
    inside = f"{below} {'AND' if 'WHERE' in below else 'WHERE'} idx >= :start AND idx < :end ORDER BY idx"
    found = connection.execute(text(inside), {"start": start, "end": start + _PAGE}).all()
    return [bytes(row[1]) for place, row in enumerate(found) if row[0] == start + place]


def _root(hashes: list[bytes]) -> bytes:
    while len(hashes) > 1:
        hashes = [sha256(b"\x01" + one + two).digest() for one, two in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


STATEMENTS = (fill,)
