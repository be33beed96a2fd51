"""Ebbtide and the Go libraries of these formats check each other's notes, proofs and cosignatures.

Go's side is `go/main.go`, on golang.org/x/mod/sumdb/note and on transparency-dev's merkle and formats.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ebbtide.errors import ProofError
from ebbtide.ledger import tree
from ebbtide.ledger.batch import Tree
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.note import COSIGNATURE, Note, Signer, VerifierKey
from ebbtide.ledger.proof import TlogProof
from tests.ledger.erasure import closed
from tests.ledger.forest import MemoryLedger

GO_SOURCE = Path(__file__).parent / "go"
WITNESS = Signer.generate("witness.example/w1", algorithm=COSIGNATURE)

Evidence: TypeAlias = dict[str, Any]


@pytest.fixture(scope="session")
def interop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built once. Without Go this fails: an interop test that is skipped proves nothing."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    assert go is not None, "Go is needed for these tests; install it, or leave them to `make test-interop` elsewhere"
    program = tmp_path_factory.mktemp("go") / "interop"
    built = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(program), "."],
        cwd=GO_SOURCE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return program


def go_verifies(interop: Path, evidence: Evidence) -> str:
    """Empty if Go believes the evidence, otherwise its reason."""
    done = subprocess.run(
        [str(interop), "verify"], input=json.dumps(evidence), capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def cosigned(ledger: MemoryLedger, size: int) -> Note:
    note = ledger.checkpoint(size=size)
    return note._replace(signatures=(*note.signatures, WITNESS.cosign(note.text, time=1_800_000_000)))


def evidence_of(ledger: MemoryLedger, old: int, new: int) -> Evidence:
    note = cosigned(ledger, new)
    return {
        "key": ledger.signer.key.encode(),
        "witness": WITNESS.key.encode(),
        "old": cosigned(ledger, old).encode().decode(),
        "new": note.encode().decode(),
        "consistency": [b64(item) for item in tree.consistency_proof(old, new, ledger.get)],
        "entries": [b64(leaf) for leaf in ledger.leaves[:new]],
        "proofs": [ledger.prove(index, note).encode().decode() for index in range(new)],
    }


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.append_leaves([b'{"n":%d,"text":"\xc3\xa9"}' % number for number in range(300)])
    return ledger


@pytest.mark.parametrize(
    ("old", "new"), [(1, 1), (1, 2), (2, 3), (3, 7), (4, 8), (7, 8), (8, 9), (100, 257), (256, 300)]
)
def test_go_verifies_what_ebbtide_writes(interop: Path, ledger: MemoryLedger, old: int, new: int) -> None:
    assert go_verifies(interop, evidence_of(ledger, old, new)) == ""


def _lines(evidence: Evidence, key: str, change: Callable[[list[str]], list[str]]) -> Evidence:
    return evidence | {key: "\n".join(change(evidence[key].split("\n")))}


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("key", lambda good: good | {"key": good["key"][:-1] + ("B" if good["key"].endswith("A") else "A")}),
        ("old checkpoint", lambda good: good | {"witness": Signer.generate("w", algorithm=COSIGNATURE).key.encode()}),
        ("old checkpoint", lambda good: _lines(good, "old", lambda lines: [lines[0], "6", *lines[2:]])),
        ("new checkpoint", lambda good: _lines(good, "new", lambda lines: [*lines[:-2], ""])),
        ("consistency", lambda good: good | {"consistency": good["consistency"][::-1]}),
        ("consistency", lambda good: good | {"consistency": good["consistency"][:-1]}),
        ("proof 0", lambda good: good | {"entries": good["entries"][::-1]}),
        ("proof 0", lambda good: good | {"proofs": good["proofs"][::-1]}),
    ],
)
def test_go_refuses_what_was_changed(
    interop: Path, ledger: MemoryLedger, reason: str, change: Callable[[Evidence], Evidence]
) -> None:
    assert go_verifies(interop, change(evidence_of(ledger, 5, 11))).startswith(f"{reason}: ")


def test_go_verifies_the_proof_of_a_certificate(interop: Path) -> None:
    erasure = closed()
    note = cosigned(erasure.ledger, erasure.ledger.size)
    certificate = json.loads(erasure.certificate(note).encode())
    evidence = {
        "key": erasure.ledger.signer.key.encode(),
        "witness": WITNESS.key.encode(),
        "old": note.encode().decode(),
        "new": note.encode().decode(),
        "consistency": [],
        "entries": [b64(certificate["entries"][-1]["leaf"].encode())],
        "proofs": [certificate["proof"]],
    }
    assert go_verifies(interop, evidence) == ""
    assert go_verifies(interop, evidence | {"entries": [b64(certificate["entries"][0]["leaf"].encode())]})


def test_go_verifies_the_batches_of_a_certificate(interop: Path) -> None:
    erasure = closed(batched=True)
    note = cosigned(erasure.ledger, erasure.ledger.size)
    certificate = json.loads(erasure.certificate(note).encode())
    batches = []
    for entry in certificate["entries"]:
        if batch := entry.get("batch"):
            body = json.loads(entry["leaf"])
            path = [b64(bytes.fromhex(each)) for each in batch["path"]]
            leaf = {"index": batch["index"], "leaf": b64(batch["leaf"].encode()), "path": path}
            batches.append({"root": b64(bytes.fromhex(body["root"])), "count": body["count"], **leaf})
    assert [batch["count"] for batch in batches] == [7]
    evidence = evidence_of(erasure.ledger, 1, 2)
    assert go_verifies(interop, evidence | {"batches": batches}) == ""
    for change in ({"index": 5}, {"count": 8}, {"leaf": b64(b"{}")}, {"path": batches[0]["path"][:-1]}):
        assert go_verifies(interop, evidence | {"batches": [batches[0] | change]}).startswith("batch 0: ")


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 300])
def test_ebbtide_reads_batches_that_go_writes(interop: Path, size: int) -> None:
    signer = Signer.generate("example.org/go")
    done = subprocess.run(
        [str(interop), "write", str(size), "1", signer.encode()], capture_output=True, text=True, check=True
    )
    batches = json.loads(done.stdout)["batches"]
    ours = Tree([tree.leaf_hash(base64.b64decode(batch["leaf"])) for batch in batches])
    assert len(batches) == size
    for batch in batches:
        path = tuple(base64.b64decode(each) for each in batch["path"] or [])
        assert (ours.root, ours.path(batch["index"])) == (base64.b64decode(batch["root"]), path)


@pytest.mark.parametrize(("size", "old"), [(1, 1), (2, 1), (8, 7), (9, 8), (13, 5), (300, 256)])
def test_ebbtide_verifies_what_go_writes(interop: Path, size: int, old: int) -> None:
    signer = Signer.generate("example.org/go")
    done = subprocess.run(
        [str(interop), "write", str(size), str(old), signer.encode()], capture_output=True, text=True, check=True
    )
    evidence = json.loads(done.stdout)
    witness = VerifierKey.parse(evidence["witness"])
    trust = Trust((TrustedKey(signer.key),), (witness,))
    heads = []
    for text in (evidence["old"], evidence["new"]):
        note = Note.parse(text.encode())
        assert note.encode() == text.encode()
        head, verified = trust.verify(note)
        assert [(item.key, item.time is not None) for item in verified] == [(signer.key, False), (witness, True)]
        heads.append(head)
    before, after = heads
    assert (before.size, after.size) == (old, size)
    hashes = [base64.b64decode(item) for item in evidence["consistency"] or []]
    tree.verify_consistency(before.size, before.root, after.size, after.root, hashes)
    assert len(evidence["proofs"]) == size
    for index, (text, encoded) in enumerate(zip(evidence["proofs"], evidence["entries"], strict=True)):
        proof = TlogProof.parse(text.encode())
        assert (proof.leaf_index, proof.encode()) == (index, text.encode())
        leaf = tree.leaf_hash(base64.b64decode(encoded))
        assert len(proof.verify(leaf, signer.key.name, [signer.key, witness])) == 2
        with pytest.raises(ProofError):
            proof.verify(tree.leaf_hash(b"other"), signer.key.name, [signer.key, witness])


def test_both_build_the_same_tree(interop: Path) -> None:
    signer = Signer.generate("example.org/go")
    done = subprocess.run(
        [str(interop), "write", "300", "1", signer.encode()], capture_output=True, text=True, check=True
    )
    evidence = json.loads(done.stdout)
    ledger = MemoryLedger(signer)
    ledger.append_leaves([base64.b64decode(entry) for entry in evidence["entries"]])
    note = Note.parse(evidence["new"].encode())
    assert ledger.head().text() == note.text
    # Ed25519 is deterministic: the same key signs the same text with the same bytes.
    assert ledger.checkpoint().signatures[0] == note.signatures[0]
    for index, text in enumerate(evidence["proofs"]):
        assert ledger.prove(index, note).encode() == text.encode()
