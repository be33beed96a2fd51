"""Check a certificate from its files, offline (spec §5).

Whoever holds a certificate has nothing else of Ebbtide's: no project, no database, no Spark. None of them is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ebbtide.errors import EbbtideError, InputError
from ebbtide.ledger.certificate import MAX_BYTES
from ebbtide.ledger.check import Report as Report
from ebbtide.ledger.check import check
from ebbtide.ledger.keys import MAX_KEY_FILE_BYTES, Trust

if TYPE_CHECKING:
    from ebbtide.ledger.commitment import Opening

_T = TypeVar("_T")


def check_certificate(certificate: str, key: str, *, opening: str | None = None, simulated: bool = False) -> Report:
    """Check the certificate at a path against the key file at another, and what opens it if that is given.

    A file that cannot be read is a report without steps.
    """
    try:
        trust = _read(key, MAX_KEY_FILE_BYTES, Trust.parse)
        opened = None if opening is None else _read_opening(opening)
        data = _read(certificate, MAX_BYTES, bytes)
    except EbbtideError as error:
        return Report((), error, None, None)
    return check(data, trust, opening=opened, simulated=simulated)


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
