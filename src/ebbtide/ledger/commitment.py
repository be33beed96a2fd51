"""Commitments: the ledger names a person without naming them (spec §5).

A commitment is `HMAC-SHA256(k, type ‖ canonical value)` with a random k of 32 bytes per request. The value is text, so
its canonical form begins with a quotation mark, which a type cannot hold: type and value never run into each other.

Whoever has k can try out small identifiers, so k is never in the ledger or the certificate. It is in `opening.json`,
together with what it opens, for the person concerned and for an auditor: personal data, to be kept as such. Nothing
here prints it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ebbtide.errors import InputError
from ebbtide.ledger.leaf import hex_bytes
from ebbtide.model.canonical import dumps, loads_canonical

KEY_BYTES = 32
OPENING_FORMAT = "ebbtide-opening"
OPENING_VERSION = 1
MAX_OPENING_BYTES = 1_000_000


def new_key() -> bytes:
    """A fresh k, for one request."""
    return secrets.token_bytes(KEY_BYTES)


def commit(key: bytes, kind: str, value: str) -> str:
    """The commitment to one identifier, as the ledger holds it: hexadecimal text."""
    if len(key) != KEY_BYTES:
        raise InputError(f"a commitment's key that has not {KEY_BYTES} bytes", hint="use `new_key`")
    return hmac.digest(key, committed(kind, value), "sha256").hex()


def committed(kind: str, value: str) -> bytes:
    """Type and canonical value of an identifier: what a commitment is the keyed hash of."""
    if not kind or '"' in kind or not kind.isascii():
        raise InputError("a type of subject is ASCII text without quotation marks", hint="such as user_id")
    return kind.encode() + dumps(value)


@dataclass(frozen=True, slots=True, repr=False)
class Identifier:
    """One identifier of a subject. It shows its type only."""

    type: str
    value: str

    def __repr__(self) -> str:
        return f"{self.type}=<hidden>"


@dataclass(frozen=True, slots=True)
class Searched:
    """A search for a person: the digest of the inventory that it read, and the key of the paths in there.

    With it an auditor who has access tells which line is which object.
    """

    inventory: str
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Opening:
    """What opens a request's commitments and the inventories of its searches. It shows none of it.

    `resolved` are further identifiers of the same person, which tables of identities gave: an erasure removes these
    rows, and what is looked for afterwards must not be less.
    """

    request: str
    key: bytes
    identifiers: tuple[Identifier, ...]
    searches: tuple[Searched, ...] = ()
    resolved: tuple[Identifier, ...] = ()

    def __repr__(self) -> str:
        return f"Opening(request={self.request!r}, {len(self.identifiers)} identifiers)"

    @property
    def everything(self) -> tuple[Identifier, ...]:
        """All that is known of the person."""
        return (*self.identifiers, *self.resolved)

    def knowing(self, person: Iterable[Identifier]) -> Opening:
        """The same with whatever of these was not known."""
        fresh = {one for one in person if one not in self.everything}
        return replace(self, resolved=(*self.resolved, *sorted(fresh, key=lambda one: (one.type, one.value))))

    def commitments(self) -> tuple[str, ...]:
        """The commitments, in the identifiers' order."""
        return tuple(commit(self.key, identifier.type, identifier.value) for identifier in self.identifiers)

    def encode(self) -> bytes:
        """The content of `opening.json`."""
        texts = [committed(each.type, each.value) for each in self.identifiers]
        return encode_opening(self.request, self.key, self.identifiers, texts, self.searches, self.resolved)

    @classmethod
    def parse(cls, data: bytes) -> Opening:
        """Read an `opening.json`. Its errors show none of it."""
        match loads_canonical(data, limit=MAX_OPENING_BYTES):
            case {"format": str(found), "v": version} if (found, version) != (OPENING_FORMAT, OPENING_VERSION):
                raise InputError(f"not an {OPENING_FORMAT} of version {OPENING_VERSION}", hint="give the opening.json")
            case {"request": str(request), "key": str(key), "identifiers": [_, *_] as items, **more}:
                searches, resolved = more.get("searches", []), more.get("resolved", [])
                opening = cls(
                    request,
                    hex_bytes(key),
                    tuple(_identifier(item) for item in items),
                    tuple(_searched(item) for item in searches) if isinstance(searches, list) else (),
                    tuple(_identifier(item) for item in resolved) if isinstance(resolved, list) else (),
                )
                # Written again it must be the same, so nothing in the file goes unread; and it must open something.
                if opening.encode() == data and opening.commitments():
                    return opening
        raise InputError("not an opening", hint="format, v, request, key and at least one identifier")


def encode_opening(
    request: str,
    key: bytes,
    identifiers: Sequence[Identifier],
    texts: Sequence[bytes],
    searches: Sequence[Searched] = (),
    resolved: Sequence[Identifier] = (),
) -> bytes:
    """The content of `opening.json`, put together from what is `committed`: there may be a million to write."""
    items = [
        b'{"type":%b,"value":%b}' % (_quoted(each.type), text[len(each.type) :])
        for each, text in zip(identifiers, texts, strict=True)
    ]
    said = [{"inventory": each.inventory, "key": each.key.hex()} for each in searches]
    also = [{"type": each.type, "value": each.value} for each in resolved]
    more = b',"resolved":' + dumps(also) if also else b""
    more += b',"searches":' + dumps(said) if said else b""
    return b'{"format":"%b","identifiers":[%b],"key":"%b","request":%b%b,"v":%d}' % (
        OPENING_FORMAT.encode(),
        b",".join(items),
        key.hex().encode(),
        dumps(request),
        more,
        OPENING_VERSION,
    )


@lru_cache(maxsize=256)
def _quoted(kind: str) -> bytes:
    return dumps(kind)


def _searched(item: object) -> Searched:
    match item:
        case {"inventory": str(inventory), "key": str(key), **rest} if not rest:
            return Searched(inventory, hex_bytes(key))
    raise InputError("a search of the opening cannot be read", hint="it has an inventory and a key, both text")


def _identifier(item: object) -> Identifier:
    match item:
        case {"type": str(kind), "value": str(value), **rest} if not rest:
            return Identifier(kind, value)
    raise InputError("an identifier of the opening cannot be read", hint="it has a type and a value, both text")
