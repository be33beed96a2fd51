"""JSON: documents and lines of them, every key and every value, those of the Delta log by what they say of files.

In documents of the formats some numbers are counts, ids and times: those below a key that the format defines so are
passed over. Any other number is a value like a text, whatever the document is called. A place names keys only where the
format defines them, or where they are columns: elsewhere a key may itself be a value.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.verify.read.delta import gather_stats
from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces
from ebbtide.verify.read.repeated import all_values
from ebbtide.verify.read.stored import ObjectSource, UnknownContentError, bytes_of, whole
from ebbtide.verify.read.text import is_plain, parts_of, read_text

_MOST = 32 << 20
"""The largest document, or line, that is read whole: as values it takes some ten times as much memory."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_ESCAPES = "it looks like JSON with escapes, and cannot be read as JSON"
_KINDS = (
    ("/_delta_log/", "Delta log"),
    ("/.hoodie/", "Hudi timeline"),
    (".metadata.json", "Iceberg metadata"),
    ("/snapshot/snapshot-", "Paimon metadata"),
    ("/schema/schema-", "Paimon metadata"),
    ("/tag/tag-", "Paimon metadata"),
    ("/changelog/changelog-", "Paimon metadata"),
    ("/statistics/stat-", "Paimon metadata"),
)
_WORDS = frozenset(
    """
    add baseManifestList blob-metadata cdc changelogManifestList colStats comment commitInfo commitUser
    configuration default-value deltaManifestList description doc domainMetadata engineInfo extraMetadata fields
    fileId indexManifest initial-default location manifest-list max metaData metadata-file metadata-log min name
    operationMetrics operationParameters operationType options partition-specs partition-statistics partitionKeys
    partitionToReplaceFileIds partitionToWriteStats partitionValues path primaryKeys properties protocol refs
    remove schemaString schemas snapshot-log snapshots sort-orders statistics statistics-path summary tags txn
    type userMetadata write-default
    """.split()  # noqa: SIM905 - so many words are a text
)
_COLUMNS = ("partitionValues", "colStats", "minValues", "maxValues")
_COUNTS: Mapping[str, frozenset[str]] = {
    kind: frozenset(words.split())
    for kind, words in {
        "Iceberg metadata": """
            added-rows current-schema-id current-snapshot-id current-version-id default-sort-order-id default-spec-id
            element-id field-id fields file-footer-size-in-bytes file-size-in-bytes first-row-id format-version id
            identifier-field-ids key-id last-column-id last-partition-id last-sequence-number last-updated-ms
            max-ref-age-ms max-snapshot-age-ms min-snapshots-to-keep next-row-id order-id parent-snapshot-id schema-id
            sequence-number snapshot-id source-id source-ids spec-id timestamp-ms value-id version-id
        """,
        "Delta log": """
            baseRowId cardinality createdTime defaultRowCommitVersion delta.columnMapping.id
            delta.columnMapping.nested.ids deletionTimestamp inCommitTimestamp inCommitTimestampOpt lastUpdated
            maxRowIndex minReaderVersion minWriterVersion modificationTime numDeletedRecordsOpt numDeletionVectorsOpt
            numFiles numMetadata numOfAddFiles numProtocol numRecords offset parts readVersion size sizeInBytes
            tableSizeBytes timestamp version
        """,
        "Hudi timeline": "version",
        "Paimon metadata": """
            avgLen baseManifestListSize changelogManifestListSize changelogRecordCount colId commitIdentifier
            deltaManifestListSize deltaRecordCount distinctCount highestFieldId id maxLen mergedRecordCount
            mergedRecordSize nextRowId nullCount schemaId snapshotId tagCreateTime tagTimeRetained timeMillis
            totalRecordCount version watermark
        """,
    }.items()
}
"""Whose numbers are the format's own."""
_COUNTED = frozenset(
    """
    deletedRecordCountsHistogramOpt fileSizeHistogram histogramOpt logOffsets nullCount operationMetrics
    partitionToWriteStats
    """.split()  # noqa: SIM905 - as above
)
"""Below these there is nothing but counts, whatever the keys are."""
_TOTALS = frozenset(
    """
    added-data-files added-delete-files added-dvs added-equality-delete-files added-equality-deletes added-files-size
    added-position-delete-files added-position-deletes added-records changed-partition-count deleted-data-files
    deleted-records entries-processed manifests-created manifests-kept manifests-replaced removed-delete-files
    removed-dvs removed-equality-delete-files removed-equality-deletes removed-files-size
    removed-position-delete-files removed-position-deletes total-data-files total-delete-files
    total-equality-deletes total-files-size total-position-deletes total-records
    """.split()  # noqa: SIM905 - as above
)
"""What Iceberg says of a snapshot's files, and writes as text; Delta does so with metrics."""
_FILE_ACTIONS = ("add", "remove", "cdc")


def read_json(stored: ObjectSource) -> Pieces:
    """A document, or one per line; what is neither is text."""
    kind = _kind_of(stored)
    with io.BufferedReader(stored.open()) as file:  # type: ignore[type-var] # Arrow's files know no lines
        first = file.readline(_MOST)
        if _parsed(first.strip()) is not None:
            file.seek(0)
            yield from _lines(file, kind)
            return
    try:
        document = _parsed(whole(stored, _MOST))
    except UnknownContentError:
        document = None
    if document is None:
        yield from _as_text(stored)
        return
    gathered = Gathered()
    _walk(gathered, document[0], kind)
    yield from gathered.take()


def read_json_stream(stored: ObjectSource) -> Pieces:
    """What is too large to be held, and can be read once: documents a line, or a text that looks like one."""
    with stored.open() as stream, io.BufferedReader(_Once(stream), 1 << 20) as file:
        first = file.readline(_MOST)
        lines = _Before(first, file)
        if _parsed(first.strip()) is not None:
            yield from _lines(lines, _kind_of(stored))  # type: ignore[arg-type]
            return
        told = False
        text = ObjectSource(stored.name, stored.size, lambda: lines, stored.depth)  # type: ignore[arg-type, return-value]
        for piece in read_text(text):
            yield piece
            if not told and isinstance(piece, Cells) and pc.any(pc.match_substring(piece.values, "\\")).as_py():
                told = True
                yield CannotTell(_ESCAPES)


def _kind_of(stored: ObjectSource) -> str | None:
    return next((label for part, label in _KINDS if part in f"/{stored.name}"), None)


class _Once(io.RawIOBase):
    """What can be read once, as a file of Python."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _Before:
    """What was read already, and the file behind it; it goes back to its start as long as it is there."""

    def __init__(self, first: bytes, file: BinaryIO) -> None:
        self._first, self._rest, self._file = first, first, file

    def readline(self, most: int) -> bytes:
        line, self._rest = self._rest, b""
        return line or self._file.readline(most)

    def read(self, size: int) -> bytes:
        content, self._rest = self._rest[:size], self._rest[size:]
        return content or self._file.read(size)

    def seek(self, _: int) -> None:
        self._rest = self._first

    def __enter__(self) -> _Before:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _as_text(stored: ObjectSource) -> Pieces:
    """No JSON, or too large for it. A text can be searched as it stands, unless it has escapes."""
    with stored.open() as file:
        escapes = any(b"\\" in chunk for chunk in iter(lambda: file.read(1 << 20), b""))
    if escapes:
        yield CannotTell(_ESCAPES)
    yield from read_text(stored)


def _lines(file: BinaryIO, kind: str | None) -> Pieces:
    gathered, told = Gathered(), False
    while line := file.readline(_MOST):
        if not line.strip():
            continue
        if _is_cut(line):
            yield from gathered.take()
            yield from _long_line(file, line)
            continue
        document = _parsed(line)
        if document is not None:
            _walk(gathered, document[0], kind)
        else:
            gathered.add("line of text", line.decode("utf-8", "replace"))
            if not told and b"\\" in line:
                told = True
                yield CannotTell("lines of it have escapes, and cannot be read as JSON")
            if not is_plain(line):
                yield CannotTell("it begins as text and goes on as something else")
                yield from bytes_of("line that is no text", line)
        if gathered.full:
            yield from gathered.take()
    yield from gathered.take()


def _is_cut(line: bytes) -> bool:
    return len(line) == _MOST and not line.endswith(b"\n")


def _long_line(file: BinaryIO, first: bytes) -> Pieces:
    """A line that is too large to be parsed, as text: its parts overlap."""
    told, at = set[str](), 0

    def chunks() -> Iterator[bytes]:
        line = first
        while line:
            yield line
            line = file.readline(_MOST) if _is_cut(line) else b""

    def seen() -> Iterator[bytes]:
        nonlocal at
        for chunk in chunks():
            if b"\\" in chunk:
                told.add("a line of it is too large to be read as JSON, and has escapes")
            if _CONTROL.search(chunk):
                told.add("it begins as text and goes on as something else")
            at += len(chunk)
            yield chunk

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in parts_of(map(decoder.decode, seen())):
        yield Cells("line of text", "row", pa.array([part], pa.large_string()))
    yield from map(CannotTell, sorted(told))


def _parsed(content: bytes) -> tuple[Any] | None:
    """What a document holds, in a tuple, as it may hold nothing; None where it is no document."""
    try:
        return (json.loads(content, parse_float=Decimal, parse_constant=str, object_pairs_hook=all_values),)
    except (ValueError, RecursionError, ArithmeticError):
        return None


def _walk(into: Gathered, document: object, kind: str | None) -> None:
    todo: list[tuple[str, str, object, int]] = [("", "", document, 0)]
    while todo:
        place, key, value, texts = todo.pop()
        if isinstance(value, Mapping):
            if kind == "Delta log" and "path" in value and (place == key in _FILE_ACTIONS or "stats" in value):
                # Checksums of a version list its files, too, as `allFiles`.
                value = _action(into, key if key in _FILE_ACTIONS else "file", value)
            for name, each in value.items():
                into.add(f"{kind or 'JSON'}: key in {place}" if place else f"{kind or 'JSON'}: key", name)
                todo.append((_place(kind, place, key, name), name, each, texts))
        elif isinstance(value, list):
            todo += [(place, key, each, texts) for each in value]
        elif not isinstance(value, str):
            if not _is_count(kind, place, key):
                into.add(f"{kind or 'JSON'}: {place}" if place else kind or "JSON", value)
        elif not _is_total(kind, place, key, value):
            into.add(f"{kind or 'JSON'}: {place}" if place else kind or "JSON", value)
            # JSON within JSON: only its escapes are in the way of who looks for a text in it.
            if "\\" in value and texts < 3 and (inner := _parsed(value.encode("utf-8", "replace"))) is not None:
                todo.append((place, key, inner[0], texts + 1))


def _is_count(kind: str | None, place: str, key: str) -> bool:
    return kind is not None and (key in _COUNTS[kind] or not _COUNTED.isdisjoint(place.split(".")))


def _is_total(kind: str | None, place: str, key: str, value: str) -> bool:
    """Whether a text is a count all the same: of a table's millions, one is soon what somebody is known by."""
    if not (value.isascii() and value.isdigit()):
        return False
    words = place.split(".")
    if kind == "Iceberg metadata":
        return (key in _TOTALS and "summary" in words) or (key == "ndv" and "blob-metadata" in words)
    return kind == "Delta log" and "operationMetrics" in words


def _place(kind: str | None, place: str, parent: str, name: str) -> str:
    if kind is None:
        return ""
    shown = name if name in _WORDS or name in _COUNTED or parent in _COLUMNS else "*"
    return f"{place}.{shown}" if place else shown


def _action(into: Gathered, action: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an action says of a file: its path and partition, and its statistics as bounds. The rest is given back."""
    path = body.get("path")
    into.add(f"log: {action}.path", path, "path")
    partition = body.get("partitionValues")
    for column, value in partition.items() if isinstance(partition, Mapping) else ():
        into.add(f"log: {action}.partitionValues", column)
        into.add(f"log: {action}.partitionValues of column {column}", value, "path")
    if body.get("stats") is not None:
        gather_stats(into, body["stats"], path if isinstance(path, str) else None)
    return {name: each for name, each in body.items() if name not in ("path", "partitionValues", "stats")}
