"""JSON objects that have a key more than once: parsers keep the last value, and the others stand in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_EARLIER = ""


def all_values(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object as parsers make it, with what else a key of it had as a list under a name that no format has."""
    last = dict(pairs)
    if len(last) == len(pairs):
        return last
    ends = {name: n for n, (name, _) in enumerate(pairs)}
    earlier = [value for n, (name, value) in enumerate(pairs) if ends[name] != n]
    last[_EARLIER] = [*earlier, last.get(_EARLIER)]
    return last
