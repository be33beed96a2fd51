"""What of a person's values a ledger gives away: in clear, or to whoever hashes guesses (spec §5)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy import select

from ebbtide.app.ledger import export
from ebbtide.ledger.ledger import Ledger
from ebbtide.state.tables import metadata


def everything(ledger: Ledger, folder: Path) -> bytes:
    """All that lies in the ledger's tables, and all that it exports, one value a line."""
    parts: list[bytes] = []
    with ledger.database.reader() as state:
        for table in metadata.sorted_tables:
            if table.name.startswith("ledger_"):
                for row in state.connection.execute(select(table)):
                    parts += [value if isinstance(value, bytes) else str(value).encode() for value in row]
    export(ledger, folder)
    parts += [part for file in sorted(folder.rglob("*")) if file.is_file() for part in (bytes(file), file.read_bytes())]
    return b"\n".join(parts)


def in_clear(content: bytes, values: Iterable[str]) -> list[str]:
    """Those of the values that stand there. Digits inside of a longer hexadecimal text are none."""
    return [v for v in values if re.search(rb"(?<![0-9a-f])" + re.escape(v.encode()) + rb"(?![0-9a-f])", content)]


def by_guessing(content: bytes, guesses: Iterable[str]) -> list[str]:
    """Those of the guesses whose hash stands there, without a key."""
    return [guess for guess in guesses if any(form in content for form in _hashes(guess))]


def _hashes(guess: str) -> Iterator[bytes]:
    digest = hashlib.sha256(guess.encode()).digest()
    yield digest
    yield digest.hex().encode()
    yield base64.b64encode(digest)
    yield base64.urlsafe_b64encode(digest).rstrip(b"=")
