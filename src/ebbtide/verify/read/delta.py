"""Statistics of Delta, in the log and in checkpoints: bounds of the file that an action names, cut after 32 letters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal

import pyarrow as pa

from ebbtide.verify.read.flat import leaves
from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.pieces import Cells
from ebbtide.verify.read.repeated import all_values

CUT = 32
_TIES = ("\x7f", "\U0010ffff")
"""What Delta puts behind an upper bound that it cut, so that it stays one."""
_SIDES = (("minValues", False), ("maxValues", True))


def gather_stats(into: Gathered, stats: object, file: str | None) -> None:
    """The bounds of one action: JSON within JSON."""
    if isinstance(stats, str | bytes):
        try:
            stats = json.loads(stats, parse_float=Decimal, object_pairs_hook=all_values)
        except (ValueError, RecursionError):
            into.add("log: stats", stats, "row")
            return
    if not isinstance(stats, Mapping):
        into.add("log: stats", stats, "row")
        return
    for side, upper in _SIDES:
        _bounds(into, stats.get(side), "", upper, file)
    for key, value in stats.items():
        if key not in ("minValues", "maxValues", "numRecords", "nullCount", "tightBounds"):
            into.add("log: stats", json.dumps(value, default=str), "row")


def _bounds(into: Gathered, values: object, path: str, upper: bool, file: str | None) -> None:
    todo = [(path, values)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, Mapping):
            todo += [(f"{path}.{name}" if path else str(name), each) for name, each in value.items()]
        elif isinstance(value, list):
            todo += [(path, each) for each in value]
        elif isinstance(value, str):
            text = value.rstrip("".join(_TIES)) if upper and len(value) > CUT else value
            into.add(f"bound of column {path}", text, "bound", cut=CUT, raised=upper, describes=file)
        else:
            into.add(f"bound of column {path}", value, "bound", describes=file)


def bounds_of_checkpoint(batch: pa.RecordBatch) -> Iterator[Cells]:
    """What a batch of a checkpoint says of files: statistics as JSON, and as columns."""
    for action in ("add", "remove"):
        if (at := batch.schema.get_field_index(action)) < 0 or not pa.types.is_struct(batch.schema.field(at).type):
            continue
        column = batch.column(at)
        fields = {column.type.field(n).name: column.field(n) for n in range(column.type.num_fields)}
        files = fields.get("path")
        if "stats" in fields:
            yield from _json_stats(fields["stats"], files)
        if "stats_parsed" in fields:
            yield from _typed_stats(fields["stats_parsed"], files)


def _json_stats(stats: pa.Array, files: pa.Array | None) -> Iterator[Cells]:
    gathered = Gathered()
    for n, each in enumerate(stats.to_pylist()):
        if each is not None:
            gather_stats(gathered, each, None if files is None else files[n].as_py())
        if gathered.full:
            yield from gathered.take()
    yield from gathered.take()


def _typed_stats(stats: pa.StructArray, files: pa.Array | None) -> Iterator[Cells]:
    for side, upper in _SIDES:
        if (at := stats.type.get_field_index(side)) < 0:
            continue
        for path, values in leaves("", stats.field(at), by_row=True):
            text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            same = files is not None and len(files) == len(values)
            yield Cells(
                f"bound of column {path.removeprefix('.')}",
                "bound",
                _without_ties(values) if text and upper else values,
                CUT if text else None,
                upper and text,
                files if same else None,
            )


def _without_ties(values: pa.Array) -> pa.Array:
    return pa.array(
        [each.rstrip("".join(_TIES)) if each and len(each) > CUT else each for each in values.to_pylist()], values.type
    )
