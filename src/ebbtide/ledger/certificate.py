"""Certificates: what is left of an erasure request when the request itself is gone (spec §5).

`certificate.json` is canonical JSON:

    {"format": "ebbtide-certificate", "v": 1,
     "summary": {…},                                  for people; computed from the rest
     "entries": [{"index": 12, "leaf": "{…}"}, …],    the request's ledger entries, each as its exact bytes
     "proof": "c2sp.org/tlog-proof@v1\\n…",            of the last entry, which lists all the others
     "envelope": {…}}                                 DSSE: an in-toto statement over all of the above

The envelope is signed by a key of its own, whose public half is one of the entries: whoever trusts the ledger's key
needs no other. The functions below are the rules, each of which refuses; `check.py` applies them in its order, and
`build` before anything is signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger import dsse
from ebbtide.ledger.leaf import CERTIFICATE_KEY, CERTIFIED, VERIFIED, Body, Logged, listed_in, read_body, requests_of
from ebbtide.ledger.note import Signer, VerifierKey
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.summary import summarise
from ebbtide.model.canonical import Json, dumps, loads_canonical

FORMAT = "ebbtide-certificate"
VERSION = 1
MAX_BYTES = 16 * 1024 * 1024

CLEAN = "certified"
WITH_EXCEPTIONS = "certified with exceptions"

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:ebbtide:erasure-certificate:v1"


class Certificate(NamedTuple):
    """A certificate, parsed and not yet believed. `bodies` are the entries' contents, in their order."""

    entries: tuple[Logged, ...]
    bodies: tuple[Body, ...]
    proof: TlogProof
    envelope: dsse.Envelope
    summary: dict[str, Json]

    @property
    def last(self) -> Body:
        """The entry that certifies the request."""
        return self.bodies[-1]

    def encode(self) -> bytes:
        """The content of `certificate.json`."""
        content: dict[str, Json] = {
            "format": FORMAT,
            "v": VERSION,
            "summary": self.summary,
            "entries": [{"index": entry.leaf_index, "leaf": entry.leaf.decode()} for entry in self.entries],
            "proof": self.proof.encode().decode(),
            "envelope": self.envelope.to_json(),
        }
        return dumps(content)

    @classmethod
    def parse(cls, data: bytes) -> Certificate:
        """Read a certificate: its form, and the form of all that it holds, but not whether it is true."""
        value = loads_canonical(data, limit=MAX_BYTES)
        match value:
            case {"format": found, "v": version} if found == FORMAT and version != VERSION:
                raise InputError(f"a certificate of version {version}", hint=f"this Ebbtide reads version {VERSION}")
            case {
                "format": str(found),
                "summary": dict(summary),
                "entries": [_, *_] as items,
                "proof": str(proof),
                "envelope": envelope,
            } if found == FORMAT:
                entries = tuple(_logged(item) for item in items)
                certificate = cls(
                    entries,
                    _bodies(entries),
                    TlogProof.parse(proof.encode()),
                    dsse.Envelope.from_json(envelope),
                    summary,
                )
                # Written again it must be the same: so nothing in the file goes unread.
                if certificate.encode() == data:
                    return certificate
        raise InputError("not a certificate", hint="format, v, summary, entries, proof and envelope, and nothing else")


def build(entries: Sequence[Logged], proof: TlogProof, signer: Signer) -> Certificate:
    """The certificate of a request from its entries, the proof of the last one, and the certificates' key.

    What `check` would refuse is refused here, before it is signed.
    """
    ordered = tuple(sorted(entries))
    bodies = _bodies(ordered)
    check_listing(ordered, bodies)
    check_claims(bodies)
    if signing_key(bodies) != signer.key:
        raise ProofError(
            "key that signs the certificate", expected=signing_key(bodies).encode(), found=signer.key.encode()
        )
    if proof.leaf_index != ordered[-1].leaf_index:
        raise ProofError("entry of the proof", expected=str(ordered[-1].leaf_index), found=str(proof.leaf_index))
    summary = summarise(ordered, bodies, proof.note)
    payload = statement(ordered, proof, summary)
    return Certificate(ordered, bodies, proof, dsse.sign(dsse.STATEMENT_TYPE, payload, signer), summary)


def check_listing(entries: Sequence[Logged], bodies: Sequence[Body]) -> None:
    """Refuse unless the last entry lists exactly the others, itself or through entries that it lists."""
    known = {entry.leaf_index: (entry, body) for entry, body in zip(entries, bodies, strict=True)}
    reached, waiting = {entries[-1].leaf_index}, [entries[-1].leaf_index]
    while waiting:
        lister = waiting.pop()
        for index, digest in listed_in(known[lister][1]).items():
            if index >= lister:
                raise ProofError(f"entry that entry {lister} lists", expected="an earlier one", found=str(index))
            if index not in known:
                raise ProofError(f"entry {index}, which entry {lister} lists", expected=digest.hex(), found="none")
            if (found := known[index][0].hash) != digest:
                raise ProofError(f"leaf hash of entry {index}", expected=digest.hex(), found=found.hex())
            if index not in reached:
                reached.add(index)
                waiting.append(index)
    if strays := sorted(known.keys() - reached):
        raise ProofError("entries", expected="only listed ones", found=f"entry {strays[0]}, which no other lists")


def check_claims(bodies: Sequence[Body]) -> None:
    """Refuse unless the entries are one request's, and what its last entry claims follows from the others.

    Certified without exceptions means: every commitment was searched for, and wherever it was, the last search read
    everything and found nothing. Nothing searched means no.
    """
    request, state, commitments = _closing(bodies[-1])
    for body in bodies:
        belongs = requests_of(body)
        if belongs is not None and request not in belongs:
            raise ProofError("request of an entry", expected=request, found=", ".join(belongs))
    results: dict[str, dict[str, tuple[int, int]]] = {}
    for body in bodies:
        if body["kind"] == VERIFIED:
            place, searched, result = _search(body)
            for commitment in searched:
                results.setdefault(commitment, {})[place] = result
    if state == WITH_EXCEPTIONS:
        return
    for commitment in commitments:
        if commitment not in results:
            raise ProofError(f"search for commitment {commitment}", expected="at least one", found="none")
        for place, (found, unread) in results[commitment].items():
            if found or unread:
                raise ProofError(
                    f"last search for commitment {commitment} in {place}",
                    expected="0 found, 0 not readable",
                    found=f"{found} found, {unread} not readable",
                )


def signing_key(bodies: Sequence[Body]) -> VerifierKey:
    """The key that signs this certificate: the one that its entries hold."""
    keys = [body.get("key") for body in bodies if body["kind"] == CERTIFICATE_KEY]
    if len(keys) != 1:
        raise ProofError(f"entries of kind {CERTIFICATE_KEY}", expected="1", found=str(len(keys)))
    if not isinstance(keys[0], str):
        raise InputError(f"a {CERTIFICATE_KEY} entry without a key", hint="`key` is a verifier key")
    return VerifierKey.parse(keys[0])


def statement(entries: Sequence[Logged], proof: TlogProof, summary: dict[str, Json]) -> bytes:
    """The in-toto statement that a certificate's envelope must hold, byte for byte."""
    parts = [(f"entry {entry.leaf_index}", entry.leaf) for entry in entries] + [("proof", proof.encode())]
    content: dict[str, Json] = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256(data).hexdigest()}} for name, data in parts],
        "predicateType": PREDICATE,
        "predicate": summary,
    }
    return dumps(content)


def commitments_of(last: Body) -> list[str]:
    """Whom the entry that certifies a request is about."""
    return _closing(last)[2]


def _closing(body: Body) -> tuple[str, str, list[str]]:
    match body:
        case {"kind": kind, "request": str(request), "state": str(state), "commitments": [_, *_] as commitments}:
            if kind == CERTIFIED and state in (CLEAN, WITH_EXCEPTIONS):
                return request, state, _texts(commitments)
    raise InputError(
        "the last entry does not certify a request",
        hint=f"its kind is {CERTIFIED}, with request, commitments, and state `{CLEAN}` or `{WITH_EXCEPTIONS}`",
    )


def _search(body: Body) -> tuple[str, list[str], tuple[int, int]]:
    """Where a verification searched, for whom, and how much it found and could not read."""
    found, unread = body.get("found"), body.get("unread", 0)
    match body:
        case {"place": str(place), "commitments": [_, *_] as commitments}:
            if type(found) is int and type(unread) is int and found >= 0 and unread >= 0:
                return place, _texts(commitments), (found, unread)
    raise InputError(
        f"a {VERIFIED} entry without place, commitments and found", hint="`found` and `unread` count from 0"
    )


def _bodies(entries: Sequence[Logged]) -> tuple[Body, ...]:
    if not entries or any(one.leaf_index >= two.leaf_index for one, two in pairwise(entries)):
        raise InputError(
            "the entries are not in the order of their indexes, each once", hint="issue the certificate again"
        )
    bodies = tuple(read_body(entry.leaf) for entry in entries)
    _closing(bodies[-1])
    return bodies


def _logged(item: Json) -> Logged:
    match item:
        case {"index": index, "leaf": str(leaf)} if type(index) is int and index >= 0:
            return Logged(index, leaf.encode())
    raise InputError("an entry that has not exactly an index and a leaf", hint="the leaf is the entry's text")


def _texts(items: Sequence[Json]) -> list[str]:
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) != len(items):
        raise InputError("a commitment that is not text", hint="commitments are hexadecimal text")
    return texts
