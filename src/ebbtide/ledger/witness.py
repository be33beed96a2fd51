"""Asking a witness to cosign the last checkpoint (C2SP tlog-witness, version 1).

A witness vouches that the ledger only ever grew, and when it saw it. It keeps the size that it cosigned last; a
request proves that the new checkpoint continues it. A witness that saw more than this ledger holds has seen what a
restored backup lost, and that is refused as such.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError, RewoundError, UnreadableError
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import COSIGNATURE, Checkpoint, Note, VerifierKey, parse_decimal, parse_signatures
from ebbtide.ledger.tree import consistency_proof
from ebbtide.model.canonical import base64_text

_TIMEOUT_SECONDS = 30
_MAX_ANSWER_BYTES = 65_536
_STALE = 409


@dataclass(frozen=True, slots=True)
class WitnessAnswer:
    """What a witness answered."""

    status: int
    body: bytes


def ask_witness(ledger: Ledger, url: str, key: VerifierKey) -> Note:
    """The last checkpoint with the witness's cosignature, which is kept with it from now on."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError("a witness is reached by http or https", hint="give the prefix of its add-checkpoint call")
    if key.algorithm != COSIGNATURE:
        raise InputError(
            f"the key of {key.name} is not a witness's", hint="a witness's verifier key has the algorithm 0x04"
        )
    note = ledger.sign()
    # What the witness saw last is the witness's to say: it answers a wrong size with the right one.
    answer = _submit(ledger, url, note, old_size=0)
    if answer.status == _STALE:
        answer = _submit(ledger, url, note, old_size=_size_of(answer, url))
    if answer.status != http.HTTPStatus.OK:
        raise _refusal(answer.status, url)
    cosigned = _add_signatures(note, answer.body, key)
    return _keep(ledger, cosigned)


def _submit(ledger: Ledger, url: str, note: Note, *, old_size: int) -> WitnessAnswer:
    checkpoint = Checkpoint.parse(note.text)
    if old_size > checkpoint.size:
        raise RewoundError(
            f"size of the ledger, by the witness at {url}",
            expected=f"at least {old_size}",
            found=str(checkpoint.size),
            hint="the state was restored from a backup, or another one signs under this origin",
        )
    proof: tuple[bytes, ...] = ()
    if 0 < old_size < checkpoint.size:
        with ledger.reading() as log:
            proof = consistency_proof(old_size, checkpoint.size, log.get)
    lines = [f"old {old_size}", *(base64_text(item) for item in proof), ""]
    body = "".join(f"{line}\n" for line in lines).encode() + note.encode()
    request = urllib.request.Request(f"{url.rstrip('/')}/add-checkpoint", data=body, method="POST")  # noqa: S310
    request.add_header("Content-Type", "text/plain; charset=utf-8")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            return WitnessAnswer(response.status, _read(response, url))
    except urllib.error.HTTPError as error:
        with error:
            return WitnessAnswer(error.code, _read(error, url))
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise UnreadableError(f"witness at {url}", f"no answer: {reason}", hint="try again later") from None


def _read(response: http.client.HTTPResponse | urllib.error.HTTPError, url: str) -> bytes:
    body: bytes = response.read(_MAX_ANSWER_BYTES + 1)
    if len(body) > _MAX_ANSWER_BYTES:
        raise UnreadableError(f"witness at {url}", f"an answer of more than {_MAX_ANSWER_BYTES} bytes")
    return body


def _size_of(answer: WitnessAnswer, url: str) -> int:
    try:
        return parse_decimal(answer.body.decode("ascii").removesuffix("\n"))
    except (UnicodeDecodeError, EbbtideError):
        raise UnreadableError(f"witness at {url}", "it refused the size and did not say which it has") from None


def _refusal(status: int, url: str) -> EbbtideError:
    where = f"the witness at {url}"
    if status == http.HTTPStatus.NOT_FOUND:
        return RefusedError(f"{where} does not know this ledger's origin", hint="ask its operator to add the origin")
    if status == http.HTTPStatus.FORBIDDEN:
        return RefusedError(f"{where} does not know this ledger's key", hint="send its operator `ledger key`")
    if status in (_STALE, http.HTTPStatus.UNPROCESSABLE_ENTITY):
        return RewoundError(
            f"the ledger, by {where}",
            expected="the one that it cosigned before",
            found="another one",
            hint="the state was restored from a backup, or another one signs under this origin",
        )
    return UnreadableError(where, f"it answered {status}", hint="try again later, or ask its operator")


def _add_signatures(note: Note, body: bytes, key: VerifierKey) -> Note:
    try:
        signatures = parse_signatures(body.decode())
    except UnicodeDecodeError:
        raise ProofError("answer of the witness", expected="signature lines", found="bytes") from None
    own = [item for item in signatures if (item.name, item.key_hash) == (key.name, key.key_hash)]
    if not own:
        raise ProofError(
            "answer of the witness",
            expected=f"a cosignature of {key.name}+{key.key_hash.hex()}",
            found=", ".join(f"{item.name}+{item.key_hash.hex()}" for item in signatures),
        )
    cosigned = Note(note.text, (*note.signatures, *own[:1]))
    cosigned.verify([key])
    return cosigned


def _keep(ledger: Ledger, cosigned: Note) -> Note:
    """Keep the cosignature, in place of an older one of the same witness, here and in the copy outside."""
    size = Checkpoint.parse(cosigned.text).size
    new = cosigned.signatures[-1]
    with ledger.database.writer() as state:
        log = LedgerLog(state.connection)
        checkpoint = log.checkpoint(size)
        if checkpoint is None or checkpoint.text != cosigned.text:
            raise RefusedError(f"checkpoint {size} is not the one that was cosigned", hint="run `ebbtide ledger audit`")
        others = [item for item in checkpoint.signatures if (item.name, item.key_hash) != (new.name, new.key_hash)]
        note = Note(checkpoint.text, (*others, new))
        log.keep_checkpoint(size, note)
    ledger.publish()
    return note
