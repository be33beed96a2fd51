"""The check of one entry: its bytes, a tlog-proof and a key file, and nothing else (spec §5).

The steps, in this order:

1. `proof`       its form: a C2SP tlog-proof of version 1
2. `entry`       its form: canonical JSON that says what every entry must
3. `checkpoint`  the ledger's head is signed by a key that is trusted at its size, under the key's own origin
4. `inclusion`   exactly these bytes are at the proof's index in that ledger
5. `clock`       they were written on a real clock, unless a simulated one was asked for
6. `time`        who vouches for the time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ebbtide.ledger.check import CheckReport, signed_by, take, told_by_clock, vouched
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.leaf import Body, read_body
from ebbtide.ledger.note import VerifiedSignature
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.summary import ASSERTED
from ebbtide.ledger.tree import leaf_hash, verify_inclusion


def check_entry(proof: bytes, leaf: bytes, trust: Trust, *, simulated: bool = False) -> CheckReport:
    """Check that an entry is in the ledger of trusted keys. Never raises for what the files hold."""
    checking = _EntryCheck(trust, leaf, simulated=simulated)
    steps, failed = take(checking.steps(proof))
    return CheckReport(steps, failed, None, None if failed else checking.time)


class _EntryCheck:
    """One check under way: later steps use what earlier ones read and proved."""

    def __init__(self, trust: Trust, leaf: bytes, *, simulated: bool) -> None:
        self.trust, self.leaf, self.simulated = trust, leaf, simulated
        self.proof: TlogProof
        self.body: Body
        self.verified: tuple[VerifiedSignature, ...] = ()
        self.time = ASSERTED

    def steps(self, data: bytes) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "proof", lambda: self.read(data)
        yield "entry", self.entry
        yield "checkpoint", self.checkpoint
        yield "inclusion", self.inclusion
        yield "clock", self.clock
        yield "time", self.witnesses

    def read(self, data: bytes) -> str:
        self.proof = TlogProof.parse(data)
        return f"of entry {self.proof.leaf_index}, {len(self.proof.hashes)} hashes"

    def entry(self) -> str:
        self.body = read_body(self.leaf)
        return f"{self.body['kind']} of {self.body['at']}"

    def checkpoint(self) -> str:
        checkpoint, self.verified = self.trust.verify(self.proof.note)
        return signed_by(checkpoint, self.verified)

    def inclusion(self) -> str:
        proof, head = self.proof, self.proof.checkpoint
        verify_inclusion(leaf_hash(self.leaf), proof.leaf_index, head.size, proof.hashes, head.root)
        return f"entry {proof.leaf_index} is in the ledger, byte for byte"

    def clock(self) -> str:
        stamped = [self.proof.leaf_index] if "simulated" in self.body else []
        return told_by_clock(stamped, accepted=self.simulated)

    def witnesses(self) -> str:
        self.time, said = vouched(self.trust, self.proof.note, self.verified, self.body)
        return said
