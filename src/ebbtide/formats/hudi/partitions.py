"""Partition paths of a Hudi table as values, and the partitions of the head (formats.md, "Partition dates")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ebbtide.model.dataset import FileRef, Partition, Role
from ebbtide.model.history import Transaction
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Candidate, DateSource, date_source, parse_day

_NULL = "__HIVE_DEFAULT_PARTITION__"
_SPEC = "0"
_SLASHES = ".SlashEncodedDayPartitionValueExtractor"
_WRITTEN = ("string", "tinyint", "smallint", "int", "bigint")
_TYPED = ("date", "timestamp")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table turns the values of its partition fields into a path."""

    fields: tuple[str, ...]
    encoded: bool
    slashes: bool
    """Whether a date is written as `yyyy/MM/dd`, a folder for each part."""

    pattern: str | None
    """The Java date pattern of a timestamp key generator, where the table says it."""

    types: Mapping[str, str]
    """The types of the table's columns, by name."""

    @classmethod
    def of(cls, properties: Mapping[str, str], types: Mapping[str, str]) -> Layout:
        listed = properties.get("hoodie.table.partition.fields", "")
        # A custom key generator lists its fields with their kind, as `day:TIMESTAMP`.
        fields = tuple(part.partition(":")[0].strip() for part in listed.split(",") if part.strip())
        return cls(
            fields=fields,
            encoded=properties.get("hoodie.datasource.write.partitionpath.urlencode", "").lower() == "true",
            slashes=properties.get("hoodie.table.partition_extractor_class", "").endswith(_SLASHES),
            pattern=properties.get("hoodie.keygen.timebased.output.dateformat") if len(fields) == 1 else None,
            types=types,
        )

    def values(self, path: str) -> list[tuple[str, str | None]] | None:
        """The values that a partition path stands for; None for an unpartitioned table."""
        if not self.fields:
            return None
        segments = path.split("/") if len(self.fields) > 1 else [path]
        if len(segments) != len(self.fields):
            # A value with a slash of its own: which field it belongs to cannot be told.
            return [(",".join(self.fields), path)]
        return [(name, self._value(name, segment)) for name, segment in zip(self.fields, segments, strict=True)]

    def _value(self, name: str, segment: str) -> str | None:
        text = segment.removeprefix(f"{name}=")
        if text == _NULL:
            return None
        if self.slashes and len(self.fields) == 1:
            text = text.replace("/", "-")
        return unquote(text) if self.encoded else text

    def id(self, path: str) -> str | None:
        values = self.values(path)
        return None if values is None else partition_id(_SPEC, values)

    def is_typed(self, field: str) -> bool:
        """Whether the field's type, or how the table writes it, says that it is a date."""
        return self.slashes or self.pattern is not None or self.types.get(field, "").startswith(_TYPED)

    def candidates(self, path: str) -> tuple[Candidate, ...]:
        """What a partition path says of its date, field by field."""
        found = []
        for name, value in self.values(path) or ():
            if self.is_typed(name):
                found.append(Candidate(name, None if value is None else parse_day(value, self.pattern)))
            elif self.types.get(name) in _WRITTEN:
                found.append(Candidate.written(name, value))
        return tuple(found)

    def date_source(self, paths: Iterable[str]) -> DateSource:
        """The one field that the dates are in, by all partition paths that the table has."""
        return date_source(filter(self.is_typed, self.fields), map(self.candidates, paths))


def partitions_of_head(
    layout: Layout,
    source: DateSource,
    files: Mapping[str, Sequence[FileRef]],
    last_touch: Mapping[str, str],
    transactions: Mapping[str, Transaction],
) -> tuple[Partition, ...]:
    """The partitions that have a live file. `files` are the live ones by partition path."""
    partitions = []
    for path in sorted(files):
        id_ = layout.id(path)
        if id_ is None:
            continue
        candidates = layout.candidates(path)
        first, last = source.days(candidates) or (None, None)
        touched = transactions.get(last_touch.get(path, ""))
        rows = [f.rows for f in files[path] if f.role is Role.DATA]
        # Log files change rows of their base file: only reading them would tell how many are left.
        known = not any(f.role is Role.LOG for f in files[path]) and None not in rows
        partitions.append(
            Partition(
                id=id_,
                date=first,
                first_day=first,
                last_day=last,
                landed_at=touched.committed_at if touched else None,
                rows=sum(r or 0 for r in rows) if known else None,
                files=len(files[path]),
                bytes=sum(f.bytes or 0 for f in files[path]),
                last_transaction=touched.id if touched else None,
                candidates=candidates,
            )
        )
    return tuple(partitions)
