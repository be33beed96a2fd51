"""Certificates: what is left of an erasure request when the request itself is gone (spec §5).

`certificate.json` is canonical JSON:

    {"format": "ebbtide-certificate", "v": 2,
     "summary": {…},                                  for people; computed from the rest
     "entries": [{"index": 12, "leaf": "{…}"},        the request's ledger entries, each as its exact bytes
                 {"index": 13, "leaf": "{…}",         of a batch also the request's leaf there, and the path to its root
                  "batch": {"index": 4711, "leaf": "{…}", "path": ["<hex>", …]}}, …],
     "proof": "c2sp.org/tlog-proof@v1\\n…",            of the last entry, which lists all the others
     "envelope": {…}}                                 DSSE: an in-toto statement over all of the above

The envelope is signed by a key of its own, whose public half is one of the entries: whoever trusts the ledger's key
needs no other. The functions below and those of `claims.py` are the rules, each of which refuses; `check.py` applies
them in its order, and `build` before anything is signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger import dsse
from ebbtide.ledger.batch import MAX_PATH, read_batched
from ebbtide.ledger.claims import check_claims, read_closing
from ebbtide.ledger.leaf import CERTIFICATE_KEY, Batched, Body, LoggedEntry, hex_bytes, listed_in, read_body
from ebbtide.ledger.note import Signer, VerifierKey
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.summary import summarise
from ebbtide.model.canonical import Json, dumps, loads_canonical

FORMAT = "ebbtide-certificate"
VERSION = 2
MAX_BYTES = 16 * 1024 * 1024

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:ebbtide:erasure-certificate:v2"


class Certificate(NamedTuple):
    """A certificate, parsed and not yet believed. `bodies` are the entries' contents, in their order."""

    entries: tuple[LoggedEntry, ...]
    bodies: tuple[Body, ...]
    proof: TlogProof
    envelope: dsse.Envelope
    summary: dict[str, Json]

    @property
    def last(self) -> Body:
        """The entry that certifies the request."""
        return self.bodies[-1]

    @property
    def told(self) -> tuple[Body, ...]:
        """What the entries say of the request: of batches their leaves. Refused where a root does not prove one."""
        return told_by(self.entries, self.bodies)

    def encode(self) -> bytes:
        """The content of `certificate.json`."""
        content: dict[str, Json] = {
            "format": FORMAT,
            "v": VERSION,
            "summary": self.summary,
            "entries": [_item(entry) for entry in self.entries],
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


def build(entries: Sequence[LoggedEntry], proof: TlogProof, signer: Signer) -> Certificate:
    """The certificate of a request from its entries, the proof of the last one, and the certificates' key.

    What `check` would refuse is refused here, before it is signed.
    """
    ordered = tuple(sorted(entries))
    bodies = _bodies(ordered)
    check_listing(ordered, bodies)
    check_claims(told_by(ordered, bodies))
    if signing_key(bodies) != signer.key:
        raise ProofError(
            "key that signs the certificate", expected=signing_key(bodies).encode(), found=signer.key.encode()
        )
    if proof.leaf_index != ordered[-1].leaf_index:
        raise ProofError("entry of the proof", expected=str(ordered[-1].leaf_index), found=str(proof.leaf_index))
    summary = summarise(ordered, told_by(ordered, bodies), proof.note)
    payload = statement(ordered, proof, summary)
    return Certificate(ordered, bodies, proof, dsse.sign(dsse.STATEMENT_TYPE, payload, signer), summary)


def check_listing(entries: Sequence[LoggedEntry], bodies: Sequence[Body]) -> None:
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


def told_by(entries: Sequence[LoggedEntry], bodies: Sequence[Body]) -> tuple[Body, ...]:
    """What entries say of a request, one by one: themselves, or of a batch the leaf that its root proves."""
    return tuple(read_batched(body, entry.batch) for entry, body in zip(entries, bodies, strict=True))


def signing_key(bodies: Sequence[Body]) -> VerifierKey:
    """The key that signs this certificate: the one that its entries hold."""
    keys = [body.get("key") for body in bodies if body["kind"] == CERTIFICATE_KEY]
    if len(keys) != 1:
        raise ProofError(f"entries of kind {CERTIFICATE_KEY}", expected="1", found=str(len(keys)))
    if not isinstance(keys[0], str):
        raise InputError(f"a {CERTIFICATE_KEY} entry without a key", hint="`key` is a verifier key")
    return VerifierKey.parse(keys[0])


def statement(entries: Sequence[LoggedEntry], proof: TlogProof, summary: dict[str, Json]) -> bytes:
    """The in-toto statement that a certificate's envelope must hold, byte for byte."""
    parts = [(f"entry {entry.leaf_index}", entry.leaf) for entry in entries]
    batched = [(entry.leaf_index, entry.batch) for entry in entries if entry.batch is not None]
    parts += [(f"entry {index}, leaf {batch.leaf_index}", batch.leaf) for index, batch in batched]
    parts.append(("proof", proof.encode()))
    content: dict[str, Json] = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256(data).hexdigest()}} for name, data in parts],
        "predicateType": PREDICATE,
        "predicate": summary,
    }
    return dumps(content)


def commitments_of(last: Body) -> list[str]:
    """Whom the entry that certifies a request is about."""
    return read_closing(last).commitments


def _bodies(entries: Sequence[LoggedEntry]) -> tuple[Body, ...]:
    if not entries or any(one.leaf_index >= two.leaf_index for one, two in pairwise(entries)):
        raise InputError(
            "the entries are not in the order of their indexes, each once", hint="issue the certificate again"
        )
    bodies = tuple(read_body(entry.leaf) for entry in entries)
    read_closing(bodies[-1])
    return bodies


def _item(entry: LoggedEntry) -> Json:
    item: dict[str, Json] = {"index": entry.leaf_index, "leaf": entry.leaf.decode()}
    if (batch := entry.batch) is not None:
        path: list[Json] = [each.hex() for each in batch.path]
        item["batch"] = {"index": batch.leaf_index, "leaf": batch.leaf.decode(), "path": path}
    return item


def _logged(item: Json) -> LoggedEntry:
    match item:
        case {"index": index, "leaf": str(leaf)} if isinstance(item, dict) and type(index) is int and index >= 0:
            return LoggedEntry(index, leaf.encode(), _batched(item["batch"]) if "batch" in item else None)
    raise InputError("an entry that has not an index, a leaf and maybe a batch", hint="the leaf is the entry's text")


def _batched(item: Json) -> Batched:
    match item:
        case {"index": index, "leaf": str(leaf), "path": [*path], **rest} if type(index) is int and not rest:
            if index >= 0 and len(path) <= MAX_PATH:
                return Batched(index, leaf.encode(), tuple(hex_bytes(str(each)) for each in path))
    raise InputError("a batch that has not exactly an index, a leaf and a path", hint="issue the certificate again")
