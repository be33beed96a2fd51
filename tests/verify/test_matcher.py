"""What of a value is found in which pieces, and what is told from it."""

from __future__ import annotations

import base64
import io
import json
import pickle
import struct
import uuid
from datetime import date
from decimal import Decimal
from urllib.parse import quote

import hyperscan
import numpy as np
import pyarrow as pa
import pytest

from ebbtide.verify.matcher import Matcher
from ebbtide.verify.needles import Needle, byte_forms, is_short
from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import Cells, Piece, Raw
from ebbtide.verify.scanner import Pattern, Scanner
from tests.verify.people import EMAIL, LONG, NUMBER, UUID, in_bytes, is_found, needle, search

PARSED = uuid.UUID(UUID.value)
BIG = needle("1234567890123456789", "bigint")
MONEY = needle("98765432109876543210.25", "decimal(24,2)")
NAME = needle("Jürgen Müller/ÄÖ")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 8841302, None], pa.int64()),
        pa.array([8841302], pa.int32()),
        pa.array([8841302], pa.uint64()),
        pa.array([Decimal(8841302)], pa.decimal128(20, 0)),
        pa.array([Decimal("8841302.00")], pa.decimal128(20, 2)),
        pa.array([Decimal(8841302)], pa.decimal256(60, 0)),
        pa.array([8841302.0, 1.5], pa.float64()),
        pa.array([8841302.0], pa.float32()),
        pa.array(["8841302"]),
        pa.array(["8841302"], pa.string_view()),
        pa.array(["0008841302", "x"]),
        pa.array(["+8841302"]),
        pa.array(["8841302.00"]),
        pa.array(['{"user": 8841302}'], pa.large_string()),
        pa.array(["user_8841302"]),
        pa.array(["user%208841302"]),
        pa.array(["a\\u00208841302 b"]),
        pa.array([b"8841302"]),
        pa.array([b"id=8841302;"], pa.large_binary()),
        pa.array([(8841302).to_bytes(8, "big")]),
        pa.array([(8841302).to_bytes(8, "little")], pa.binary(8)),
    ],
    ids=str,
)
def test_a_number_is_found_in_every_type_of_cell_that_can_hold_it(values: pa.Array) -> None:
    assert is_found(NUMBER, values) is True
    assert is_found(NUMBER, pa.concat_arrays([values[:0], values])[0:]) is True
    assert is_found(needle("8841303", "bigint", "string"), values) is not True


@pytest.mark.parametrize(
    "text",
    [
        "18841302", "88413021", "108841302", "12:00:00.8841302Z",
        "d3adbeef8841302f00", "0b5c9e1a-8841-302e-9a52-18841302aaaa", "8841-302", "88413 02",
    ],
)  # fmt: skip
def test_digits_of_another_number_a_time_or_a_hash_are_no_number_of_a_person(text: str) -> None:
    assert is_found(NUMBER, pa.array([text])) is False


def test_what_may_make_another_value_of_it_or_not_leaves_it_open() -> None:
    for text in ("8841302.5", "0.8841302", "part-123.8841302.parquet"):
        assert is_found(NUMBER, pa.array([text])) is None
    for text in ("j.anna@x.de", "anna@x.de.com", "export-anna@x.de.parquet"):
        assert is_found(EMAIL, pa.array([text])) is None


def test_digits_that_are_declared_as_text_are_found_where_they_are_stored_as_a_number() -> None:
    for wanted in (needle("8841302"), Needle("p1", "user_id", "8841302", frozenset())):
        for values in (pa.array([8841302]), pa.array([8841302], pa.int32()), pa.array(["8841302"])):
            assert is_found(wanted, values) is True
        assert is_found(wanted, pa.array([Decimal("8841302.00")], pa.decimal128(20, 2))) is True
        assert is_found(wanted, pa.array([8841303])) is False
        assert in_bytes(wanted, b"nothing at all") is False  # no form of bytes, so nothing is left open


def test_digits_that_may_be_more_than_a_number_or_mean_nothing_are_no_number() -> None:
    assert is_found(needle("08841302"), pa.array([8841302])) is False
    assert is_found(needle("88413"), pa.array([88413])) is False
    left_over = Cells("left over in a database page", "bytes", pa.array([8841302]))
    assert not search(needle("8841302"), left_over).found
    assert search(NUMBER, left_over).found


def test_numbers_that_floats_round_are_told_from_their_neighbours_where_they_can_be() -> None:
    far = needle(str(2**53 + 1), "bigint")
    assert is_found(far, pa.array([float(2**53 + 1)])) is True  # what became of it
    assert is_found(needle("123456789", "bigint"), pa.array([123456789.0], pa.float32())) is False


def test_what_lies_below_a_null_is_no_value() -> None:
    below = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([8841302, 5]).buffers()[1]])
    assert below.to_pylist() == [None, 5]
    assert is_found(NUMBER, below) is False


def test_slices_are_searched_in_their_own_rows() -> None:
    assert is_found(NUMBER, pa.array([8841302, 1])[1:]) is False
    assert is_found(NUMBER, pa.array([1, 8841302])[1:]) is True
    assert is_found(NUMBER, pa.array(["8841302", "1"])[1:]) is False
    assert is_found(NUMBER, pa.array(["1", "8841302"])[1:]) is True


def test_nothing_is_found_across_the_border_of_two_cells() -> None:
    assert is_found(NUMBER, pa.array(["884", "1302"])) is False
    assert is_found(NUMBER, pa.array(["1", "8841302", "2"])) is True
    assert is_found(EMAIL, pa.array(["anna@", "x.de"])) is False


@pytest.mark.parametrize("text", ["johanna@x.de", "anna@x.dev", "anna@x-de"])
def test_an_address_is_told_from_those_that_end_or_begin_like_it(text: str) -> None:
    assert is_found(EMAIL, pa.array([text])) is False


@pytest.mark.parametrize(
    "text",
    ["mailto:anna@x.de", "<anna@x.de>", "anna@x.de.", "to=anna%40x.de", "u%3Aanna@x.de", "anna%2540x.de",
     "\\nanna@x.de", "YW5uYUB4LmRl", "xxx" + base64.b64encode(b"1anna@x.de2").decode(), b"anna@x.de".hex(),
     b"anna@x.de".hex().upper()],
)  # fmt: skip
def test_an_address_is_found_inside_of_text_and_escaped(text: str) -> None:
    assert is_found(EMAIL, pa.array(["nothing", text])) is True


def test_case_counts_only_where_the_identity_says_so() -> None:
    assert is_found(EMAIL, pa.array(["Anna@X.de"])) is False
    for match in ("casefold", "normalised-email"):
        assert is_found(needle("anna@x.de", match=match), pa.array(["mail: Anna@X.DE"])) is True
    assert is_found(needle("jürgen müller", match="casefold"), pa.array(["JÜRGEN Müller"])) is True
    assert is_found(needle("jürgen müller", match="casefold"), pa.array(["JURGEN Muller"])) is False


@pytest.mark.parametrize(
    "values",
    [
        pa.array([UUID.value]), pa.array([UUID.value.upper()]), pa.array(["{" + UUID.value + "}"]),
        pa.array([UUID.value.replace("-", "")]), pa.array([PARSED.bytes], pa.binary(16)),
        pa.array([PARSED.bytes]), pa.array([b"\x00key" + PARSED.bytes + b"\x01"]),
        pa.array([base64.b64encode(PARSED.bytes).decode()]), pa.array([PARSED.bytes_le], pa.binary(16)),
    ],
    ids=str,
)  # fmt: skip
def test_a_uuid_is_found_in_any_spelling_and_as_its_sixteen_bytes(values: pa.Array) -> None:
    assert is_found(UUID, values) is True
    assert is_found(needle(UUID.value.replace("0b", "0c"), "string", "binary"), values) is False


def test_dates_are_compared_where_the_identity_is_one() -> None:
    born = needle("1969-07-20", "date")
    assert is_found(born, pa.array([date(1969, 7, 20)])) is True
    assert is_found(born, pa.array([date(1969, 7, 20)], pa.date64())) is True
    assert is_found(born, pa.array([date(1969, 7, 21)])) is False
    assert is_found(needle("1969-07-20"), pa.array([date(1969, 7, 20)])) is False


def test_short_values_are_found_as_whole_cells_and_left_open_inside_of_text() -> None:
    for value in ("7", "4711"):
        small = needle(value, "int", "string")
        assert is_found(small, pa.array([int(value)])) is True
        assert is_found(small, pa.array([value])) is True
        assert is_found(small, pa.array([f"user {value} was here"])) is None
        assert search(small, Cells("path", "path", pa.array([value]))).found == set()
    assert is_found(needle("4711", "int", "string"), pa.array(["147110"])) is False


@pytest.mark.parametrize("wanted", [EMAIL, UUID, BIG, MONEY, NAME, needle(LONG)], ids=lambda each: each.value)
def test_every_encoding_that_means_something_is_found_in_unknown_bytes(wanted: Needle) -> None:
    noise = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    searched = 0
    for form in byte_forms(wanted):
        if is_short(form.content):
            continue
        searched += 1
        assert in_bytes(wanted, noise + b"\x00" + form.content + b"\x00" + noise) is True, form.content
    assert searched >= 7
    assert search(wanted, Raw("file", noise, 0)).found == set()


def test_the_encodings_are_those_of_the_types() -> None:
    text = NAME.value
    wanted = [
        text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), quote(text, safe="").encode(),
        quote(text, safe="").replace("%C3", "%c3").replace("%BC", "%bc").replace("%2F", "%2f").encode(),
        text.encode().hex().encode(),
        base64.b64encode(text.encode()).rstrip(b"=")[:-1], json.dumps(text).encode(),
    ]  # fmt: skip
    assert all(in_bytes(NAME, b"\x01" + each + b"\x02\x03") is not False for each in wanted)
    for data in (struct.pack("<q", int(BIG.value)), struct.pack(">q", int(BIG.value))):
        assert in_bytes(BIG, b"..." + data + b"...") is True
    unscaled = 9876543210987654321025
    for data in (unscaled.to_bytes(10, "big"), unscaled.to_bytes(11, "big"), unscaled.to_bytes(16, "little")):
        assert in_bytes(MONEY, b"..." + data + b"...") is True
    assert in_bytes(needle("0x00112233445566778899", "binary"), bytes.fromhex("ff00112233445566778899ff")) is True


def test_a_number_that_is_short_in_bytes_cannot_be_told_from_unknown_ones() -> None:
    assert in_bytes(NUMBER, b"nothing at all") is None
    assert in_bytes(NUMBER, b"user 8841302 ") is True
    assert in_bytes(EMAIL, b"nothing at all") is False
    assert Matcher([EMAIL, NUMBER, BIG]).short == {1}


def test_a_value_is_found_across_two_chunks_of_bytes() -> None:
    data = b"x" * 100 + LONG.encode() + b"y" * 100
    for at in range(90, 150, 7):
        found = search(needle(LONG), Raw("file", data[:at], 0), Raw("file", data[at:], at))
        assert found.found == {(0, "bytes", "file")}
    one_by_one = [Raw("file", data[n : n + 1], n) for n in range(len(data))]
    assert search(needle(LONG), *one_by_one).found
    two = search(needle(LONG), Raw("a", data[:120], 0), Raw("b", data[120:], 0))
    assert not two.found


def test_many_people_are_told_apart_in_one_pass() -> None:
    people = [needle(f"user{n:07}@example.com", person=f"p{n}") for n in range(2000)]
    numbers = [needle(str(10**9 + n * 7919), "bigint", person=f"q{n}") for n in range(2000)]
    matcher = Matcher([*people, *numbers])
    cells = Cells("column mail", "row", pa.array([f"user{n:07}@example.com" for n in range(1990, 2010)]))
    ids = Cells("column id", "row", pa.array([10**9 + n * 7919 + n % 2 for n in range(1000)]))
    found = {n for n, _, _ in matcher.search(iter([cells, ids])).found}
    assert found == {*range(1990, 2000), *range(2000, 3000, 2)}


def test_patterns_that_begin_alike_are_each_found_where_they_stand_and_nowhere_else() -> None:
    alike = [b"absent0007@example.com", b"absent0007%40example.com", b"absent0007&#64;example.com", b"absent0007"]
    others = [b"absent0008@example.com", b"absent0008%40example.com", b"Absent0007 of both cases"]
    patterns = [*map(Pattern, (*alike, *others[:2])), Pattern(others[2], fold=True)]
    text = b"|".join((*others, *alike, b"absent0007\\u0040example.com", b"absent0007@example.org", others[2].upper()))
    for scanner in (Scanner(patterns), pickle.loads(pickle.dumps(Scanner(patterns)))):  # noqa: S301
        for number, pattern in enumerate(patterns):
            among = text.lower() if pattern.fold else text
            content = pattern.content.lower() if pattern.fold else pattern.content
            places = [at for at in range(len(text)) if among.startswith(content, at)]
            assert places
            assert sorted(start for n, start in scanner.hits(text) if n == number) == places


@pytest.mark.parametrize("fits", [True, False])
def test_a_matcher_that_is_handed_over_finds_the_same_on_every_processor(fits: bool) -> None:
    matcher = Matcher([needle(LONG), NUMBER, NAME]).compiled()
    packed = pickle.dumps(matcher)
    compiled = hyperscan.dumpb(matcher._text.scanner._database)
    assert compiled in packed
    # The platform stands behind the magic number and the version: eight bytes of the processor's abilities.
    foreign = compiled[:12] + bytes(byte ^ 0xFF for byte in compiled[12:20]) + compiled[20:]
    with pytest.raises(hyperscan.HyperscanError):
        hyperscan.loadb(foreign, hyperscan.HS_MODE_BLOCK)
    copy = pickle.loads(packed if fits else packed.replace(compiled, foreign))  # noqa: S301
    pieces: list[Piece] = [
        Cells("column a", "row", pa.array(["x", f"by {LONG}"])),
        Raw("file", f"to {NAME.value}".encode(), 0),
    ]
    assert copy.search(iter(pieces)) == matcher.search(iter(pieces))
    assert {n for n, _, _ in copy.search(iter(pieces)).found} == {0, 2}


def test_a_flood_of_hits_is_searched_to_its_end() -> None:
    zeros = needle("aaaaaaaa")
    cells = pa.array(["a" * 7 + " "] * 100_000 + ["a" * 300_000])
    assert is_found(zeros, cells) is True
    other = needle("b" * 8 + "c")
    assert is_found(other, pa.array(["b" * 300_000])) is False
    assert is_found(other, pa.array(["b" * 300_000 + "c"])) is True


def test_a_million_random_rows_hold_nobody() -> None:
    """No false alarm from hashes, identifiers, times and numbers beside which somebody never was."""
    rng = np.random.default_rng(16)
    rows = 1_000_000
    hashes = rng.integers(0, 256, rows * 16, dtype=np.uint8).tobytes().hex()
    texts = pa.array([hashes[n * 32 : n * 32 + 32] for n in range(rows)])
    stamps = pa.array(rng.integers(0, 2**60, rows)).cast(pa.timestamp("ns")).cast(pa.string())
    numbers = rng.integers(10_000_000, 2**62, rows)
    matcher = Matcher([NUMBER, EMAIL, UUID, BIG, MONEY, NAME, needle("123456", "bigint", "string")])
    columns = {
        "hash": texts, "stamp": stamps, "number": pa.array(numbers), "float": pa.array(rng.random(rows)),
        "decimal": pa.array(rng.integers(10**9, 10**15, rows)).cast(pa.decimal128(30, 4)),
        "fixed": pa.Array.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(bytes.fromhex(hashes))]),
    }  # fmt: skip
    found = matcher.search(iter(Cells(f"column {name}", "row", values) for name, values in columns.items()))
    assert not found.found
    assert not found.untold
    assert matcher.search(iter([Raw("file", bytes.fromhex(hashes), 0)])).found == set()


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (needle("o'brien@x.de"), "email = 'o''brien@x.de'"),
        (needle("o'brien@x.de"), r"email = 'o\'brien@x.de'"),
        (needle("anna+tag@x.de"), r'{"a": "anna\u002Btag@x.de"}'),
        (needle("anna@x.de"), "anna_x40x_x2Ede"),
        (needle("straße@x.de".casefold(), match="casefold"), "Straße@x.de"),
        (needle("Οδυσσευς@x.de".casefold(), match="casefold"), "οδυσσευς@x.de"),
        (needle("jos\u00e9.g@x.de"), "jose\u0301.g@x.de"),
        (needle("jose\u0301.g@x.de"), "jos\u00e9.g@x.de"),
        (needle("12345678", "bigint"), "1.2345678E7"),
        (needle("-12345678", "bigint"), "-1.2345678e+07"),
    ],
)
def test_a_value_is_found_as_other_writers_spell_it(wanted: Needle, text: str) -> None:
    assert is_found(wanted, pa.array([f"before {text} after"]))


def test_a_value_of_another_alphabet_is_found_in_bytes_of_one_byte_a_letter() -> None:
    wanted = needle("josé.garcía@x.de")
    assert is_found(wanted, pa.array(["josé.garcía@x.de".encode("latin-1")]))
    assert in_bytes(wanted, b"\0" + "josé.garcía@x.de".encode("latin-1"))


ONEIL = needle("O'Neil Anna")
MUELLER = needle("müller@x.de", match="casefold")
UTF16 = "MÜLLER@X.DE".encode("utf-16-le")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (EMAIL, r'{"email":"anna\u0040x.de"}'),
        (EMAIL, r'{"email":"anna\u0040x\u002Ede"}'),
        (EMAIL, r'{"p":"{\"email\":\"anna\\u0040x.de\"}"}'),
        (EMAIL, "anna&#64;x.de"),
        (needle("a/b@x.de"), r"a\u002fb\u0040x.de"),
        (needle("müller@x.de"), r'{"p":"{\"email\":\"m\\u00fcller@x.de\"}"}'),
        (needle("müller@x.de"), r"m\u00FCller\u0040x.de"),
        (needle('the "one"'), r'{\\"who\\":\\"the \\\"one\\\"\\"}'),
        (ONEIL, "GET /?n=O'Neil%20Anna HTTP"),
        (ONEIL, "<b>O&#x27;Neil Anna</b> "),
        (ONEIL, "<b>O&apos;Neil Anna</b> "),
        (needle("a b+c@x.de"), "GET /?n=a%20b+c@x.de HTTP"),
        (MUELLER, "GET /?n=M%C3%9CLLER@X.DE HTTP"),
        (MUELLER, r'{"e":"M\u00DCLLER@x.de"}'),
        (needle("anna@x.de", match="casefold"), base64.b64encode(b"ANNA@X.DE").decode()),
        (needle("anna@x.de", match="casefold"), base64.b64encode(b"Anna@x.de").decode()),
    ],
)  # fmt: skip
def test_an_escaped_value_is_found_whichever_characters_its_writer_escapes(wanted: Needle, text: str) -> None:
    assert is_found(wanted, pa.array([text])) is True


def test_another_case_of_a_value_that_is_no_ascii_is_found_in_bytes() -> None:
    assert in_bytes(MUELLER, b"\x01\x02" + UTF16 + b"\x02") is True
    assert in_bytes(MUELLER, b"\x01\x02" + "MÜLLER@X.DE".encode("cp1252") + b"\x02") is True
    assert in_bytes(needle("müller@x.de"), b"\x01\x02" + UTF16 + b"\x02") is False


def _lines(packed: str, width: int, between: str) -> str:
    return between.join(packed[at : at + width] for at in range(0, len(packed), width))


@pytest.mark.parametrize("wanted", [EMAIL, UUID, NAME, BIG], ids=["email", "uuid", "name", "number"])
def test_base64_and_hex_in_lines_are_read_across_them(wanted: Needle) -> None:
    matcher = Matcher([wanted, needle("another.one@mail.example.org")])
    for lead in range(57):
        plain = b"x" * (lead + 57) + b" " + wanted.value.encode() + b" " + b"y" * 90
        between = ("\n", "\r\n", "\\r\\n", "\\n")[lead % 4]
        standard, other = base64.b64encode(plain).decode(), base64.urlsafe_b64encode(plain).decode()
        hexed = plain.hex().upper() if lead % 2 else plain.hex()
        for text in (_lines(standard, 76, between), _lines(other, 64, between), _lines(hexed, 60, between)):
            cells = Cells("column c", "row", pa.array(["nothing", f"Content: {text}"]))
            for piece in (cells, Raw("file", f"\0\1{text}\0".encode(), 0)):
                assert {n for n, _, _ in matcher.search(iter([piece])).found} == {0}


def test_a_line_of_a_mail_that_goes_on_is_read_across_its_break() -> None:
    value, matcher = EMAIL.value, Matcher([EMAIL])
    for at in range(1, len(value)):
        for between in ("=\n", "=\r\n", "=\\r\\n"):
            text = f"my address is {value[:at]}{between}{value[at:]}, hello"
            assert matcher.search(iter([Cells("column c", "row", pa.array([text]))])).found
            other = text.replace("is ", "is jo")
            assert not matcher.search(iter([Cells("column c", "row", pa.array([other]))])).found


def test_lines_of_a_text_file_are_read_across_their_breaks() -> None:
    packed = base64.encodebytes(b"x" * 50 + b" " + LONG.encode() + b" " + b"y" * 90).decode()
    content = f"a mail\n\n{packed}\nits end\n".encode()
    pieces = list(read_object("mail.eml", len(content), lambda: io.BytesIO(content)))
    assert Matcher([needle(LONG)]).search(iter(pieces)).found
    lines = (piece for piece in pieces if isinstance(piece, Cells) and len(piece.values) > 1)
    assert not Matcher([needle(LONG)]).search(lines).found


def test_neighbouring_cells_are_two_values_beside_a_broken_line_of_base64_too() -> None:
    mime = base64.encodebytes(bytes(range(200))).decode()
    for cells in ([mime + " ", "anna", "@x.de"], ["anna", "@x.de", " " + mime], ["x", mime + " anna", "@x.de"]):
        assert is_found(EMAIL, pa.array(cells)) is not True, cells
    across = base64.encodebytes(b"x" * 50 + b" " + EMAIL.value.encode() + b" " + b"y" * 50).decode()
    assert is_found(EMAIL, pa.array(["z", across, "z"])) is True
