"""One erasure of everybody who is planted in the tables of a format, as `ebbtide erase` does it, and what it left.

Two rounds: rows leave, and their files some hours later; then what only a search sees. Nothing here shares code with
what it judges: rows are compared as readers have them, files as they lie there, bytes by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ebbtide.erasure.owner import DATASET
from tests.erasure.cells import PLACES, Variant
from tests.erasure.people import TYPES, values_of
from tests.erasure.variants.rows import Made, Read
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

Rows = list[str] | None
"""What a reader sees, in an order of its own; None where there is nothing to be read any more."""
_SEARCHED_FROM = 4
"""The day of the second round."""


@dataclass(frozen=True, slots=True)
class Erased:
    """A variant's table before and after. `states` are those of its place, by who was planted where; `left` is where
    bytes of each of them still lie.
    """

    before: Mapping[str, Rows]
    others: Mapping[str, Rows]
    """What a reader saw before, but for those who were erased."""
    after: Mapping[str, Rows]
    untouched: Mapping[str, tuple[int, int]]
    """Size and time of every data file that held none of them, before."""
    files: Mapping[str, tuple[int, int]]
    """The same of every file, after."""
    states: Mapping[str, tuple[str, str]]
    grades: Mapping[str, str]
    left: Mapping[str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class _Before:
    rows: Mapping[str, Rows]
    others: Mapping[str, Rows]
    untouched: Mapping[str, tuple[int, int]]


def erase_all(tide: Tide, tables: Mapping[str, Made]) -> dict[str, Erased]:
    """Everybody's request in one batch."""
    _declare(tide, tables)
    for made in tables.values():
        made.before_erasing()
    before = {id_: _before(made) for id_, made in tables.items()}
    requests = _file_requests(tide, tables)
    for day in (1, _SEARCHED_FROM):
        for hours in (0, 3):
            tide.app.erase.run(at_once=True, as_of=tide.at(day + hours / 24))
        found = tide.app.erase.verify(*requests.values(), as_of=tide.at(day + 0.5))
    grades = {each.id: each.grade for each in found}
    return {id_: _after(tide, made, before[id_], requests, grades) for id_, made in tables.items()}


def _declare(tide: Tide, tables: Mapping[str, Made]) -> None:
    columns = {
        type_: [
            f"{made.catalog.name}.db.planted_{made.variant.name}.{prefix}_{type_}"
            for made in tables.values()
            for prefix in ("c", "p")
        ]
        for type_ in TYPES
    }
    text = {"subjects": {type_: {"columns": listed} for type_, listed in columns.items()}}
    (tide.root / "subjects.yml").write_text(json.dumps(text))


def _file_requests(tide: Tide, tables: Mapping[str, Made]) -> dict[tuple[str, str], str]:
    """The id of each request, by variant and place."""
    asked = {
        (id_, place): {type_: values_of(id_, place).canonical(type_) for type_ in TYPES}
        for id_, made in tables.items()
        for place in PLACES
        if made.variant.planted(place)
    }
    file = tide.root / "people.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in asked.values()))
    tide.app.scan()
    filed = tide.app.erase.requests_from(file, law="gdpr")
    file.unlink()
    assert (filed.bad, filed.known, len(filed.requests)) == ((), 0, len(asked))
    return dict(zip(asked, filed.requests, strict=True))


def _before(made: Made) -> _Before:
    people = _people(made.variant)
    held = {path for there in _bytes_of(made).values() for path, _ in there}
    untouched = {path: stat for path, stat in _files(made.location).items() if _is_data(path) and path not in held}
    rows = {name: _read(read) for name, read in made.refs.items()}
    others = {name: _read(read, people) for name, read in made.refs.items()}
    return _Before(rows, others, untouched)


def _after(
    tide: Tide, made: Made, before: _Before, requests: Mapping[tuple[str, str], str], grades: Mapping[str, str]
) -> Erased:
    id_ = made.variant.id
    mine = {place: request for (variant, place), request in requests.items() if variant == id_}
    dataset = f"{made.catalog.name}.db.planted_{made.variant.name}"
    states = {}
    for place, request in mine.items():
        for step in tide.app.erase.status(request).steps:
            if (step.place, step.kind) == (dataset, DATASET):  # and not what a search of it said
                states[place] = (step.state, step.because)
    return Erased(
        before=before.rows, others=before.others, after={name: _read(read) for name, read in made.refs.items()},
        untouched=before.untouched, files=_files(made.location), states=states,
        grades={place: grades[request] for place, request in mine.items()},
        left={place: frozenset(there) for place, there in _bytes_of(made).items()},
    )  # fmt: skip


def _people(variant: Variant) -> set[object]:
    """Every value of everybody who asks, as rows have it: there may be rows for a place that the format has not."""
    found: set[object] = set()
    for place in filter(variant.planted, PLACES):
        values = values_of(variant.id, place)
        found |= {values.text, values.bigint, values.decimal, str(values.uuid), values.uuid.bytes}
    return found


def _bytes_of(made: Made) -> dict[str, set[tuple[str, str]]]:
    keys = {
        (place, type_): forms(getattr(values_of(made.variant.id, place), type_))
        for place in PLACES
        for type_ in made.variant.planted(place)
    }
    by_place: dict[str, set[tuple[str, str]]] = {place: set() for place, _ in keys}
    for (place, _), there in where_values_are(made.location, keys).items():
        by_place[place] |= there
    return by_place


def _read(read: Read, without: set[object] | None = None) -> Rows:
    try:
        frame: DataFrame = read()
        names = [name for name in frame.columns if not name.startswith("_hoodie")]
        rows = [tuple(map(_plain, row)) for row in frame.select(*(f"`{name}`" for name in names)).collect()]
    except PySparkException as error:
        if (
            re.search("snapshot|version|instant|time travel|timestamp as of|file|exist", str(error), re.IGNORECASE)
            is None
        ):
            raise
        return None
    gone = without or set()
    return sorted(str(row) for row in rows if not gone.intersection(row))


def _plain(value: object) -> object:
    if isinstance(value, bytearray):
        return bytes(value)
    return value if not isinstance(value, Decimal) else Decimal(int(value))


def _files(location: Path) -> dict[str, tuple[int, int]]:
    stats = {path: path.stat() for path in location.rglob("*") if path.is_file()}
    return {str(path.relative_to(location)): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _is_data(path: str) -> bool:
    """Files of deletes are none: they go with the last data file that they are for."""
    name = path.rpartition("/")[2]
    if not name.endswith((".parquet", ".orc")) or name.endswith("-deletes.parquet"):
        return False
    return not path.startswith(("_delta_log/", "metadata/", ".hoodie/", "_"))
