"""A certificate holds, or the first step that does not is named with what was expected and found."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger import dsse
from ebbtide.ledger.certificate import Certificate, build, statement
from ebbtide.ledger.check import CheckReport, check
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.entries import Intent, Outcome
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.leaf import LISTED, LoggedEntry, listing, read_body
from ebbtide.ledger.note import COSIGNATURE, Signer
from ebbtide.ledger.request_entries import CertificateKey, EarlierEntry, RequestCertified, RequestReceived
from ebbtide.ledger.request_entries import Verified as EntryVerified
from ebbtide.ledger.summary import summarise
from ebbtide.model.canonical import dumps
from tests.ledger.erasure import REQUEST, SECRET, Erasure, closed
from tests.ledger.forest import ORIGIN, MemoryLedger

WITNESS = Signer.generate("witness.example/w1", algorithm=COSIGNATURE)
NAMES = ["certificate", "checkpoint", "inclusion", "entries", "claims", "clock", "summary", "statement", "time"]


@pytest.fixture(scope="module", params=[False, True], ids=["single", "batch"])
def erasure(request: pytest.FixtureRequest) -> Erasure:
    return closed(batched=request.param)


@pytest.fixture(scope="module")
def good(erasure: Erasure) -> Certificate:
    return erasure.certificate()


def signed_again(certificate: Certificate, signer: Signer) -> Certificate:
    """What a cheat with the certificates' key could issue: everything after the entries is made to fit."""
    summary = summarise(certificate.entries, certificate.told, certificate.proof.note)
    payload = statement(certificate.entries, certificate.proof, summary)
    return certificate._replace(summary=summary, envelope=dsse.sign(dsse.STATEMENT_TYPE, payload, signer))


def failed_at(report: CheckReport, name: str) -> ProofError:
    assert not report
    assert report.steps[-1].name == name
    assert [step.ok for step in report.steps] == [True] * (len(report.steps) - 1) + [False]
    assert isinstance(report.failed, ProofError)
    assert report.exit_code == 1
    return report.failed


def test_a_good_certificate_holds_and_every_step_says_so(erasure: Erasure, good: Certificate) -> None:
    report = check(good.encode(), erasure.trust())
    assert report
    assert report.exit_code == 0
    assert [step.name for step in report.steps] == NAMES
    assert [step.number for step in report.steps] == list(range(1, 10))
    assert (report.request, report.time) == (REQUEST, "asserted")


def test_a_certificate_is_read_back(good: Certificate) -> None:
    assert Certificate.parse(good.encode()) == good


def test_an_opening_opens_the_commitments_and_nobody_prints_it(erasure: Erasure, good: Certificate) -> None:
    report = check(good.encode(), erasure.trust(), opening=erasure.opening)
    assert report
    assert report.steps[-1].name == "opening"
    assert "user_id, email" in report.steps[-1].says
    assert SECRET not in repr(report)
    assert SECRET not in good.encode().decode()


def test_the_order_of_the_identifiers_does_not_matter(erasure: Erasure, good: Certificate) -> None:
    opening = Opening(REQUEST, erasure.opening.key, tuple(reversed(erasure.opening.identifiers)))
    assert check(good.encode(), erasure.trust(), opening=opening)


def test_another_opening_is_refused(erasure: Erasure, good: Certificate) -> None:
    key, identifiers = erasure.opening.key, erasure.opening.identifiers
    for opening in (
        Opening(REQUEST, new_key(), identifiers),
        Opening(REQUEST, key, identifiers[:1]),
        Opening(REQUEST, key, (*identifiers, identifiers[0])),
        Opening(REQUEST, key, (Identifier("user_id", "8841303"), identifiers[1])),
        Opening("r-other", key, identifiers),
    ):
        error = failed_at(check(good.encode(), erasure.trust(), opening=opening), "opening")
        assert SECRET not in f"{error!r}{error.expected}{error.found}"


def test_a_checkpoint_of_an_untrusted_key_or_another_ledger_is_refused(erasure: Erasure, good: Certificate) -> None:
    stranger = Trust((TrustedKey(Signer.generate(ORIGIN).key),))
    error = failed_at(check(good.encode(), stranger), "checkpoint")
    assert error.expected == f"{ORIGIN}+{stranger.ledger[0].key.key_hash.hex()}"
    assert error.found == f"{ORIGIN}+{erasure.ledger.signer.key.key_hash.hex()}"
    other = Trust((TrustedKey(Signer.generate("example.org/other").key),))
    assert failed_at(check(good.encode(), other), "checkpoint").expected == "example.org/other"


def test_a_proof_of_another_entry_is_refused(erasure: Erasure, good: Certificate) -> None:
    later = good._replace(proof=erasure.ledger.prove(erasure.ledger.size - 1))
    assert failed_at(check(later.encode(), erasure.trust()), "inclusion").what == "entry of the proof"


def test_an_entry_that_the_ledger_does_not_hold_is_refused(erasure: Erasure, good: Certificate) -> None:
    last = good.bodies[-1] | {"state": "certified with exceptions"}
    entries = (*good.entries[:-1], LoggedEntry(good.entries[-1].leaf_index, dumps(last)))
    forged = signed_again(good._replace(entries=entries, bodies=(*good.bodies[:-1], last)), erasure.signer)
    assert failed_at(check(forged.encode(), erasure.trust()), "inclusion").what == "inclusion proof: root hash"


def test_a_changed_left_out_or_added_entry_is_refused_though_the_cheat_signs_again(
    erasure: Erasure, good: Certificate
) -> None:
    def forged(place: int, *replacement: tuple[LoggedEntry, dict[str, Any]]) -> CheckReport:
        entries = good.entries[:place] + tuple(item[0] for item in replacement) + good.entries[place + 1 :]
        bodies = good.bodies[:place] + tuple(item[1] for item in replacement) + good.bodies[place + 1 :]
        return check(
            signed_again(good._replace(entries=entries, bodies=bodies), erasure.signer).encode(), erasure.trust()
        )

    changed = good.bodies[2] | {"files": 4}
    index = good.entries[2].leaf_index
    error = failed_at(forged(2, (LoggedEntry(index, dumps(changed)), changed)), "entries")
    assert error.what == f"leaf hash of entry {index}"
    assert error.expected == good.entries[2].hash.hex()
    assert error.found == LoggedEntry(index, dumps(changed)).hash.hex()
    assert failed_at(forged(2), "entries").found == "none"
    stray = LoggedEntry(0, erasure.ledger.leaves[0])
    error = failed_at(forged(0, (stray, read_body(stray.leaf)), (good.entries[0], good.bodies[0])), "entries")
    assert error.found == "entry 0, which no other lists"


def test_a_changed_summary_is_refused_by_its_key(erasure: Erasure, good: Certificate) -> None:
    lie = good._replace(summary=good.summary | {"title": "Erasure request r-7f3c: certified, and audited"})
    error = failed_at(check(lie.encode(), erasure.trust()), "summary")
    assert error.what == "summary: title"
    assert error.expected == '"Erasure request r-7f3c: certified"'
    for summary in ({}, good.summary | {"more": True}, good.summary | {"simulated": 1}):
        assert failed_at(check(good._replace(summary=summary).encode(), erasure.trust()), "summary")


def test_a_statement_of_another_key_or_about_something_else_is_refused(erasure: Erasure, good: Certificate) -> None:
    stranger = Signer.generate(f"{ORIGIN}/certificates")
    error = failed_at(check(signed_again(good, stranger).encode(), erasure.trust()), "statement")
    assert error.expected == erasure.signer.key.key_hash.hex()
    for kind, payload in (
        (dsse.STATEMENT_TYPE, good.envelope.payload.replace(b'"proof"', b'"other"')),
        (dsse.STATEMENT_TYPE, good.envelope.payload + b" "),
        (dsse.STATEMENT_TYPE, b""),
        ("application/json", good.envelope.payload),
    ):
        forged = good._replace(envelope=dsse.sign(kind, payload, erasure.signer))
        assert failed_at(check(forged.encode(), erasure.trust()), "statement")


def test_the_statement_is_an_in_toto_statement_over_every_entry_and_the_proof(good: Certificate) -> None:
    found = json.loads(good.envelope.payload)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    leaves = [entry.batch.leaf for entry in good.entries if entry.batch]
    assert [item["digest"]["sha256"] for item in found["subject"]] == [
        hashlib.sha256(data).hexdigest()
        for data in [*(entry.leaf for entry in good.entries), *leaves, good.proof.encode()]
    ]
    assert found["predicate"] == good.summary


def test_a_simulated_clock_is_refused_unless_it_is_asked_for() -> None:
    erasure = closed(simulated=True)
    certificate = erasure.certificate()
    assert certificate.summary["simulated"] is True
    error = failed_at(check(certificate.encode(), erasure.trust()), "clock")
    assert error.hint is not None
    assert "--simulated" in error.hint
    assert check(certificate.encode(), erasure.trust(), simulated=True)


def test_one_simulated_entry_is_enough_to_refuse() -> None:
    erasure = Erasure()
    erasure.note(erasure.write("request.moved", request=REQUEST, state="verified", simulated=True))
    erasure.close()
    failed_at(check(erasure.certificate().encode(), erasure.trust()), "clock")


def test_a_real_certificate_holds_with_the_simulated_flag_too(erasure: Erasure, good: Certificate) -> None:
    assert check(good.encode(), erasure.trust(), simulated=True)


# ---- time ----


def witnessed(erasure: Erasure, *, time: int) -> Certificate:
    note = erasure.ledger.checkpoint()
    return erasure.certificate(note._replace(signatures=(*note.signatures, WITNESS.cosign(note.text, time=time))))


def test_time_is_witnessed_only_for_who_has_the_witnesses_key(erasure: Erasure) -> None:
    certificate = witnessed(erasure, time=1_769_900_000)
    assert certificate.summary["time"] == {
        "kind": "witnessed",
        "witnesses": [
            {"name": WITNESS.key.name, "key": WITNESS.key.key_hash.hex(), "at": "2026-01-31T22:53:20.000000Z"}
        ],
    }
    assert check(certificate.encode(), erasure.trust(WITNESS)).time == "witnessed"
    report = check(certificate.encode(), erasure.trust())
    assert report.time == "asserted"
    assert "not given" in report.steps[-1].says


def test_a_certificate_without_a_witness_says_that_its_time_is_asserted(good: Certificate) -> None:
    assert good.summary["time"] == {"kind": "asserted", "by": ORIGIN}


def test_an_entry_from_after_its_witness_saw_it_is_refused(erasure: Erasure) -> None:
    # The last entry was written on 2026-01-31 at 06:07.
    assert check(witnessed(erasure, time=1_769_839_400).encode(), erasure.trust(WITNESS)), "clocks may differ a little"
    early = witnessed(erasure, time=1_769_830_000)
    for simulated in (False, True):
        report = check(early.encode(), erasure.trust(WITNESS), simulated=simulated)
        assert failed_at(report, "time").found == "2026-01-31T06:07:00.000000Z"
    rehearsal = closed(simulated=True)
    assert check(witnessed(rehearsal, time=1_769_830_000).encode(), rehearsal.trust(WITNESS), simulated=True)


def test_a_cosignature_that_does_not_verify_is_refused(erasure: Erasure) -> None:
    note = erasure.ledger.checkpoint()
    stale = WITNESS.cosign(erasure.ledger.checkpoint(size=3).text, time=1_769_900_000)
    certificate = erasure.certificate(note._replace(signatures=(*note.signatures, stale)))
    failed_at(check(certificate.encode(), erasure.trust(WITNESS)), "checkpoint")


# ---- rotation ----


def test_after_a_rotation_old_and_new_certificates_hold_and_the_old_key_does_not_reach_further() -> None:
    erasure = closed()
    old, before = erasure.ledger.signer, erasure.certificate()
    new = Signer.generate(ORIGIN)
    erasure.write("ledger.rotated", old=old.key.encode(), new=new.key.encode())
    both, size = erasure.ledger.checkpoint(new), erasure.ledger.size
    at_rotation = erasure.certificate(both)
    erasure.write("hold.added", dataset="lake.app.events")
    by_old = erasure.certificate(erasure.ledger.checkpoint())
    erasure.ledger.signer = new
    after = erasure.certificate()
    trust = Trust((TrustedKey(new.key), TrustedKey(old.key, size)))
    for certificate in (before, at_rotation, after):
        assert check(certificate.encode(), trust)
    error = failed_at(check(by_old.encode(), trust), "checkpoint")
    assert (error.expected, error.found) == (f"at most {size}", str(size + 1))
    failed_at(check(after.encode(), Trust((TrustedKey(old.key),))), "checkpoint")
    assert check(at_rotation.encode(), Trust((TrustedKey(old.key),)))
    assert check(at_rotation.encode(), Trust((TrustedKey(new.key),)))


# ---- claims ----


def refused(erasure: Erasure, step: str = "claims") -> ProofError:
    """What `build` refuses, and what `check` says of it when a cheat signs it all the same."""
    proof = erasure.ledger.prove(erasure.entries[-1].leaf_index)
    with pytest.raises(ProofError) as caught:
        build(erasure.entries, proof, erasure.signer)
    entries = tuple(sorted(erasure.entries))
    bodies = tuple(read_body(entry.leaf) for entry in entries)
    empty = dsse.sign(dsse.STATEMENT_TYPE, b"", erasure.signer)
    forged = signed_again(Certificate(entries, bodies, proof, empty, {}), erasure.signer)
    error = failed_at(check(forged.encode(), erasure.trust()), step)
    assert error.message == caught.value.message
    return error


def test_certified_means_that_the_last_search_of_every_place_found_nothing() -> None:
    erasure = Erasure()
    erasure.verify("lake.app.events", found=2)
    erasure.verify("lake.app.events", found=0)
    erasure.close()
    assert check(erasure.certificate().encode(), erasure.trust())

    erasure = Erasure()
    erasure.verify("lake.app.events", found=0)
    erasure.verify("lake.app.events", found=2)
    erasure.close()
    assert refused(erasure).found == "2 found, 0 not readable"


def test_certified_means_that_the_last_search_could_read_everything() -> None:
    erasure = Erasure()
    erasure.verify("lake.app.events", unread=1)
    erasure.close()
    assert refused(erasure).found == "0 found, 1 not readable"


def test_certified_without_a_search_for_every_commitment_is_refused() -> None:
    erasure = Erasure()
    erasure.entries.pop()
    erasure.verify("lake.app.users", commitments=[erasure.opening.commitments()[0]])
    erasure.close()
    assert erasure.opening.commitments()[1] in refused(erasure).what


def test_certified_with_exceptions_may_leave_a_place() -> None:
    erasure = Erasure()
    erasure.verify("lake.app.payments", found=1, unread=2)
    erasure.close(state="certified with exceptions", exceptions=[RETAINED, UNREAD])
    certificate = erasure.certificate()
    assert check(certificate.encode(), erasure.trust())
    assert certificate.summary["title"] == f"Erasure request {REQUEST}: certified with exceptions"


RETAINED = {"place": "lake.app.payments", "outcome": "retained", "basis": "tax law", "until": "2033-12-31"}
UNREAD = {"place": "lake.app.payments", "outcome": "not readable", "basis": "2 objects"}


def test_certified_with_exceptions_and_none_or_with_the_wrong_ones_is_refused() -> None:
    for found, unread, exceptions in (
        (0, 0, []),
        (1, 0, [UNREAD]),
        (0, 1, [RETAINED]),
        (1, 2, [RETAINED]),
        (1, 0, [{**RETAINED, "place": "lake.app.users"}]),
    ):
        erasure = Erasure()
        erasure.verify("lake.app.payments", found=found, unread=unread)
        erasure.close(state="certified with exceptions", exceptions=exceptions)
        assert "exception" in refused(erasure).what


def test_certified_with_what_is_left_is_refused() -> None:
    erasure = Erasure()
    erasure.close(exceptions=[RETAINED])
    assert refused(erasure).found == "lake.app.payments"


@pytest.mark.parametrize(
    "exception",
    [
        {},
        1,
        {**RETAINED, "basis": ""},
        {**RETAINED, "outcome": "fine"},
        {**RETAINED, "until": "2033-13-31"},
        {**RETAINED, "until": 2033},
        {key: value for key, value in RETAINED.items() if key != "until"},
        {**UNREAD, "more": 1},
    ],
)
def test_an_exception_that_does_not_say_what_is_left_where_and_why_is_not_readable(exception: Any) -> None:
    erasure = Erasure()
    erasure.close(state="certified with exceptions", exceptions=[exception])
    with pytest.raises(InputError):
        erasure.certificate()


@pytest.mark.parametrize(
    "work",
    [
        {"kind": "act.intent", "act": "a", "verb": "erase", "requests": ["r-other", REQUEST]},
        {"kind": "act.outcome", "act": "a", "result": "done", "request": REQUEST},
        {"kind": "request.moved", "request": REQUEST, "state": "deleted"},
        {"kind": "never.heard-of", "request": REQUEST},
    ],
)
def test_a_search_before_the_last_work_counts_for_nothing(work: dict[str, Any]) -> None:
    erasure = Erasure()
    erasure.note(erasure.write(**work))
    erasure.close()
    assert refused(erasure).what.endswith("after the last work on the request")
    erasure.entries.pop()
    erasure.verify("lake.app.users")
    erasure.close()
    assert check(erasure.certificate().encode(), erasure.trust())


def test_a_search_that_began_before_the_last_work_ended_counts_for_nothing() -> None:
    erasure = Erasure()
    worked = erasure.note(erasure.write("act.outcome", act="a", result="done", request=REQUEST))
    minute = erasure.minute
    erasure.verify("lake.app.users", began_at=erasure.at(minute - 1))
    erasure.close()
    assert refused(erasure).what.endswith("that began after the last work on the request")
    for began_at in (read_body(worked.leaf)["at"], erasure.at(minute + 1)):
        erasure.entries.pop()
        erasure.verify("lake.app.users", began_at=began_at)
        erasure.close()
        assert check(erasure.certificate().encode(), erasure.trust())


def test_a_place_that_was_searched_again_only_before_the_last_work_ended_is_not_searched() -> None:
    erasure = Erasure()
    erasure.verify("lake.app.events")
    erasure.note(erasure.write("erase.deleted", request=REQUEST))
    began_at = erasure.at(erasure.minute - 1)
    erasure.verify("lake.app.users")
    erasure.verify("lake.app.events", began_at=began_at)
    erasure.close()
    assert "lake.app.events" in refused(erasure).what


def test_a_word_about_the_request_is_no_work() -> None:
    erasure = Erasure()
    erasure.note(erasure.write("request.moved", request=REQUEST, state="verified"))
    erasure.close()
    assert check(erasure.certificate().encode(), erasure.trust())


def test_a_place_that_was_searched_before_the_last_work_must_be_searched_again() -> None:
    erasure = Erasure()
    erasure.verify("lake.app.events", found=3)
    erasure.note(erasure.write("erase.deleted", request=REQUEST))
    erasure.verify("lake.app.users")
    erasure.close()
    assert "lake.app.events" in refused(erasure).what


def test_no_search_no_certificate() -> None:
    for state, exceptions in (("certified", []), ("certified with exceptions", [RETAINED])):
        erasure = Erasure()
        erasure.entries.pop()
        erasure.close(state=state, exceptions=exceptions)
        assert "search for commitment" in refused(erasure).what


def test_a_certificate_without_its_receipt_or_with_two_is_refused() -> None:
    erasure = Erasure()
    del erasure.entries[1]
    erasure.close()
    assert (refused(erasure).expected, refused(erasure).found) == ("1", "0")
    erasure = Erasure()
    erasure.receive()
    erasure.close()
    assert refused(erasure).found == "2"


def test_a_receipt_that_comes_after_something_else_or_is_of_somebody_else_is_refused() -> None:
    erasure = Erasure()
    del erasure.entries[1]
    erasure.receive()
    erasure.verify("lake.app.users")
    erasure.close()
    assert refused(erasure).what == "first entry of the request"
    erasure = Erasure()
    erasure.close(commitments=[*erasure.opening.commitments(), "ab" * 32])
    assert refused(erasure).what == "commitments"


@pytest.mark.parametrize(
    "change",
    [
        {"inventory": "sha256:ab"},
        {"scanner": 1},
        {"found": -1},
        {"found": True},
        {"unread": "1"},
        {"began_at": 7},
        {"began_at": "2026-01-31"},
        {"began_at": "2027-01-31T06:00:00.000000Z"},
    ],
)
def test_a_search_that_does_not_say_what_it_read_is_not_readable(change: dict[str, Any]) -> None:
    erasure = Erasure()
    body = read_body(erasure.entries.pop().leaf)
    erasure.note(erasure.write(**{**{k: v for k, v in body.items() if k not in ("v", "at")}, **change}))
    erasure.close()
    with pytest.raises(InputError):
        erasure.certificate()


# ---- batches ----


def _batched_at(erasure: Erasure) -> int:
    (place,) = [place for place, entry in enumerate(erasure.entries) if entry.batch]
    return place


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda _: None, "entry of kind request.batch"),
        (lambda batch: batch._replace(leaf_index=0), "inclusion proof: number of hashes"),
        (lambda batch: batch._replace(leaf_index=9), "inclusion proof: index"),
        (lambda batch: batch._replace(path=batch.path[:-1]), "inclusion proof: number of hashes"),
        (lambda batch: batch._replace(path=batch.path[::-1]), "inclusion proof: root hash"),
        (lambda batch: batch._replace(leaf=batch.leaf.replace(b"gdpr", b"dpdp")), "inclusion proof: root hash"),
    ],
)
def test_a_leaf_that_the_root_of_its_batch_does_not_prove_is_refused(change: Any, what: str) -> None:
    erasure = Erasure(batched=True)
    place = _batched_at(erasure)
    erasure.close()
    good = erasure.certificate()
    entries = list(good.entries)
    entries[place] = entries[place]._replace(batch=change(entries[place].batch))
    forged = good._replace(entries=tuple(entries))
    assert failed_at(check(forged.encode(), erasure.trust()), "entries").what == what


def test_a_batch_with_an_entry_that_is_none_is_refused() -> None:
    erasure = Erasure(batched=True)
    place = _batched_at(erasure)
    batch = erasure.entries[place].batch
    erasure.close()
    good = erasure.certificate()
    entries = (*good.entries[:-1], good.entries[-1]._replace(batch=batch))
    assert failed_at(check(good._replace(entries=entries).encode(), erasure.trust()), "entries").what == (
        "batch of an entry"
    )


@pytest.mark.parametrize(
    ("leaf", "batch", "what"),
    [
        ({"kind": "request.moved"}, {}, "kind of a leaf in a batch"),
        ({"at": "2026-01-30T06:00:00.000000Z"}, {}, "at of a leaf in a batch"),
        ({"simulated": True}, {}, "simulated of a leaf in a batch"),
        ({}, {"simulated": True}, "simulated of a leaf in a batch"),
        ({}, {"of": "request.verified"}, "kind of a leaf in a batch"),
        ({}, {"count": 4}, "inclusion proof: index"),
        ({}, {"root": "00" * 32}, "inclusion proof: root hash"),
    ],
)
def test_a_leaf_that_is_not_of_its_batch_is_refused(leaf: dict[str, Any], batch: dict[str, Any], what: str) -> None:
    erasure = Erasure()
    del erasure.entries[1:]
    own = {"request": REQUEST, "law": "gdpr", "commitments": list(erasure.opening.commitments())}
    others = [{**own, "request": f"r-{number}"} for number in range(4)]
    erasure.note(erasure.write_batch("request.received", others, own, leaf=leaf, **batch))
    erasure.verify("lake.app.users")
    erasure.close()
    with pytest.raises(ProofError) as caught:
        erasure.certificate()
    assert caught.value.what == what


def test_a_leaf_of_another_request_is_refused() -> None:
    erasure = Erasure()
    del erasure.entries[1:]
    own = {"request": "r-9", "law": "gdpr", "commitments": list(erasure.opening.commitments())}
    erasure.note(erasure.write_batch("request.received", [{**own, "request": REQUEST}], own))
    erasure.verify("lake.app.users")
    erasure.close()
    assert refused(erasure).found == "r-9"


def test_a_search_for_many_is_a_search_for_each() -> None:
    erasure = Erasure()
    body = read_body(erasure.entries.pop().leaf)
    own = {key: value for key, value in body.items() if key not in ("v", "kind", "at")}
    erasure.note(erasure.write_batch("request.verified", [{**own, "request": "r-1", "found": 7}], own))
    erasure.close()
    certificate = erasure.certificate()
    assert check(certificate.encode(), erasure.trust(), opening=erasure.opening)
    assert "r-1" not in certificate.encode().decode()


# ---- who else's ----


def test_an_entry_that_names_no_request_is_refused() -> None:
    erasure = Erasure()
    erasure.note(erasure.write("hold.placed", hold="h"))
    erasure.verify("lake.app.users")
    erasure.close()
    assert refused(erasure).found == "none"


def test_an_entry_of_another_request_is_refused() -> None:
    erasure = Erasure()
    erasure.note(erasure.write("request.received", request="r-other"))
    erasure.close()
    assert refused(erasure).found == "r-other"


def test_a_certificate_without_or_with_two_keys_is_refused() -> None:
    erasure = Erasure()
    erasure.entries.pop(0)
    erasure.close()
    assert refused(erasure, "statement").found == "0"
    erasure = Erasure()
    erasure.note(erasure.write("certificate.key", key=erasure.signer.key.encode()))
    erasure.close()
    assert refused(erasure, "statement").found == "2"


def test_an_entry_that_lists_itself_or_a_later_one_is_refused() -> None:
    erasure = Erasure()
    later = LoggedEntry(erasure.ledger.size + 1, b"{}")
    erasure.note(erasure.write(LISTED, request=REQUEST, entries=listing([later])))
    erasure.close()
    assert refused(erasure, "entries").found == str(later.leaf_index)


def test_a_request_too_long_for_one_listing_is_covered_by_entries_that_list() -> None:
    erasure = Erasure()
    listed: list[LoggedEntry] = []
    for number in range(1_200):
        erasure.minute = 10
        erasure.note(erasure.write("erase.deleted", request=REQUEST, place=f"lake.app.t{number}"))
    erasure.verify("lake.app.users")
    for start in range(0, len(erasure.entries), 500):
        chunk = listing(erasure.entries[start : start + 500])
        erasure.minute = 20
        listed.append(erasure.write(LISTED, request=REQUEST, entries=chunk))
    erasure.entries += listed
    erasure.close(entries=listing(listed))
    certificate = erasure.certificate()
    assert check(certificate.encode(), erasure.trust())
    # One entry less in the certificate is one that a listing names and nobody can see.
    cut = certificate._replace(
        entries=certificate.entries[:700] + certificate.entries[701:],
        bodies=certificate.bodies[:700] + certificate.bodies[701:],
    )
    failed_at(check(signed_again(cut, erasure.signer).encode(), erasure.trust()), "entries")


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "planned"},
        {"state": 1},
        {"commitments": []},
        {"commitments": [1]},
        {"request": 7},
        {"entries": 1},
    ],
)
def test_a_last_entry_that_certifies_nothing_is_not_readable(changes: dict[str, Any]) -> None:
    erasure = Erasure()
    erasure.close(**changes)
    with pytest.raises((InputError, ProofError)):
        erasure.certificate()


def test_build_takes_the_entries_in_any_order_and_only_its_own_key(erasure: Erasure, good: Certificate) -> None:
    proof = good.proof
    assert build(list(reversed(good.entries)), proof, erasure.signer) == good
    with pytest.raises(ProofError, match="key that signs"):
        build(good.entries, proof, Signer.generate(f"{ORIGIN}/certificates"))
    with pytest.raises(ProofError, match="entry of the proof"):
        build(good.entries, erasure.ledger.prove(0), erasure.signer)
    with pytest.raises(InputError):
        build([], proof, erasure.signer)


def test_nothing_checked_is_not_good() -> None:
    assert not CheckReport((), None, None, None)
    assert CheckReport((), None, None, None).exit_code == 1


def test_a_certificate_of_typed_entries_holds() -> None:
    ledger, signer, key = MemoryLedger(), Signer.generate(f"{ORIGIN}/certificates"), new_key()
    at, opening = datetime(2026, 1, 31, 6, 30, tzinfo=UTC), Opening(REQUEST, key, (Identifier("user_id", SECRET),))
    typed: list[Entry] = [
        CertificateKey(at=at, key=signer.key.encode()),
        RequestReceived(
            at=at, request=REQUEST, law="gdpr", commitments=opening.commitments(), received_at=at, due_at=at
        ),
        Intent(at=at, act="a-1", verb="erase", requests=("r-other", REQUEST), version="9223372036854775807"),
        Outcome(at=at, act="a-1", result="done", requests=("r-other", REQUEST)),
        EntryVerified(
            at=at, request=REQUEST, place="lake.app.users", scanner="verify/1", inventory="sha256:" + "0" * 64,
            commitments=opening.commitments(), found=0, began_at=at,
        ),
    ]  # fmt: skip
    entries = ledger.append_leaves([entry.encode() for entry in typed])
    listed = tuple(EarlierEntry(index=entry.leaf_index, leaf=entry.hash.hex()) for entry in entries)
    last = RequestCertified(
        at=at, request=REQUEST, state="certified", commitments=opening.commitments(), entries=listed
    )
    entries += ledger.append_leaves([last.encode()])
    certificate = build(entries, ledger.prove(entries[-1].leaf_index), signer)
    assert check(certificate.encode(), Trust((TrustedKey(ledger.signer.key),)), opening=opening)


def test_the_story_shows_every_value_of_every_entry(good: Certificate) -> None:
    story = "\n".join(str(line) for line in good.summary["story"])  # type: ignore[union-attr]
    for text in ("law gdpr", "files 3", "version 9007199254740993", "scanner verify/1 read the objects of inventory"):
        assert text in story
    assert len(good.summary["story"]) == len(good.entries)  # type: ignore[arg-type]
