"""Canonical bytes: the one JSON text that a value has (RFC 8785 under the rules of spec §5).

Ebbtide hashes and signs JSON, so a value must have exactly one text. Of RFC 8785 only the part is admitted on which
every implementation agrees:

- keys are ASCII, so sorting by bytes, by code points and by UTF-16 units is the same;
- numbers are integers of at most 2^53 - 1 either way; 64-bit ids are strings; floats are refused;
- there is no null: a key that has no value is left out;
- strings are Unicode without lone surrogates, kept as they are (never normalised);
- times are text, `YYYY-MM-DDTHH:MM:SS.ffffffZ` (see `timestamp`), bytes are base64 or hexadecimal text.

Inside this part the standard library's encoder writes what RFC 8785 asks for, once the value is admitted. Errors name
the nearest key and never a value: values can be personal data.
"""

from __future__ import annotations

import binascii
import json
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

from ebbtide.errors import InputError

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json]"

MAX_LEAF_BYTES = 60_000
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64

_LONGEST_INTEGER = len(str(-MAX_INTEGER))
_quoted = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def dumps(value: object) -> bytes:
    """The canonical bytes of a value made of dicts, lists, tuples, strings, integers and booleans."""
    if type(value) is not str:
        _admit(value, "the value", 0)
    try:
        return (_quoted(value) if type(value) is str else _encode(value)).encode()
    except UnicodeEncodeError:
        raise InputError("a string holds a lone surrogate", hint="canonical JSON takes valid Unicode only") from None


def dumps_leaf(entry: dict[str, Any]) -> bytes:
    """The canonical bytes of a ledger entry: an object of at most 60,000 bytes."""
    leaf = dumps(entry)
    if len(leaf) > MAX_LEAF_BYTES:
        raise InputError(
            f"a ledger entry has {len(leaf)} bytes, more than {MAX_LEAF_BYTES}",
            hint="lists of files are attachments; the entry holds their hash",
        )
    return leaf


def loads_canonical(data: bytes, *, limit: int = MAX_LEAF_BYTES) -> Json:
    """The value of canonical bytes; whatever is not byte for byte what `dumps` writes is refused."""
    if len(data) > limit:
        raise InputError(f"too long: more than {limit} bytes", hint="this is not something that Ebbtide wrote")
    try:
        value: Json = _decoder.decode(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", hint="canonical JSON is UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at character {error.pos}", hint="it was changed or cut") from None
    except RecursionError:
        raise InputError(f"nested deeper than {MAX_DEPTH} levels", hint="Ebbtide never writes that") from None
    if dumps(value) != data:
        raise InputError(
            "not canonical JSON: the same value has another text",
            hint="keys are sorted, without spaces, escapes only where RFC 8785 writes them, and no newline at the end",
        )
    return value


def timestamp(moment: datetime) -> str:
    """A moment as canonical text, in UTC with microseconds. A moment without a time zone is refused."""
    if moment.tzinfo is None:
        raise InputError("a time has no time zone", hint="Ebbtide counts in UTC; pass an aware datetime")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_timestamp(text: str) -> datetime:
    """The moment of a canonical time; any other way of writing it is refused."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and timestamp(moment) == text:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InputError("not a canonical time", hint="write it as YYYY-MM-DDTHH:MM:SS.ffffffZ")


def base64_text(data: bytes) -> str:
    """Bytes as standard base64 with padding (RFC 4648, section 4)."""
    return binascii.b2a_base64(data, newline=False).decode()


def base64_bytes(text: str) -> bytes:
    """The bytes of standard base64; of the texts that decode alike only the one that `base64_text` writes is taken."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        data = None
    # Unused bits of the last character could carry anything: without this, changed text would mean the same bytes.
    if data is None or base64_text(data) != text:
        raise InputError("not base64", hint="standard alphabet, with padding, without spaces")
    return data


def _admit(value: object, key: str, depth: int) -> None:
    # Exact types first: this walk is on the path of every append.
    kind = type(value)
    if kind is str or kind is bool:
        return
    if kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
            raise InputError(f"{key}: an integer beyond 2^53 - 1", hint="write 64-bit ids as strings")
    elif depth >= MAX_DEPTH:
        raise InputError(f"{key}: nested deeper than {MAX_DEPTH} levels", hint="flatten it")
    elif kind is dict:
        for name, inner in value.items():  # type: ignore[attr-defined]
            if not isinstance(name, str) or not name.isascii():
                raise InputError(f"{key}: a key that is not ASCII text", hint="put the name into a value")
            _admit(inner, name, depth + 1)
    elif kind is list or kind is tuple:
        for inner in value:  # type: ignore[attr-defined]
            _admit(inner, key, depth + 1)
    elif value is None:
        raise InputError(f"{key}: null", hint="leave out a key that has no value")
    elif not isinstance(value, str):
        raise InputError(f"{key}: {kind.__name__} has no canonical form", hint="use text, integers and booleans")


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise InputError("an integer beyond 2^53 - 1", hint="64-bit ids are strings")
    return int(text)


def _refuse_number(_: str) -> NoReturn:
    raise InputError("a number that is not an integer", hint="floats, NaN and infinities have no canonical form")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InputError("a key occurs twice in one object", hint="readers would disagree on which one counts")
    return found


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_refuse_number, parse_constant=_refuse_number
)
