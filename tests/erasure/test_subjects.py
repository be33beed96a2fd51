"""Who a request is about: values by the types of their columns, and people as somebody writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.cli.subject import pairs_of
from ebbtide.config.subjects import IdentityColumn, Match, Subject
from ebbtide.erasure.subjects import PeopleFile, _types_of, person_of
from ebbtide.erasure.values import DeclaredIdentity, canonical, types_in
from ebbtide.errors import InputError
from ebbtide.ledger.commitment import Identifier

UUID_TEXT = "8841302a-0000-4000-8000-00000000abcd"
SECRET = "8841302"


def declared(*types: str, name: str = "user_id", match: Match = "exact") -> DeclaredIdentity:
    subject = Subject(name, "subjects.yml:2", (IdentityColumn("lake.app.users", name),), match=match)
    return DeclaredIdentity(subject, frozenset(types))


DECLARED = {"user_id": declared("bigint", "string"), "email": declared("string", name="email", match="casefold")}


@pytest.mark.parametrize(
    ("types", "said", "value"),
    [
        (("bigint",), " +0042 ", "42"), (("bigint", "string"), "42", "42"), (("string",), "0042", "0042"),
        (("bigint",), "-9223372036854775808", "-9223372036854775808"), (("decimal(20,0)",), "8841302", "8841302"),
        (("decimal(20,2)", "int"), "8841302", "8841302"), (("decimal(4,2)",), "12.50", "12.5"),
        (("decimal(4,2)",), "0.00", "0"), (("uuid", "string"), UUID_TEXT.upper(), UUID_TEXT),
        (("binary",), UUID_TEXT.replace("-", ""), UUID_TEXT), (("binary",), "abc", "abc"),
        (("date",), "1984-08-13", "1984-08-13"), ((), "anything", "anything"),
    ],
)  # fmt: skip
def test_a_value_has_one_spelling_by_the_types_of_its_columns(types: tuple[str, ...], said: str, value: str) -> None:
    assert canonical(declared(*types), said) == value


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (("bigint",), "8841302x"), (("int",), "2147483648"), (("tinyint",), "128"), (("bigint", "string"), "884a"),
        (("decimal(4,2)",), "8841302"), (("decimal(4,2)",), "1.841"), (("decimal(4,2)",), "1e8841302"),
        (("decimal(4,2)",), "nan1"), (("uuid",), "8841302"), (("date",), "1984-02-31"),
        (("timestamp",), "2026-11-15"), (("double",), "8841302"), (("boolean",), "true"), (("bigint",), "٨٨٤١٣٠٢"),
    ],
)  # fmt: skip
def test_a_value_that_a_column_cannot_hold_is_refused_and_not_shown(types: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match="not of its column's type") as caught:
        canonical(declared(*types), said)
    assert said not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


@pytest.mark.parametrize("said", ["", "  ", "NULL", "none", "NaN", "*", "%", "8841302*", "%8841302", "88413\n02"])
def test_nobody_and_everybody_are_refused(said: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical(declared("string"), said)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("match", "said", "value"),
    [
        ("exact", "A@Example.org", "A@Example.org"), ("casefold", "A@Straße.org", "a@strasse.org"),
        ("normalised-email", " A.B+list@Example.org ", "a.b+list@example.org"),
    ],
)  # fmt: skip
def test_values_that_count_as_the_same_have_the_same_spelling(match: Match, said: str, value: str) -> None:
    assert canonical(declared("string", match=match), said) == value


def test_types_are_found_in_every_formats_spelling() -> None:
    assert types_in("list<struct<4: long: optional int, 5: b: optional decimal(20, 0)>>") == {"int", "decimal(20,0)"}
    assert types_in("ARRAY<ROW<`string` BIGINT NOT NULL, `b` BYTES>>") == {"bigint", "binary"}
    assert types_in("map<string,array<struct<date:varchar(10)>>>") == {"string"}
    assert types_in("fixed[16]") == {"binary"}
    assert types_in("timestamp_ltz") == {"timestamp_ltz"}


def test_a_person_is_each_identifier_once_and_an_unknown_identity_has_a_hint() -> None:
    twice = [("user_id", "7"), ("email", "A@b.org"), ("user_id", "07")]
    assert person_of(twice, DECLARED) == (Identifier("user_id", "7"), Identifier("email", "a@b.org"))
    with pytest.raises(InputError, match="'user' is no identity") as caught:
        person_of([("user", SECRET)], DECLARED)
    assert caught.value.hint == "did you mean 'user_id'?"
    with pytest.raises(InputError) as caught:
        person_of([(f"user{SECRET}@example.org", "x")], DECLARED)
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"
    with pytest.raises(InputError, match="nobody is named"):
        person_of([], DECLARED)


def test_a_subject_file_is_one_person_and_a_wrong_line_is_told_by_its_number() -> None:
    assert list(pairs_of(["user_id=7\r\n", "\n", " email =a=b@c.org"])) == [("user_id", "7"), ("email", "a=b@c.org")]
    with pytest.raises(InputError, match="line 2 is not identity=value"):
        list(pairs_of(["user_id=7", SECRET]))


def test_of_many_people_the_bad_lines_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text('user_id,email\n7,a@b.org\n8\n"9,x@y.org\nx,c@d.org\n\n,"d,e@f.org"\nNULL,\n10,\n,\n')
    file = PeopleFile(people, DECLARED)
    assert list(file.people()) == [
        (Identifier("user_id", "7"), Identifier("email", "a@b.org")),
        (Identifier("email", "d,e@f.org"),), (Identifier("user_id", "10"),),
    ]  # fmt: skip
    assert [bad.line for bad in file.bad] == [3, 4, 5, 8, 10]
    assert all(bad.hint for bad in file.bad)


def test_a_file_of_json_lines_may_give_an_identity_several_values(tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    lines = ['{"user_id": 7, "email": ["a@b.org", "C@b.org"]}', '{"user_id": 7.5}', "[7]", '{"user_id": nil}', "{}",
             '{"usr_id": "7"}', '{"user_id": true}', '{"user_id": "8"}']  # fmt: skip
    people.write_text("\n".join(lines))
    file = PeopleFile(people, DECLARED)
    first, second = file.people()
    assert [one.value for one in first] == ["7", "a@b.org", "c@b.org"]
    assert second == (Identifier("user_id", "8"),)
    assert [bad.line for bad in file.bad] == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("text", ["", "8841302,a@b.org\n", "user_id;email\n7;8\n"])
def test_a_file_that_does_not_name_identities_is_refused_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        list(PeopleFile(tmp_path / "people.csv", DECLARED).people())
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"


def test_a_value_in_a_nested_column_has_those_of_its_types_that_can_hold_it() -> None:
    types = {"l.d.t": {"profile": "struct<1: user_id: optional long, 2: born: optional date>", "ids": "array<bigint>"}}
    for column, around in (
        ("profile.user_id", {"bigint", "date"}),
        ("profile", {"bigint", "date"}),
        ("ids", {"bigint"}),
    ):
        assert _types_of(IdentityColumn("l.d.t", column), types, (), "subjects.yml") == (frozenset(around), True)
    nested = DeclaredIdentity(declared("string").subject, frozenset(), frozenset({"bigint", "date"}))
    assert nested.types_of("8841302") == {"bigint"}
    assert nested.types_of("anna@x.de") == frozenset()
    assert canonical(nested, "anna@x.de") == "anna@x.de"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_ten_bad_lines_of_a_long_file_are_told_and_all_others_go_on(tmp_path: Path, kind: str) -> None:
    lines, head = 100_000, kind == "csv"
    bad = {
        7 + 9_973 * n: text
        for n, text in enumerate(("x", "*", "NULL", '"', "1,2", "-", "8841302x", "9" * 20, "%", "7.5"))
    }
    people = tmp_path / f"people.{kind}"
    with people.open("w") as file:
        file.write("user_id\n" if head else "")
        for n in range(lines):
            text = bad.get(n, str(10**6 + n))
            file.write(f"{text}\n" if head else f'{{"user_id": "{text}"}}\n')
    read = PeopleFile(people, DECLARED)
    found = [one.value for (one,) in read.people()]
    assert [each.line for each in read.bad] == [n + 1 + head for n in bad]
    assert found == [str(10**6 + n) for n in range(lines) if n not in bad]
    assert not any(text in f"{each.because} {each.hint}" for each, text in zip(read.bad, bad.values(), strict=True)
                   if len(text) > 4)  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_line_that_is_no_text_or_far_too_long_is_told_and_all_others_go_on(tmp_path: Path, kind: str) -> None:
    people, head = tmp_path / f"people.{kind}", kind == "csv"
    long = b"1" * (3 << 20)
    lines = [b"1000001", b"10\xff01", long, b"1000002", b"", long[: (1 << 20) - 1], b"1000003", long]
    written = [each if head else b'{"user_id": "%b"}' % each if each else each for each in lines]
    people.write_bytes(b"\n".join([b"user_id", *written] if head else written))
    read = PeopleFile(people, DECLARED)
    assert [one.value for (one,) in read.people()] == ["1000001", "1000002", "1000003"]
    assert [each.line - head for each in read.bad] == [2, 3, 6, 8]
    assert read.bad[0].because == "not text in UTF-8"
    assert read.bad[1].because == read.bad[3].because == "longer than 1024 KiB"


def test_a_json_object_with_a_key_twice_is_told_and_not_read_in_part(tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    people.write_text('{"user_id": "1000001", "user_id": "1000002"}\n{"user_id": ["1000003", "1000004"]}\n')
    read = PeopleFile(people, DECLARED)
    assert [[one.value for one in each] for each in read.people()] == [["1000003", "1000004"]]
    assert [each.line for each in read.bad] == [1]
