"""A whole erasure request in a ledger, from its receipt to its certificate, for the tests."""

from __future__ import annotations

from typing import Any

from ebbtide.ledger.certificate import Certificate, build
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.leaf import CERTIFICATE_KEY, CERTIFIED, VERIFIED, Logged, listing
from ebbtide.ledger.note import Note, Signer
from tests.ledger.forest import ORIGIN, MemoryLedger

REQUEST = "r-7f3c"
SECRET = "8841302-secret"


class Erasure:
    """A ledger that holds other entries too, and one request's in between."""

    def __init__(self, *, simulated: bool = False, signer: Signer | None = None) -> None:
        self.ledger = MemoryLedger(signer)
        self.signer = Signer.generate(f"{ORIGIN}/certificates")
        self.opening = Opening(
            REQUEST, new_key(), (Identifier("user_id", SECRET), Identifier("email", "é@example.org"))
        )
        self.stamp = {"simulated": True} if simulated else {}
        self.entries: list[Logged] = []
        self.minute = 0
        self.write("policy.changed")
        self.note(self.write(CERTIFICATE_KEY, key=self.signer.key.encode()))
        self.note(self.write("request.received", request=REQUEST, law="gdpr", due="2026-02-28T00:00:00.000000Z"))
        self.write("mark.added", dataset="lake.app.events", object="5551212121212121212")
        self.note(self.write("erase.deleted", requests=["r-other", REQUEST], files=3, version="9007199254740993"))
        self.verify("lake.app.users")

    def write(self, kind: str, **more: Any) -> Logged:
        self.minute += 1
        at = f"2026-01-31T06:{self.minute:02}:00.000000Z"
        return self.ledger.append({"v": 1, "kind": kind, "at": at, **self.stamp, **more})

    def note(self, entry: Logged) -> Logged:
        self.entries.append(entry)
        return entry

    def verify(self, place: str, *, found: int = 0, commitments: list[str] | None = None, **more: Any) -> None:
        self.note(
            self.write(
                VERIFIED,
                request=REQUEST,
                place=place,
                scanner="verify/1",
                inventory="sha256:" + "ab" * 32,
                commitments=list(self.opening.commitments()) if commitments is None else commitments,
                found=found,
                **more,
            )
        )

    def close(self, **changes: Any) -> Logged:
        closing: dict[str, Any] = {
            "request": REQUEST,
            "state": "certified",
            "commitments": list(self.opening.commitments()),
            "entries": changes.get("entries") or listing(self.entries),
        }
        return self.note(self.write(CERTIFIED, **{**closing, **changes}))

    def certificate(self, note: Note | None = None) -> Certificate:
        return build(self.entries, self.ledger.prove(self.entries[-1].leaf_index, note), self.signer)

    def trust(self, *witnesses: Signer) -> Trust:
        return Trust((TrustedKey(self.ledger.signer.key),), tuple(witness.key for witness in witnesses))


def closed(*, simulated: bool = False) -> Erasure:
    """A request that is certified, in a ledger that went on after it."""
    erasure = Erasure(simulated=simulated)
    erasure.close()
    erasure.write("hold.added", dataset="lake.app.events")
    return erasure
