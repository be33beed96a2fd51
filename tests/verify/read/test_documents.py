"""JSON, text and paths: every key and every value; counts and times of the formats are none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ebbtide.verify.read import documents, packed
from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import Cells, Piece, Raw
from tests.verify.read.search import pieces_of, places, reasons, whole_numbers

_LOG = "t/_delta_log/00000000000000000001.json"


def test_every_key_and_value_of_a_document_comes_out() -> None:
    document = {"a": {"alice@example.com": [1234567, {"b": 'caf\u00e9 "bob"'}]}, "c": 12.5, "big": 1 << 70, "n": None}
    for content in (json.dumps(document).encode(), json.dumps(document, indent=2).encode()):
        pieces = pieces_of(content, "x/some.json")
        assert reasons(pieces) == []
        for value in ("alice@example.com", 'café "bob"', 1234567, str(1 << 70)):
            assert places(pieces, value), value
        assert not any("alice" in p.where or "bob" in p.where for p in pieces if isinstance(p, Cells))


def test_documents_are_read_from_files_that_know_no_lines() -> None:
    content = b'{"a": 1}\n{"b": "alice@example.com"}\n'
    pieces = list(read_object("x/some.json", len(content), lambda: pa.BufferReader(content)))
    assert reasons(pieces) == []
    assert places(pieces, "alice@example.com")


def test_properties_lose_their_backslashes() -> None:
    content = b"a=b\nwho=caf\\u00e9\\#bob\\:\\uD83D\\uDE00\nplain=alice@example.com\n"
    pieces = pieces_of(content, "t/.hoodie/hoodie.properties")
    assert reasons(pieces) == []
    assert places(pieces, "café#bob:😀") == {"property"}
    assert places(pieces, "alice@example.com") == {"text"}
    assert reasons(pieces_of(b"who=alice\\\n  @example.com\n", "x.properties")) == [
        "a line of it goes on in the next one"
    ]


def test_json_within_json_loses_its_escapes() -> None:
    inner = json.dumps({"who": 'the "one" at caf\u00e9'})
    pieces = pieces_of(json.dumps({"schemaString": inner}).encode(), "x/some.json")
    assert places(pieces, 'the "one" at café')


def test_a_commit_of_delta_gives_paths_partitions_and_bounds(tmp_path: Path) -> None:
    ids = [f"{n:02d}-{'long ' * 9}{n}" for n in range(5)]
    table = pa.table({"email": ids, "user_id": [8841302 + n for n in range(5)], "day": ["a b#c"] * 5})
    write_deltalake(str(tmp_path), table, partition_by=["day"])
    content = (tmp_path / "_delta_log" / "00000000000000000000.json").read_bytes()
    pieces = pieces_of(content, _LOG)
    assert reasons(pieces) == []
    action = next(json.loads(line)["add"] for line in content.splitlines() if b'"add"' in line)
    assert places(pieces, "a b#c", "path") >= {"log: add.partitionValues of column day", "log: add.path"}
    bounds = [p for p in pieces if isinstance(p, Cells) and p.where == "bound of column email"]
    assert {(p.cut, p.raised) for p in bounds} == {(32, False), (32, True)}
    assert {p.described_by(0) for p in bounds} == {action["path"]}
    least, greatest = (json.loads(action["stats"])[side] for side in ("minValues", "maxValues"))
    assert any(ids[0].startswith(p.values[0].as_py()) for p in bounds if not p.raised)
    assert places(pieces, least["user_id"]) == places(pieces, greatest["user_id"]) == {"bound of column user_id"}
    assert whole_numbers(pieces).keys() == {least["user_id"], greatest["user_id"]}  # no sizes, no times


def test_numbers_of_a_format_are_counts_but_for_defaults() -> None:
    metadata = {"last-updated-ms": 8841302, "schemas": [{"fields": [{"name": "x", "initial-default": 1234567}]}],
                "snapshots": [{"snapshot-id": 8841302, "summary": {"partitions.email=a%23b@c.de": "x"}}]}  # fmt: skip
    for name, content in (
        ("t/metadata/00001.metadata.json", json.dumps(metadata).encode()),
        ("t/metadata/00001.gz.metadata.json", gzip.compress(json.dumps(metadata).encode())),
    ):
        pieces = pieces_of(content, name)
        assert reasons(pieces) == []
        assert whole_numbers(pieces).keys() == {1234567}
        assert places(pieces, "a#b@c.de")
    assert whole_numbers(pieces_of(json.dumps(metadata).encode(), "x.json")).keys() == {8841302, 1234567}


def test_json_that_is_none_is_text_and_escapes_are_told() -> None:
    assert places(pieces_of(b"{no json: alice@example.com}", "x.json"), "alice@example.com") == {"text"}
    assert reasons(pieces_of(b"{no json: alice@example.com}", "x.json")) == []
    told = reasons(pieces_of(b'{"broken": "caf\\u00e9', "x.json"))
    assert told == ["it looks like JSON with escapes, and cannot be read as JSON"]
    mixed = pieces_of(b'{"a": 1}\nplain alice\n{"b": "caf\\u00e9"}\n', "x.log")
    assert places(mixed, "plain alice") == {"line of text"}
    assert places(mixed, "café") == {"JSON"}
    assert reasons(mixed) == []


def test_deep_json_is_not_followed_and_comes_as_text() -> None:
    assert places(pieces_of(b"[" * 200_000 + b'"alice"', "x.json"), "alice") == {"text"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_of_a_text_come_out(encoding: str) -> None:
    lines = [f"line {n} of müller" for n in range(1000)]
    pieces = pieces_of("\n".join(lines).encode(encoding), "notes")
    cells = [each for p in pieces if isinstance(p, Cells) and p.where == "text" for each in p.values.to_pylist()]
    assert [each.lstrip("\ufeff") for each in cells] == lines
    assert reasons(pieces) == []


def test_a_value_across_the_parts_of_a_long_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ebbtide.verify.read.text._CHUNK", 100)
    monkeypatch.setattr("ebbtide.verify.read.text._OVERLAP", 40)
    for before in range(150, 260):
        assert places(pieces_of(b"x" * before + b"alice@example.com" + b"y" * 300, "t"), "alice@example.com"), before


def test_what_stops_being_text_comes_as_bytes() -> None:
    content = b"text " * 2000 + b"\xff\xfe\x00alice@example.com\x00" + b"\x80" * 100
    pieces = pieces_of(content, "x.txt")
    assert "it begins as text and goes on as something else" in reasons(pieces)
    assert "content" in places(pieces, "alice@example.com")


def test_segments_of_a_path_come_decoded_in_every_form() -> None:
    pieces = pieces_of(b"", "w/t/email=%2523a%2540b.c/x y/file.parquet")
    path = next(p for p in pieces if isinstance(p, Cells))
    assert path.how == "path"
    assert {"email=%2523a%2540b.c", "email=%23a%40b.c", "email=#a@b.c", "#a@b.c", "x y", "file.parquet"} <= set(
        path.values.to_pylist()
    )
    assert reasons(pieces) == []


@pytest.mark.parametrize(
    "name",
    [
        "exports/users.metadata.json",
        "t/tag/tag-people",
        "t/snapshot/snapshot-people.json",
        "t/.hoodie/people.json",
        "t/_delta_log/00000000000000000000.json",
    ],
)
def test_a_number_below_a_key_of_nobodys_format_is_a_value_whatever_the_document_is_called(name: str) -> None:
    pieces = pieces_of(b'{"commitInfo": {"user_id": 8841302, "version": 7341302}}', name)
    assert places(pieces, 8841302)
    if "_delta_log" in name:
        assert not places(pieces, 7341302)


def test_the_files_that_a_checksum_of_a_version_lists_have_bounds_as_well() -> None:
    stats = json.dumps({"numRecords": 8841302, "maxValues": {"email": "anna" * 8 + "\U0010ffff"}})
    document = {"allFiles": [{"path": "a.parquet", "partitionValues": {}, "size": 8841302, "stats": stats}]}
    pieces = pieces_of(json.dumps(document).encode(), "t/_delta_log/00000000000000000003.crc")
    (bound,) = [each for each in pieces if isinstance(each, Cells) and each.where == "bound of column email"]
    assert (bound.values.to_pylist(), bound.cut, bound.raised) == (["anna" * 8], 32, True)
    assert bound.described_by(0) == "a.parquet"
    assert not places(pieces, 8841302)


def test_what_begins_as_text_and_has_zeros_later_is_looked_at_as_bytes() -> None:
    hidden = "alice@example.com".encode("utf-16-le")
    for name, start in (("a.txt", b"a line of text\n"), ("a.json", b'{"a": 1}\n')):
        pieces = pieces_of(start * 600 + hidden + b"\n", name)
        assert "it begins as text and goes on as something else" in reasons(pieces)
        assert any(hidden in each.data for each in pieces if isinstance(each, Raw))


@pytest.mark.parametrize("lines", ["{}", "{}\n", '{"a": 1}\n{}\n'])
def test_every_value_of_a_key_that_comes_twice_comes_out(lines: str) -> None:
    twice = '{"email": "alice@example.com", "in": {"n": 1234567, "n": 7, "n": [{"x": "deep"}]}, "email": null}'
    pieces = pieces_of(lines.replace("{}", twice).encode(), "x/some.json")
    assert reasons(pieces) == []
    for value in ("alice@example.com", 1234567, 7, "deep"):
        assert places(pieces, value), value


def test_statistics_of_delta_with_a_key_twice_come_out_whole() -> None:
    stats = '{"numRecords": 1, "minValues": {"email": "alice@example.com", "email": "b"}, "maxValues": {"email": "b"}}'
    add = {"add": {"path": "a.parquet", "partitionValues": {}, "stats": stats}}
    assert places(pieces_of(json.dumps(add).encode(), _LOG), "alice@example.com")


def test_a_value_across_the_parts_of_a_line_that_is_too_large_comes_out_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "_MOST", 1 << 18)
    for at in range((1 << 18) - 12, (1 << 18) + 2):
        line = b'{"x": "' + b"q " * (1 << 17)
        content = b'{"a": 1}\n' + line[: at - 1] + b" alice@example.com " + b"r " * 90_000 + b'"}\n{"b": "bob"}\n'
        pieces = pieces_of(content, "x/some.json")
        assert places(pieces, "alice@example.com")
        assert places(pieces, "bob")
        assert not [cell for cell in _texts(pieces) if cell.startswith(("lice", "alice")) or cell.endswith("@example")]


def _texts(pieces: list[Piece]) -> list[str]:
    return [
        each
        for piece in pieces
        if isinstance(piece, Cells)
        for each in piece.values.to_pylist()
        if isinstance(each, str)
    ]


def test_json_that_unpacks_to_more_than_can_be_held_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "HELD", 1 << 16)
    line = json.dumps({"p": json.dumps({"who": 'caf\u00e9 "bob"'})}) + "\n"
    pieces = pieces_of(gzip.compress((f'{{"q": "{"q" * 100}"}}\n' * 2000 + line).encode()), "x/some.json.gz")
    assert reasons(pieces) == []
    assert places(pieces, 'café "bob"')
    pretty = json.dumps({"all": ["q" * 100] * 2000, "who": "caf\u00e9"}, indent=2)
    assert "escapes" in " ".join(reasons(pieces_of(gzip.compress(pretty.encode()), "x/some.json.gz")))


def test_counts_that_a_format_writes_as_texts_are_no_values_and_other_texts_beside_them_are() -> None:
    digits = "8841302"
    iceberg: dict[str, Any] = {
        "snapshots": [{"summary": {"added-files-size": digits, "total-records": digits}}],
        "statistics": [{"blob-metadata": [{"properties": {"ndv": digits}}]}],
    }
    metrics = {"commitInfo": {"operationMetrics": {"numOutputBytes": digits, "executionTimeMs": digits}}}
    for name, document in (
        ("t/metadata/v1.metadata.json", iceberg),
        ("t/_delta_log/00000000000000000001.json", metrics),
    ):
        assert not places(pieces_of(json.dumps(document).encode(), name), digits)
        assert places(pieces_of(json.dumps(document).encode(), "t/other.json"), digits)
    iceberg["snapshots"][0]["summary"] |= {"partitions.user=8841302": "1", "note": digits}
    iceberg["properties"] = {"total-records": digits}
    found = places(pieces_of(json.dumps(iceberg).encode(), "t/metadata/v1.metadata.json"), digits)
    assert found == {
        "Iceberg metadata: key in snapshots.summary",
        "Iceberg metadata: snapshots.summary.*",
        "Iceberg metadata: properties.*",
    }
    other = {"commitInfo": {"operationParameters": {"predicate": f"id = {digits}"}}}
    assert places(pieces_of(json.dumps(other).encode(), "t/_delta_log/00000000000000000001.json"), digits)
