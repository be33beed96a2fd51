"""Attachments: lists of files that are too long for a leaf, kept beside the log under the hash of their content.

A leaf holds `sha256:<hex>`, so whoever has the content can prove that it is the one that was meant. Content is kept
in parts, so that a list of millions of files is never one row, and as it is: every byte of it is under the hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator

from sqlalchemy import Connection, delete, select

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.entries import Files
from ebbtide.state.bulk import insert_rows
from ebbtide.state.tables import ledger_attachments

_PART_BYTES = 1024 * 1024
_PAGE = 500


def attach(connection: Connection, content: Iterable[bytes]) -> str:
    """Keep content; gives its digest. The same content is kept once."""
    digest = hashlib.sha256()
    parts, waiting = [], bytearray()
    for piece in content:
        digest.update(piece)
        waiting += piece
        if len(waiting) >= _PART_BYTES:
            parts.append(bytes(waiting))
            waiting.clear()
    parts.append(bytes(waiting))
    name = f"sha256:{digest.hexdigest()}"
    if not kept(connection, [name]):
        insert_rows(connection, ledger_attachments, [(name, number, part) for number, part in enumerate(parts)])
    return name


def attach_files(connection: Connection, files: Iterable[tuple[str, int]]) -> Files:
    """Keep a list of paths with their sizes, in the order given: a path and a size a line, tab between them."""
    count = total = 0

    def lines() -> Iterator[bytes]:
        nonlocal count, total
        for path, size in files:
            if "\n" in path or "\t" in path:
                raise InputError("a path with a newline or a tab cannot be listed", hint="percent-encode it")
            count, total = count + 1, total + size
            yield f"{path}\t{size}\n".encode()

    digest = attach(connection, lines())
    return Files(count=count, bytes=total, digest=digest)


def attachment(connection: Connection, digest: str) -> Iterator[bytes]:
    """The content, part by part. It is refused, at its end, when it is not what the digest says."""
    parts = ledger_attachments.c
    query = select(parts.part, parts.body).where(parts.digest == digest).order_by(parts.part)
    found, number = hashlib.sha256(), 0
    for row in connection.execute(query):
        if row.part != number or not isinstance(row.body, bytes):
            raise ProofError(f"attachment {digest}", expected=f"part {number}", found=f"part {row.part}")
        number += 1
        found.update(row.body)
        yield row.body
    if not number:
        raise InputError(f"no attachment {digest}", hint="it was pruned, or never kept")
    if f"sha256:{found.hexdigest()}" != digest:
        raise ProofError("attachment", expected=digest, found=f"sha256:{found.hexdigest()}")


def kept(connection: Connection, digests: Collection[str] | None = None) -> set[str]:
    """Which of these are kept; all that are, when none are given."""
    query = select(ledger_attachments.c.digest).distinct()
    if digests is None:
        return set(connection.execute(query).scalars())
    wanted, found = sorted(digests), set[str]()
    for start in range(0, len(wanted), _PAGE):
        page = query.where(ledger_attachments.c.digest.in_(wanted[start : start + _PAGE]))
        found.update(connection.execute(page).scalars())
    return found


def detach(connection: Connection, digests: Iterable[str]) -> None:
    """Remove content that no entry refers to any more."""
    for digest in digests:
        connection.execute(delete(ledger_attachments).where(ledger_attachments.c.digest == digest))
