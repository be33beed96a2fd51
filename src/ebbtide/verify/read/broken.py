"""Texts that were broken into lines wherever a line was full, put together again: base64, hex, and quoted-printable.

MIME has 76 characters of base64 in a line, PEM 64, and a mail ends a line that goes on with `=`. A value may stand
across the break, and only there. Breaks may be those of a text, or escaped as in JSON (`\\r\\n`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import hyperscan
import numpy as np
import numpy.typing as npt

_NEAR = 512
"""More than a line is long: breaks that are closer belong together, and so does what is before and behind them."""
_PACKED = rb"[A-Za-z0-9+/_-]"
_BREAKS = (rb"\r?\n", rb"\\r\\n", rb"\\n")
_EXPRESSIONS = [
    _PACKED + rb"{40}(?:" + b"|".join(_BREAKS) + rb")" + _PACKED,
    rb"[ -~\x80-\xff]{8}=(?:" + b"|".join(_BREAKS) + rb")[ -~\x80-\xff]",
]
_BREAK = re.compile(rb"=?(?:" + b"|".join(_BREAKS) + rb")")
_own = threading.local()


def unbroken(data: bytes | bytearray | memoryview, borders: npt.ArrayLike | None = None) -> Iterator[bytes]:
    """What stands around such breaks, without them. It may hold more of what is beside, but nothing across one of the
    borders: what stands on both sides of one are two values.
    """
    view, breaks = memoryview(data), list[int]()
    _database().scan(view, match_event_handler=lambda *hit: breaks.append(hit[2]))
    edges = np.asarray((0, len(view)) if borders is None else borders)
    first = last = cell = -1
    for end in breaks:
        at = int(np.searchsorted(edges, end - 1, side="right")) - 1
        if first >= 0 and (end - last > _NEAR or at != cell):
            yield _joined(view, first, last, edges, cell)
            first = end
        first, last, cell = first if first >= 0 else end, end, at
    if first >= 0:
        yield _joined(view, first, last, edges, cell)


def _joined(view: memoryview, first: int, last: int, edges: npt.NDArray[Any], cell: int) -> bytes:
    low, high = int(edges[cell]), int(edges[cell + 1])
    return _BREAK.sub(b"", bytes(view[max(low, first - _NEAR) : min(high, last + _NEAR)]))


def _database() -> Any:
    """One for each thread: it holds scratch space."""
    if not hasattr(_own, "database"):
        _own.database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        ids = list(range(len(_EXPRESSIONS)))
        _own.database.compile(expressions=_EXPRESSIONS, ids=ids, elements=len(ids), flags=[0] * len(ids))
    return _own.database
