"""Manifests and manifest lists written anew from what they were: entries go, change or lose their bounds.

All else of a file stays as its writer made it: schema, keys of its header, codec. Fields are found by their Iceberg
field id. Values are copied as they are stored, without a detour through Python's types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro

from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.container import without_compression

Record = dict[str, Any]
FIRST_ROW_ID = 142
_DATA_FILE, _PARTITION, _BLOCK_SIZE = 2, 102, 105
_BLOCK = 64 << 20
"""What format 1 asks every writer to say, and no reader looks at."""


@dataclass(frozen=True, slots=True)
class AvroRecords:
    """One Avro file of Iceberg's: its records as they are stored, its schema, and what its header says beside it."""

    records: list[Record]
    schema: Any
    header: Mapping[str, str]
    codec: str

    @classmethod
    def of(cls, content: bytes) -> AvroRecords:
        reader = fastavro.reader(BytesIO(content))
        codec = str(reader.codec)
        reader = fastavro.reader(BytesIO(without_compression(content)))
        schema = json.loads(reader.metadata["avro.schema"])
        header = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
        _plain(reader.writer_schema)
        return cls([dict(record) for record in reader], schema, header, codec)  # type: ignore[arg-type]

    def written(self, records: Iterable[Record]) -> bytes:
        out = BytesIO()
        codec = self.codec if self.codec in ("null", "deflate") else "deflate"
        fastavro.writer(out, fastavro.parse_schema(self.schema), records, codec=codec, metadata=dict(self.header))
        return out.getvalue()

    @property
    def names(self) -> dict[int, str]:
        """The names of fields by id: of a record, or in a manifest of an entry."""
        return _names(self.schema)

    @property
    def file_names(self) -> dict[int, str]:
        """In a manifest, those of what an entry says of its file."""
        return _names(_inside(self.schema, _DATA_FILE))

    @property
    def partition_names(self) -> dict[int, str]:
        return _names(_inside(_inside(self.schema, _DATA_FILE), _PARTITION))

    def knowing_row_ids(self) -> AvroRecords:
        """The same manifest with a place for the first row id of each file, which old schemas do not have."""
        if FIRST_ROW_ID in self.file_names:
            return self
        schema = json.loads(json.dumps(self.schema))
        field = {"name": "first_row_id", "type": ["null", "long"], "default": None, "field-id": FIRST_ROW_ID}
        _inside(schema, _DATA_FILE)["fields"].append(field)
        return AvroRecords(self.records, schema, self.header, self.codec)

    def file_like(self, other: AvroRecords, file: Record) -> Record:
        """A file as another manifest describes it, in the words of this one."""
        theirs, found = other.file_names, dict[str, Any]()
        for field in _inside(self.schema, _DATA_FILE)["fields"]:
            id_ = int(field["field-id"])
            if id_ == _PARTITION:
                mine = self.partition_names
                parts = other.partition_names
                found[field["name"]] = {
                    name: file[theirs[_PARTITION]].get(parts.get(at, "")) for at, name in mine.items()
                }
            elif id_ in theirs:
                found[field["name"]] = file[theirs[id_]]
            elif id_ == _BLOCK_SIZE:
                found[field["name"]] = _BLOCK
            elif "default" not in field:
                raise RefusedError(
                    "a manifest has a field that this version of Ebbtide does not know; nothing was changed"
                )
        return found


def _plain(schema: Any) -> None:
    """Let values be read as they are stored: Python has no dates after the year 9999."""
    if isinstance(schema, list):
        for part in schema:
            _plain(part)
    elif isinstance(schema, dict):
        schema.pop("logicalType", None)
        for field in schema.get("fields", ()):
            _plain(field)
        for key in ("type", "items", "values"):
            _plain(schema.get(key))


def _names(record: Any) -> dict[int, str]:
    return {int(field["field-id"]): field["name"] for field in record["fields"] if "field-id" in field}


def _inside(record: Any, id_: int) -> Any:
    """The type of a field that is a record itself."""
    return next(field["type"] for field in record["fields"] if int(field.get("field-id", -1)) == id_)


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """One entry of a manifest, by field ids."""

    record: Record
    names: Mapping[int, str]
    file_names: Mapping[int, str]

    @property
    def status(self) -> int:
        return int(self.record[self.names[0]])

    @property
    def file(self) -> Record:
        found: Record = self.record[self.names[_DATA_FILE]]
        return found

    def get(self, id_: int) -> Any:
        """What it says of its file; None where the manifest has no such field."""
        return self.file.get(self.file_names.get(id_, ""))

    def put(self, id_: int, value: object) -> None:
        self.file[self.file_names[id_]] = value

    def with_file(self, file: Record) -> EntryRecord:
        """The same of another file, or of what else is to be said of this one."""
        return EntryRecord({**self.record, self.names[_DATA_FILE]: file}, self.names, self.file_names)

    def map(self, id_: int) -> dict[int, Any]:
        return {int(pair["key"]): pair["value"] for pair in self.get(id_) or ()}


def entries_of(container: AvroRecords) -> Iterator[EntryRecord]:
    names, file_names = container.names, container.file_names
    for record in container.records:
        yield EntryRecord(record, names, file_names)
