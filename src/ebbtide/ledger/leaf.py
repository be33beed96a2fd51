"""What every ledger entry says, whatever its kind (spec §5).

| key | meaning |
|---|---|
| `v` | 1, the version of these rules |
| `kind` | what happened: lower-case words with dots and hyphens, `request.received` |
| `at` | when, in canonical time |
| `simulated` | `true` on a simulated clock, otherwise absent |
| `request` | the erasure request that it belongs to; absent when it belongs to none, or to several |
| `requests` | the requests that it belongs to, where one act serves several |

These kinds have a meaning for whoever checks a certificate; further keys are welcome on all of them:

- `certificate.key`: `key` is the verifier key that signs certificates.
- `request.verified`: at that time `scanner` read the objects of `inventory` in `place` for `commitments` and found
  `found`; `unread` of them it could not read (absent: none).
- `request.received`: `commitments` say whom `request` is about.
- `request.moved`: `state` is where the request went. Planned, deleted and purged are work on it, as acts are.
- `request.batch`: the same for many requests: `root` is that of a Merkle tree over `count` leaves of kind `of`, each of
  one request (`batch.py`).
- `request.listed`: `entries` lists earlier entries of a long request, each as `{"index": …, "leaf": "<hex>"}`.
- `request.certified`: the last entry of a request. `entries` lists its earlier ones, `state` says how it ended
  (`certified` or `certified with exceptions`), `commitments` whom it was about, `exceptions` what is left: each a
  `place`, an `outcome`, its `basis`, and until when. What one leaf cannot list, `request.listed` entries do, which it
  lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ebbtide.errors import InputError
from ebbtide.ledger.tree import HASH_BYTES, MAX_SIZE, leaf_hash
from ebbtide.model.canonical import Json, loads_canonical, parse_timestamp

VERSION = 1
CERTIFICATE_KEY = "certificate.key"
RECEIVED = "request.received"
MOVED = "request.moved"
VERIFIED = "request.verified"
BATCH = "request.batch"
LISTED = "request.listed"
CERTIFIED = "request.certified"

MAX_LISTED = 500
"""How many entries one entry can list and still stay below 60,000 bytes."""

OUTCOMES = {"retained": True, "expires": True, "held": False, "not reachable": False, "not readable": False}
"""How a place may end that is no clean one, and whether that has a date (spec §4). A hold is open-ended."""

Body: TypeAlias = dict[str, Json]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_KIND = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")


class Batched(NamedTuple):
    """A request's leaf in a batch: its index there, its exact bytes, and the hashes up to the root (`batch.py`)."""

    leaf_index: int
    leaf: bytes
    path: tuple[bytes, ...]


class LoggedEntry(NamedTuple):
    """An entry as the ledger holds it: its index and its exact bytes; of a batch with the leaf that counts."""

    leaf_index: int
    leaf: bytes
    batch: Batched | None = None

    @property
    def hash(self) -> bytes:
        """Its Merkle leaf hash."""
        return leaf_hash(self.leaf)


def read_body(leaf: bytes) -> Body:
    """The content of an entry; refused unless it is canonical and says what every entry must."""
    body = loads_canonical(leaf)
    if not isinstance(body, dict) or type(body.get("v")) is not int:
        raise InputError("not a ledger entry", hint="an object with v, kind and at")
    if body["v"] != VERSION:
        raise InputError(f"a ledger entry of version {body['v']}", hint=f"this Ebbtide reads version {VERSION}")
    kind, at = body.get("kind"), body.get("at")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InputError("a ledger entry without a kind", hint="lower-case words with dots and hyphens")
    if not isinstance(at, str):
        raise InputError("a ledger entry without a time", hint="every entry says when, in `at`")
    parse_timestamp(at)
    if body.get("simulated", True) is not True:
        raise InputError("a ledger entry whose `simulated` is not true", hint="on a real clock it is absent")
    requests_of(body)
    return body


def requests_of(body: Body) -> tuple[str, ...] | None:
    """The requests that an entry belongs to; None when it names none."""
    match body.get("request"), body.get("requests"):
        case None, None:
            return None
        case str(request), None:
            return (request,)
        case None, [*requests] if all(isinstance(request, str) for request in requests):
            return tuple(str(request) for request in requests)
    raise InputError("a ledger entry whose `request` or `requests` is not text", hint="one text, or a list of texts")


def listing(entries: Sequence[LoggedEntry]) -> list[Json]:
    """The `entries` of a listing entry, for entries that are in the ledger already."""
    if len(entries) > MAX_LISTED:
        raise InputError(
            f"{len(entries)} entries do not fit into one that lists them",
            hint=f"write `{LISTED}` entries of at most {MAX_LISTED}, and list those",
        )
    return [{"index": entry.leaf_index, "leaf": entry.hash.hex()} for entry in entries]


def listed_in(body: Body) -> dict[int, bytes]:
    """Leaf hashes by index, as a listing entry has them; empty for entries that list nothing."""
    if body["kind"] not in (LISTED, CERTIFIED):
        return {}
    found: dict[int, bytes] = {}
    items = body.get("entries")
    for item in items if isinstance(items, list) else [None]:
        match item:
            case {"index": int(index), "leaf": str(text), **rest} if not rest and index is not True:
                digest = hex_bytes(text)
                if 0 <= index <= MAX_SIZE and index not in found and len(digest) == HASH_BYTES:
                    found[index] = digest
                    continue
        raise InputError(
            f"a {body['kind']} entry with wrong `entries`", hint="each has an index, once, and a leaf hash of 32 bytes"
        )
    return found


def is_digest(text: str) -> bool:
    """Whether a text names an attachment."""
    return _DIGEST.fullmatch(text) is not None


def check_exception(place: str, outcome: str, basis: str, until: str | None) -> None:
    """Refuse an exception that does not say what is left where, why, and until when."""
    if outcome not in OUTCOMES or not place or not basis:
        raise InputError(
            "an exception without place, outcome and basis", hint=f"its outcome is one of {', '.join(OUTCOMES)}"
        )
    if OUTCOMES[outcome] and until is None:
        raise InputError(f"what is {outcome} has no date", hint="say until when, as YYYY-MM-DD")


def hex_bytes(text: str) -> bytes:
    """The bytes of lower-case hexadecimal text."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = None
    if data is None or data.hex() != text:
        raise InputError("not hexadecimal", hint="lower-case digits, two a byte")
    return data
