"""Signed notes, checkpoints and cosignatures (C2SP), with the examples that the specifications publish."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import EbbtideError, InputError, ProofError
from ebbtide.ledger.note import COSIGNATURE, Checkpoint, Note, Signer, VerifierKey, parse_decimal, sign

# signed-note.md, "Verifier keys": a key and the note that it verifies.
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE_NOTE = (
    "This is an example message.\n"
    "\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
).encode()
# signed-note.md, the note at its beginning: its text holds empty lines.
POEM = (
    "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n"
    "— quasimodo.example/salvatore "
    "NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
).encode()
# tlog-cosignature.md: a checkpoint with a log's signature and a witness's.
COSIGNED = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa "
    "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 "
    "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
).encode()

ORIGIN = "example.org/ledger"
HEAD = Checkpoint(ORIGIN, 7, bytes(range(32)))


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer.generate(ORIGIN)


@pytest.fixture(scope="module")
def witness() -> Signer:
    return Signer.generate("witness.example/w1", algorithm=COSIGNATURE)


def test_the_published_example_verifies_with_its_published_key() -> None:
    key = VerifierKey.parse(EXAMPLE_KEY)
    note = Note.parse(EXAMPLE_NOTE)
    assert [(item.key.name, item.time) for item in note.verify([key])] == [("example.com/foo", None)]
    assert note.text == "This is an example message.\n"
    assert (key.encode(), note.encode()) == (EXAMPLE_KEY, EXAMPLE_NOTE)


def test_any_changed_byte_of_the_published_example_is_refused() -> None:
    key = VerifierKey.parse(EXAMPLE_KEY)
    for position in range(len(EXAMPLE_NOTE)):
        for flip in (0x01, 0x20, 0x80):
            changed = bytearray(EXAMPLE_NOTE)
            changed[position] ^= flip
            with pytest.raises(EbbtideError):
                Note.parse(bytes(changed)).verify([key])


def test_the_text_ends_at_the_last_empty_line() -> None:
    note = Note.parse(POEM)
    assert note.text.endswith("sole:\n\ned è subito sera.\n")
    assert note.encode() == POEM


def test_the_published_checkpoint_and_its_cosignature_are_read() -> None:
    note = Note.parse(COSIGNED)
    checkpoint = Checkpoint.parse(note.text)
    assert (checkpoint.origin, checkpoint.size, len(checkpoint.root)) == ("example.com/behind-the-sofa", 20852163, 32)
    assert checkpoint.text() == note.text
    # The specification shows this cosignature's time in the message that it signs.
    assert int.from_bytes(note.signatures[1].signature[:8]) == 1679315147


def test_several_signatures_verify_together(signer: Signer, witness: Signer) -> None:
    other = Signer.generate(ORIGIN)
    note = sign(HEAD.text(), [signer, other])
    note = note._replace(signatures=(*note.signatures, witness.cosign(note.text, time=1_800_000_000)))
    read = Note.parse(note.encode())
    assert read.verify([signer.key, other.key, witness.key]) == (
        (signer.key, None),
        (other.key, None),
        (witness.key, 1_800_000_000),
    )


def test_signatures_of_unknown_keys_are_ignored(signer: Signer) -> None:
    namesake, stranger = Signer.generate(ORIGIN), Signer.generate("example.org/stranger")
    note = sign(HEAD.text(), [stranger, signer, namesake])
    assert [item.key for item in note.verify([signer.key])] == [signer.key]


def test_a_note_without_a_known_key_is_refused_with_expected_and_found(signer: Signer) -> None:
    stranger = Signer.generate("example.org/stranger")
    with pytest.raises(ProofError) as caught:
        sign(HEAD.text(), [stranger]).verify([signer.key])
    assert signer.key.key_hash.hex() in caught.value.expected
    assert stranger.key.key_hash.hex() in caught.value.found
    with pytest.raises(ProofError):
        sign(HEAD.text(), [signer]).verify([])


def test_one_bad_signature_of_a_known_key_refuses_the_whole_note(signer: Signer, witness: Signer) -> None:
    good = sign(HEAD.text(), [signer])
    stale = sign(HEAD._replace(size=6).text(), [signer]).signatures
    early = witness.cosign(good.text, time=1_800_000_000)
    moved = early._replace(signature=(1_800_000_001).to_bytes(8) + early.signature[8:])
    for bad in (stale, (moved,), (early._replace(signature=early.signature[:40]),)):
        with pytest.raises(ProofError, match="does not verify"):
            good._replace(signatures=good.signatures + bad).verify([signer.key, witness.key])


def test_a_cosignature_is_no_signature_of_the_text(witness: Signer) -> None:
    same = VerifierKey(witness.key.name, 1, witness.key.public)
    assert same.key_hash != witness.key.key_hash
    note = Note(HEAD.text(), (witness.cosign(HEAD.text(), time=1),))
    with pytest.raises(ProofError):
        note.verify([same])


def test_a_cosignature_from_beyond_2_63_seconds_is_refused(witness: Signer) -> None:
    note = Note(HEAD.text(), (witness.cosign(HEAD.text(), time=2**63),))
    with pytest.raises(ProofError):
        note.verify([witness.key])


def test_keys_are_read_back_and_the_private_one_never_prints_itself(signer: Signer) -> None:
    again = Signer.parse(signer.encode())
    assert again.key == signer.key == VerifierKey.parse(signer.key.encode())
    assert again.sign("x\n") == signer.sign("x\n")
    secret = signer.encode().split("+", 4)[4]
    assert secret not in f"{signer!r} {signer}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/foo",
        "example.com/foo+530d903a",
        "example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/fop+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2l",
        "example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "a b+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        EXAMPLE_KEY + "\n",
    ],
)
def test_a_verifier_key_that_was_changed_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        VerifierKey.parse(text)


@pytest.mark.parametrize("text", ["", "PRIVATE+KEY+", "PRIVATE+KEY+a+00000000+AA==", EXAMPLE_KEY, "x" * 100])
def test_a_signing_key_that_was_changed_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Signer.parse(text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        EXAMPLE_NOTE[:-1],
        EXAMPLE_NOTE + b"\n",
        EXAMPLE_NOTE + b"x\n",
        EXAMPLE_NOTE.replace(b"\xe2\x80\x94", b"-"),
        EXAMPLE_NOTE.replace(b"This", b"Th\tis"),
        EXAMPLE_NOTE.replace(b"This", b"Th\x00is"),
        EXAMPLE_NOTE.replace(b"This", b"Th\xffis"),
        EXAMPLE_NOTE.replace(b"\n", b"\r\n"),
        EXAMPLE_NOTE.replace(b"foo ", b"foo  "),
        EXAMPLE_NOTE.replace(b"foo ", b"f+o "),
        EXAMPLE_NOTE.replace(b"foo ", "f\u00a0o ".encode()),
        b"text\n\n" + "— name AAAAAA==\n".encode(),
        b"x" * 1_000_001,
    ],
)
def test_what_is_no_signed_note_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        Note.parse(data)


def test_a_hundred_signatures_are_taken_and_one_more_is_refused(signer: Signer) -> None:
    line = signer.sign("x\n").line()
    assert len(Note.parse(("x\n\n" + line * 100).encode()).verify([signer.key])) == 100
    with pytest.raises(InputError, match="more than 100"):
        Note.parse(("x\n\n" + line * 101).encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o\n1\n",
        "o\n1\nAAAA\n",
        HEAD.text().rstrip("\n"),
        HEAD.text() + "\n",
        "\n" + HEAD.text(),
        HEAD.text().replace("\n7\n", "\n07\n"),
        HEAD.text().replace("\n7\n", "\n-7\n"),
        HEAD.text().replace("\n7\n", "\n+7\n"),
        HEAD.text().replace("\n7\n", "\n٧\n"),
        HEAD.text().replace("\n7\n", "\n²\n"),
        HEAD.text().replace("\n7\n", "\n1_0\n"),
        HEAD.text().replace("\n7\n", f"\n{2**63}\n"),
        HEAD.text().replace("\n7\n", "\n" + "9" * 5_000 + "\n"),
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Checkpoint.parse(text)


def test_extension_lines_and_the_largest_size_are_kept() -> None:
    head = Checkpoint(ORIGIN, 2**63 - 1, bytes(32), ("one", "two"))
    assert Checkpoint.parse(head.text()) == head
    assert parse_decimal("0") == 0


@pytest.mark.parametrize("text", ["no newline", "tab\t\n", "surrogate\ud800\n"])
def test_a_text_that_no_note_may_hold_is_not_signed(signer: Signer, text: str) -> None:
    with pytest.raises(InputError):
        sign(text, [signer])


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="+"), min_size=1)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n")).map(lambda text: text + "\n")


@settings(deadline=None)
@given(NAMES, TEXTS)
def test_every_note_is_read_back(name: str, text: str) -> None:
    signer = Signer.generate(name)
    note = sign(text, [signer])
    assert Note.parse(note.encode()) == note
    assert note.verify([VerifierKey.parse(signer.key.encode())])


@settings(deadline=None)
@given(st.binary(max_size=300) | st.text(alphabet="— \nabAB=+01\u00a0", max_size=200).map(lambda text: text.encode()))
def test_arbitrary_bytes_are_a_note_or_refused(data: bytes) -> None:
    try:
        note = Note.parse(data)
    except InputError:
        return
    assert note.encode() == data
    try:
        Checkpoint.parse(note.text)
    except InputError:
        return
