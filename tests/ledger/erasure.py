"""A whole erasure request in a ledger, from its receipt to its certificate, for the tests."""

from __future__ import annotations

from typing import Any

from ebbtide.ledger.batch import Tree
from ebbtide.ledger.certificate import Certificate, build
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.leaf import BATCH, CERTIFICATE_KEY, CERTIFIED, RECEIVED, VERIFIED, Batched, LoggedEntry, listing
from ebbtide.ledger.note import Note, Signer
from ebbtide.ledger.tree import leaf_hash
from ebbtide.model.canonical import dumps_leaf
from tests.ledger.forest import ORIGIN, MemoryLedger

REQUEST = "r-7f3c"
SECRET = "8841302-secret"


class Erasure:
    """A ledger that holds other entries too, and one request's in between."""

    def __init__(self, *, simulated: bool = False, signer: Signer | None = None, batched: bool = False) -> None:
        self.ledger = MemoryLedger(signer)
        self.signer = Signer.generate(f"{ORIGIN}/certificates")
        self.opening = Opening(
            REQUEST, new_key(), (Identifier("user_id", SECRET), Identifier("email", "é@example.org"))
        )
        self.stamp = {"simulated": True} if simulated else {}
        self.entries: list[LoggedEntry] = []
        self.minute = 0
        self.write("policy.changed")
        self.note(self.write(CERTIFICATE_KEY, key=self.signer.key.encode()))
        self.receive(batched=batched)
        self.write("mark.added", dataset="lake.app.events", object="5551212121212121212")
        self.note(self.write("erase.deleted", requests=["r-other", REQUEST], files=3, version="9007199254740993"))
        self.verify("lake.app.users")

    def receive(self, *, batched: bool = False) -> None:
        """The receipt: an entry of its own, or a leaf among those of others."""
        said = {"request": REQUEST, "law": "gdpr", "due_at": "2026-02-28T00:00:00.000000Z"}
        said["commitments"] = list(self.opening.commitments())  # type: ignore[assignment]
        if batched:
            self.note(self.write_batch(RECEIVED, [{**said, "request": f"r-{number}"} for number in range(6)], said))
        else:
            self.note(self.write(RECEIVED, **said))

    def write_batch(
        self, kind: str, others: list[dict[str, Any]], own: dict[str, Any], *, leaf: dict[str, Any] | None = None,
        **more: Any,
    ) -> LoggedEntry:  # fmt: skip
        """A batch whose last leaf is this request's; `leaf` and `more` are what a cheat puts into leaf and batch."""
        common = {"v": 1, "kind": kind, "at": self.at(self.minute + 1), **self.stamp}
        leaves = [dumps_leaf({**common, **each, **(leaf or {})}) for each in (*others, own)]
        tree = Tree([leaf_hash(each) for each in leaves])
        batch = self.write(BATCH, **{"of": kind, "count": len(leaves), "root": tree.root.hex(), **more})
        return batch._replace(batch=Batched(len(others), leaves[-1], tree.path(len(others))))

    @staticmethod
    def at(minute: int) -> str:
        return f"2026-01-31T06:{minute:02}:00.000000Z"

    def write(self, kind: str, **more: Any) -> LoggedEntry:
        self.minute += 1
        return self.ledger.append({"v": 1, "kind": kind, "at": self.at(self.minute), **self.stamp, **more})

    def note(self, entry: LoggedEntry) -> LoggedEntry:
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
                **{"began_at": self.at(self.minute), **more},
            )
        )

    def close(self, **changes: Any) -> LoggedEntry:
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


def closed(*, simulated: bool = False, batched: bool = False) -> Erasure:
    """A request that is certified, in a ledger that went on after it."""
    erasure = Erasure(simulated=simulated, batched=batched)
    erasure.close()
    erasure.write("hold.added", dataset="lake.app.events")
    return erasure
