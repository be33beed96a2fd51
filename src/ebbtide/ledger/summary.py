"""What a certificate says to people: computed from its entries and its proof, by the issuer and again by `check`.

Nothing here is believed or decided. Every value of every entry is shown, so a summary cannot leave out the one that
matters; lists that are long are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ebbtide.errors import InputError
from ebbtide.ledger.leaf import CERTIFIED, LISTED, VERIFIED, Body, LoggedEntry
from ebbtide.ledger.note import Note
from ebbtide.model.canonical import Json, dumps, timestamp

ASSERTED = "asserted"
WITNESSED = "witnessed"

_LONG_LIST = 8
_HEADER = frozenset({"v", "kind", "at", "simulated", "request", "requests"})
_COSIGNATURE_BYTES = 72


def summarise(entries: Sequence[LoggedEntry], bodies: Sequence[Body], note: Note) -> dict[str, Json]:
    """The summary of a request's entries, the last of which certifies it; `bodies` are what they say of it."""
    last = bodies[-1]
    summary: dict[str, Json] = {
        "title": f"Erasure request {last['request']}: {last['state']}",
        "certified_at": last["at"],
        "commitments": last["commitments"],
        "time": claimed_time(note),
        "story": [
            f"{entry.leaf_index}: {_sentence(body)}" for entry, body in zip(entries, bodies, strict=True)
        ],
    }  # fmt: skip
    if any("simulated" in body for body in bodies):
        summary["simulated"] = True
    return summary


def claimed_time(note: Note) -> dict[str, Json]:
    """Who vouches for the time of a checkpoint by its own account: witnesses, or only the ledger itself."""
    origin = note.text.partition("\n")[0]
    witnesses: list[Json] = [
        {"name": item.name, "key": item.key_hash.hex(), "at": moment(int.from_bytes(item.signature[:8]))}
        for item in note.signatures
        if item.name != origin and len(item.signature) == _COSIGNATURE_BYTES
    ]
    return {"kind": WITNESSED, "witnesses": witnesses} if witnesses else {"kind": ASSERTED, "by": origin}


def moment(seconds: int) -> str:
    """A witness's time as canonical text."""
    try:
        return timestamp(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        raise InputError("a cosignature from beyond the year 9999", hint="the witness's clock is wrong") from None


def _sentence(body: Body) -> str:
    details = dict(body)
    start = f"{body['at']} {body['kind']}"
    if body["kind"] == VERIFIED:
        claim = [details.pop(key, "?") for key in ("scanner", "inventory", "place", "commitments", "found")]
        scanner, inventory, place, commitments, found = map(_text, claim)
        start += f": scanner {scanner} read the objects of inventory {inventory} in {place} for {commitments}"
        start += f" and found {found}"
    elif body["kind"] in (LISTED, CERTIFIED):
        items = details.pop("entries", None)
        start += f": lists {len(items) if isinstance(items, list) else '?'} entries"
    rest = "; ".join(f"{key} {_text(value)}" for key, value in sorted(details.items()) if key not in _HEADER)
    return f"{start}; {rest}" if rest and ": " in start else f"{start}: {rest}" if rest else start


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if len(value) > _LONG_LIST:
            return f"{len(value)} items"
        return ", ".join(map(_text, value)) or "none"
    return dumps(value).decode()
