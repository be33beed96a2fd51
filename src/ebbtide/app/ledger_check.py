"""Check a certificate, the proof of one entry or an exported ledger from its files, offline (spec §5).

Whoever holds them has nothing else of Ebbtide's: no project, no database, no Spark. None of them is loaded, and of a
check only the kind that the file asks for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ebbtide.errors import EbbtideError, InputError
from ebbtide.ledger.certificate import MAX_BYTES
from ebbtide.ledger.check import CheckReport as CheckReport
from ebbtide.ledger.check import check
from ebbtide.ledger.keys import MAX_KEY_FILE_BYTES, Trust
from ebbtide.model.canonical import MAX_LEAF_BYTES

if TYPE_CHECKING:
    from ebbtide.ledger.commitment import Opening

_T = TypeVar("_T")
_PROOF = b"c2sp.org/tlog-proof@"


def check_file(
    path: str, key: str, *, entry: str | None = None, opening: str | None = None, simulated: bool = False
) -> CheckReport:
    """Check what lies at a path against the key file at another: a certificate, and what opens it if that is given; a
    tlog-proof with the entry that it is of; or the folder of an exported ledger.

    A file that cannot be read is a report without steps.
    """
    try:
        trust = _read(key, MAX_KEY_FILE_BYTES, Trust.parse)
        if os.path.isdir(path):  # noqa: PTH112 - importing pathlib would be a tenth of the whole start
            _only(opening, "--opening", "a certificate")
            _only(entry, "--entry", "a tlog-proof")
            return _check_folder(path, trust)
        data = _read(path, MAX_BYTES, bytes)
        if data.startswith(_PROOF):
            _only(opening, "--opening", "a certificate")
            return _check_proof(data, entry, trust, simulated=simulated)
        _only(entry, "--entry", "a tlog-proof")
        opened = None if opening is None else _read_opening(opening)
    except EbbtideError as error:
        return CheckReport((), error, None, None)
    return check(data, trust, opening=opened, simulated=simulated)


def _only(given: str | None, option: str, kind: str) -> None:
    if given is not None:
        raise InputError(f"{option} goes with {kind}, and this is none", hint="leave it out")


def _check_proof(data: bytes, entry: str | None, trust: Trust, *, simulated: bool) -> CheckReport:
    if entry is None:
        hint = "name the file of its bytes with --entry, as `ebbtide ledger entry N` prints them"
        raise InputError("a tlog-proof says nothing without its entry", hint=hint)
    from ebbtide.ledger.check_entry import check_entry

    return check_entry(data, _read(entry, MAX_LEAF_BYTES, bytes), trust, simulated=simulated)


def _check_folder(folder: str, trust: Trust) -> CheckReport:
    if not os.path.lexists(f"{folder}/checkpoint"):
        raise InputError("no checkpoint is in it", where=folder, hint="name a folder that `ebbtide ledger export` made")
    from ebbtide.ledger.check_export import check_export

    def read(name: str, limit: int) -> bytes | None:
        path = f"{folder}/{name}"
        if not os.path.lexists(path):
            return None
        content = _read(path, limit, bytes)
        if len(content) > limit:
            raise InputError(f"{name} has more than {limit} bytes", hint="it is none of a ledger's files")
        return content

    return check_export(read, trust)


def _read_opening(path: str) -> Opening:
    # Most checks have none, and it is the one part that needs more of the standard library.
    from ebbtide.ledger.commitment import MAX_OPENING_BYTES, Opening

    return _read(path, MAX_OPENING_BYTES, Opening.parse)


def _read(path: str, limit: int, parse: Callable[[bytes], _T]) -> _T:
    """What `parse` makes of a file, of which never more than one byte past the limit is read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib would be a tenth of the whole start
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise InputError(f"cannot be read: {reason}", where=path, hint="give the path of a file") from None
    try:
        return parse(data)
    except InputError as error:
        raise InputError(error.message, where=path, hint=error.hint) from None
