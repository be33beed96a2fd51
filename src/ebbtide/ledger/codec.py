"""How entries become leaves and come back (spec §5).

A field that has no value is left out of the leaf, and `decode` takes back exactly what `encode` wrote: so every leaf
has one entry, and every entry one leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from ebbtide.errors import InputError
from ebbtide.ledger.leaf import VERSION, read_body
from ebbtide.model.canonical import Json, dumps_leaf, parse_timestamp, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened. `at` is the time of the clock that counts, which may be a simulated one (spec §2)."""

    KIND: ClassVar[str]
    LASTING: ClassVar[bool] = False
    """Whether the entry outlives the ledger's own retention."""

    at: datetime
    simulated: bool = False

    def encode(self) -> bytes:
        """The entry's canonical bytes: the Merkle leaf."""
        body: dict[str, Any] = {"v": VERSION, "kind": self.KIND}
        own: Any = type(self)
        for name in _hints(own):
            value = getattr(self, name)
            if value is not None and value != () and value is not False:
                body[name] = value if type(value) is str or type(value) is int else _to_json(value)
        return dumps_leaf(body)


EntryT = TypeVar("EntryT", bound=Entry)


def decode(data: bytes, kinds: dict[str, type[EntryT]]) -> EntryT:
    """The entry of a leaf; refused unless it is exactly what this version would write for it."""
    body = read_body(data)
    kind = kinds.get(str(body.pop("kind")))
    if kind is None:
        raise InputError("a ledger entry of a kind that is not known", hint="a newer Ebbtide wrote it")
    del body["v"]
    entry: EntryT = _from_json(kind, body)
    if entry.encode() != data:
        raise InputError(f"a {kind.KIND} entry that is not what Ebbtide writes for it", hint="an empty or false value")
    return entry


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if is_dataclass(value):
        said = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: _to_json(item) for name, item in said.items() if item is not None}
    return value


def _from_json(kind: Any, value: Json) -> Any:
    """A value of this type; anything else, even an integer for a flag, is refused."""
    options = [option for option in get_args(kind) if option is not type(None)]
    if kind is datetime and isinstance(value, str):
        return parse_timestamp(value)
    if kind is date and isinstance(value, str):
        return _parse_day(value)
    if kind in (str, int, bool) and type(value) is kind:
        return value
    if is_dataclass(kind) and isinstance(value, dict):
        return _from_object(kind, value)
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_from_json(options[0], item) for item in value)
    if len(options) == 1 and get_origin(kind) is not tuple:
        return _from_json(options[0], value)
    raise InputError("a ledger entry with a value of a wrong type", hint="see the kinds in `entries.py`")


def _from_object(kind: Any, value: dict[str, Json]) -> Any:
    hints = _hints(kind)
    if unknown := value.keys() - hints.keys():
        raise InputError(f"a ledger entry with the unknown key {min(unknown)}", hint="a newer Ebbtide wrote it")
    values = {name: _from_json(hints[name], item) for name, item in value.items()}
    try:
        return kind(**values)
    except TypeError:
        raise InputError("a ledger entry without a key that its kind needs") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The fields' types by name, in their order."""
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}


def _parse_day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise InputError("not a day in a ledger entry", hint="YYYY-MM-DD")
    return day
