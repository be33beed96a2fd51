"""The check of a certificate: offline, without Spark, without a database, from a key file alone (spec §5).

The steps, in this order; the first that fails ends the check and is named:

1. `certificate`  its form: canonical JSON of a known version, entries, proof and envelope that can be read
2. `checkpoint`   the ledger's head is signed by a key that is trusted at its size, under the key's own origin
3. `inclusion`    the last entry is in that ledger
4. `entries`      the last entry lists exactly the others, by index and leaf hash; roots of batches prove their leaves
5. `claims`       they are one request's, and what the last one claims follows from them (`claims.py`)
6. `clock`        they were written on a real clock, unless a simulated one was asked for
7. `summary`      what people read is what the entries say
8. `statement`    the envelope holds the statement over all this, signed by the key that is among the entries
9. `time`         who vouches for the time: a witness whose key was given, or only the ledger
10. `opening`     if one was given: it opens exactly the commitments of the request

What cannot be read is exit 2, what is read and false exit 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ebbtide.errors import EbbtideError, ProofError
from ebbtide.ledger import certificate as rules
from ebbtide.ledger.certificate import Certificate
from ebbtide.ledger.claims import check_claims
from ebbtide.ledger.dsse import STATEMENT_TYPE
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.leaf import Body
from ebbtide.ledger.note import Checkpoint, Note, VerifiedSignature
from ebbtide.ledger.summary import ASSERTED, WITNESSED, moment, summarise
from ebbtide.ledger.tree import verify_inclusion
from ebbtide.model.canonical import dumps

if TYPE_CHECKING:
    from ebbtide.ledger.commitment import Opening

# A witness's clock and ours may differ by this much before one of them must be wrong.
_SKEW_SECONDS = 300


class CheckStep(NamedTuple):
    """One step that was taken, and what it found."""

    number: int
    name: str
    ok: bool
    says: str


class CheckReport(NamedTuple):
    """What a check found. `failed` is the reason why the last step did not hold."""

    steps: tuple[CheckStep, ...]
    failed: EbbtideError | None
    request: str | None
    time: str | None

    def __bool__(self) -> bool:
        return bool(self.steps) and self.failed is None

    @property
    def exit_code(self) -> int:
        """0 good, 1 read and false, 2 not readable."""
        if self.failed is not None:
            return self.failed.exit_code
        return 0 if self else ProofError.exit_code


def check(data: bytes, trust: Trust, *, opening: Opening | None = None, simulated: bool = False) -> CheckReport:
    """Check the bytes of a certificate against trusted keys. Never raises for what the certificate holds."""
    checking = _LedgerCheck(trust, opening, simulated=simulated)
    steps, failed = take(checking.steps(data))
    return CheckReport(steps, failed, checking.request, None if failed else checking.time)


def take(steps: Iterable[tuple[str, Callable[[], str]]]) -> tuple[tuple[CheckStep, ...], EbbtideError | None]:
    """Take steps up to the first that fails: each says what it found, and the error is why the last did not hold."""
    taken: list[CheckStep] = []
    for number, (name, step) in enumerate(steps, 1):
        try:
            taken.append(CheckStep(number, name, True, step()))
        except EbbtideError as error:
            taken.append(CheckStep(number, name, False, error.message))
            return tuple(taken), error
    return tuple(taken), None


def told_by_clock(simulated: Sequence[int], *, accepted: bool) -> str:
    """Refuse entries that a simulated clock stamped, by their indexes, unless they were asked for."""
    if not simulated:
        return "real"
    if not accepted:
        raise ProofError(
            "clock",
            expected="a real one",
            found=f"a simulated one in entry {simulated[0]}",
            hint="it proves a rehearsal; --simulated checks it as such",
        )
    return f"simulated in {len(simulated)} entries, as asked for"


def vouched(trust: Trust, note: Note, verified: Sequence[VerifiedSignature], last: Body | None) -> tuple[str, str]:
    """Who vouches for the time of a checkpoint over an entry, or over all: `asserted` or `witnessed`, and in words."""
    seen = [(item.time, item.key) for item in verified if item.time is not None]
    if not seen:
        unknown = len(note.signatures) - len(verified)
        ignored = f"; {unknown} signatures of keys not given" if unknown else ""
        return ASSERTED, f"{ASSERTED} by {trust.origin}{ignored}"
    time, key = min(seen)
    # Canonical times sort as text. A simulated clock runs where it likes.
    if last is not None and "simulated" not in last and str(last["at"]) > moment(time + _SKEW_SECONDS):
        expected = f"not after {key.name} saw it, {moment(time)}"
        raise ProofError("time of the last entry", expected=expected, found=str(last["at"]))
    return WITNESSED, f"{WITNESSED} by {key.name}: in the ledger at {moment(time)}"


def signed_by(checkpoint: Checkpoint, verified: Sequence[VerifiedSignature]) -> str:
    """Whose checkpoint it is, in words."""
    names = ", ".join(f"{item.key.name}+{item.key.key_hash.hex()}" for item in verified if item.time is None)
    return f"{checkpoint.origin} at {checkpoint.size} entries, signed by {names}"


class _LedgerCheck:
    """One check under way: later steps use what earlier ones read and proved."""

    def __init__(self, trust: Trust, opening: Opening | None, *, simulated: bool) -> None:
        self.trust, self.opening, self.simulated = trust, opening, simulated
        self.certificate: Certificate
        self.told: tuple[Body, ...] = ()
        self.verified: tuple[VerifiedSignature, ...] = ()
        self.request: str | None = None
        self.time = ASSERTED

    def steps(self, data: bytes) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "certificate", lambda: self.read(data)
        yield "checkpoint", self.checkpoint
        yield "inclusion", self.inclusion
        yield "entries", self.entries
        yield "claims", self.claims
        yield "clock", self.clock
        yield "summary", self.summary
        yield "statement", self.statement
        yield "time", self.witnesses
        if (opening := self.opening) is not None:
            yield "opening", lambda: self.opens(opening)

    def read(self, data: bytes) -> str:
        self.certificate = Certificate.parse(data)
        self.request = str(self.certificate.last["request"])
        return f"version {rules.VERSION}, {len(self.certificate.entries)} entries of request {self.request}"

    def checkpoint(self) -> str:
        checkpoint, self.verified = self.trust.verify(self.certificate.proof.note)
        return signed_by(checkpoint, self.verified)

    def inclusion(self) -> str:
        proof, last = self.certificate.proof, self.certificate.entries[-1]
        if proof.leaf_index != last.leaf_index:
            raise ProofError("entry of the proof", expected=str(last.leaf_index), found=str(proof.leaf_index))
        head = proof.checkpoint
        verify_inclusion(last.hash, proof.leaf_index, head.size, proof.hashes, head.root)
        return f"entry {last.leaf_index} is in the ledger"

    def entries(self) -> str:
        rules.check_listing(self.certificate.entries, self.certificate.bodies)
        self.told = self.certificate.told
        return f"the last entry lists the other {len(self.certificate.entries) - 1}"

    def claims(self) -> str:
        check_claims(self.told)
        return f"request {self.request}: {self.certificate.last['state']}"

    def clock(self) -> str:
        stamped = [
            entry.leaf_index
            for entry, body in zip(self.certificate.entries, self.certificate.bodies, strict=True)
            if "simulated" in body
        ]
        return told_by_clock(stamped, accepted=self.simulated)

    def summary(self) -> str:
        certificate = self.certificate
        expected = summarise(certificate.entries, self.told, certificate.proof.note)
        for key in sorted(expected.keys() | certificate.summary.keys()):
            wanted, found = (
                dumps(side[key]).decode() if key in side else "nothing" for side in (expected, certificate.summary)
            )
            if wanted != found:
                raise ProofError(f"summary: {key}", expected=wanted, found=found)
        return "is what the entries say"

    def statement(self) -> str:
        certificate, key = self.certificate, rules.signing_key(self.certificate.bodies)
        payload = certificate.envelope.verify(key, STATEMENT_TYPE)
        expected = rules.statement(certificate.entries, certificate.proof, certificate.summary)
        if payload != expected:
            pairs = enumerate(zip(payload, expected, strict=False))
            place = next((at for at, (one, two) in pairs if one != two), min(len(payload), len(expected)))
            raise ProofError(
                f"statement at byte {place}",
                expected=repr(expected[place : place + 40]),
                found=repr(payload[place : place + 40]),
            )
        return f"signed by {key.name}+{key.key_hash.hex()}, a key of this ledger"

    def witnesses(self) -> str:
        certificate = self.certificate
        self.time, said = vouched(self.trust, certificate.proof.note, self.verified, certificate.last)
        return said

    def opens(self, opening: Opening) -> str:
        if opening.request != self.request:
            raise ProofError("request of the opening", expected=str(self.request), found=opening.request)
        expected, found = sorted(rules.commitments_of(self.certificate.last)), sorted(opening.commitments())
        if found != expected:
            raise ProofError("commitments", expected=", ".join(expected), found=", ".join(found))
        return f"opens {len(found)} commitments: {', '.join(item.type for item in opening.identifiers)}"
