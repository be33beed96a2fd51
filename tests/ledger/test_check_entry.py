"""The check of one entry from its bytes, a tlog-proof and a key file: each step holds, and each is made to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.app.ledger_check import CheckReport, check_file
from ebbtide.ledger.keys import TrustedKey
from ebbtide.ledger.note import COSIGNATURE, Note, Signer
from ebbtide.model.canonical import dumps_leaf
from tests.ledger.forest import MemoryLedger

AT = "2026-01-05T00:00:00.000000Z"
SEEN = 1_800_000_000
WITNESS = Signer.generate("witness.example/w1", algorithm=COSIGNATURE)
NAMES = ["proof", "entry", "checkpoint", "inclusion", "clock", "time"]


class Handed:
    """What an auditor was handed: the bytes of entry 3, its proof, and the keys."""

    def __init__(self, folder: Path) -> None:
        self.ledger = MemoryLedger()
        for number in range(7):
            stamp = {"simulated": True} if number == 5 else {}
            self.ledger.append({"v": 1, "kind": "sweep.done", "at": AT, "files": number, **stamp})
        self.proof, self.entry, self.keys = folder / "3.tlog-proof", folder / "3.json", folder / "ledger.pub"
        self.keys.write_text(TrustedKey(self.ledger.signer.key).line() + "\n")
        self.write()

    def write(self, index: int = 3, note: Note | None = None) -> None:
        self.proof.write_bytes(self.ledger.prove(index, note).encode())
        self.entry.write_bytes(self.ledger.leaves[index])

    def check(self, *, simulated: bool = False) -> CheckReport:
        return check_file(str(self.proof), str(self.keys), entry=str(self.entry), simulated=simulated)


@pytest.fixture
def handed(tmp_path: Path) -> Handed:
    return Handed(tmp_path)


def _failed(report: CheckReport) -> tuple[str, int]:
    assert report.failed is not None
    return report.steps[-1].name, report.exit_code


def test_every_entry_is_proved_step_by_step(handed: Handed) -> None:
    for index in (0, 3, 4, 6):
        handed.write(index)
        report = handed.check()
        assert (report.exit_code, report.time, report.request) == (0, "asserted", None)
        assert [step.name for step in report.steps] == NAMES
        assert f"entry {index} is in the ledger" in report.steps[3].says
        assert report.steps[1].says == f"sweep.done of {AT}"


def test_another_entry_is_not_the_one_that_was_proved(handed: Handed) -> None:
    handed.entry.write_bytes(handed.ledger.leaves[4])
    assert _failed(handed.check()) == ("inclusion", 1)
    handed.entry.write_bytes(dumps_leaf({"v": 1, "kind": "sweep.done", "at": AT, "files": 99}))
    assert _failed(handed.check()) == ("inclusion", 1)


def test_what_is_no_entry_is_refused_even_though_it_may_be_in_a_tree(handed: Handed) -> None:
    for content in (b"", b"{}", handed.ledger.leaves[3] + b"\n", b"x" * 100_000):
        handed.entry.write_bytes(content)
        assert _failed(handed.check()) == ("entry", 2)


def test_only_a_trusted_key_signs(handed: Handed) -> None:
    handed.keys.write_text(TrustedKey(Signer.generate("example.org/acme").key).line())
    assert _failed(handed.check()) == ("checkpoint", 1)
    handed.keys.write_text(TrustedKey(Signer.generate("example.org/other").key).line())
    assert _failed(handed.check()) == ("checkpoint", 1)
    handed.keys.write_text(TrustedKey(handed.ledger.signer.key, until=6).line())
    assert _failed(handed.check()) == ("checkpoint", 1)


@pytest.mark.parametrize("change", [lambda text: text[:-20], lambda text: text.replace(b"index 3", b"index 03")])
def test_a_proof_that_cannot_be_read_is_told_from_one_that_is_false(handed: Handed, change: object) -> None:
    assert callable(change)
    handed.proof.write_bytes(change(handed.proof.read_bytes()))
    assert _failed(handed.check()) == ("proof", 2)


def test_a_proof_of_another_index_is_false(handed: Handed) -> None:
    handed.proof.write_bytes(handed.proof.read_bytes().replace(b"index 3", b"index 2"))
    assert _failed(handed.check()) == ("inclusion", 1)


def test_a_rehearsal_is_taken_only_as_such(handed: Handed) -> None:
    handed.write(5)
    assert _failed(handed.check()) == ("clock", 1)
    assert handed.check(simulated=True).exit_code == 0


def test_a_witness_whose_key_was_given_vouches_for_the_time_and_may_contradict_the_entry(handed: Handed) -> None:
    def cosigned(time: int) -> Note:
        note = handed.ledger.checkpoint()
        return note._replace(signatures=(*note.signatures, WITNESS.cosign(note.text, time=time)))

    handed.write(3, cosigned(SEEN))
    assert handed.check().steps[-1].says == "asserted by example.org/acme; 1 signatures of keys not given"
    handed.keys.write_text(handed.keys.read_text() + WITNESS.key.encode() + "\n")
    assert handed.check().time == "witnessed"
    handed.write(3, cosigned(1_000_000_000))
    assert _failed(handed.check()) == ("time", 1)


def test_a_proof_without_its_entry_and_options_of_another_kind_are_wrong_input(handed: Handed) -> None:
    proof, keys, entry = str(handed.proof), str(handed.keys), str(handed.entry)
    for report, said in (
        (check_file(proof, keys), "without its entry"),
        (check_file(proof, keys, entry=entry, opening=entry), "--opening goes with a certificate"),
        (check_file(entry, keys, entry=entry), "--entry goes with a tlog-proof"),
        (check_file(proof, keys, entry=entry + "none"), "cannot be read"),
    ):
        assert report.failed is not None
        assert (report.exit_code, report.steps) == (2, ())
        assert said in report.failed.message
        assert report.failed.hint
