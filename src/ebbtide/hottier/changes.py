"""A batch of the log as what it does to the cold table: rows that are new, keys whose rows go, rows that replace them.

Per key only the last change counts. A value that TOAST left out is the one from before: of an earlier row of the batch,
or of the cold table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.hottier.arrays import to_arrow
from ebbtide.hottier.columns import Columns
from ebbtide.hottier.pgoutput import ChangeBatch, RowChanges
from ebbtide.hottier.values import CannotFollowError, Field

_ORDER, _HOLES = "__order", "__holes"


@dataclass(frozen=True, slots=True)
class Hole:
    """A value that the log left out: column `column` of row `row` is what the key `source` has had."""

    row: int
    column: str
    source: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a batch does. `appended` are rows whose keys the batch never touched otherwise; the rest is a merge.

    `touched` has the end of the last transaction for every leaf.
    """

    appended: pa.Table
    merged: pa.Table
    gone: pa.Table
    """Keys whose rows leave the cold table, those of `merged` among them."""
    holes: tuple[Hole, ...] = ()
    touched: dict[int, int] = field(default_factory=dict)

    @property
    def changes_rows(self) -> bool:
        return bool(self.gone.num_rows)


def effect_of(batch: ChangeBatch, columns: Columns) -> Effect:
    """The effect of whole transactions. What the log tells of belongs to the table: its publication has no other."""
    puts: list[pa.Table] = []
    cuts: list[pa.Table] = []
    touched: dict[int, int] = {}
    holes: list[tuple[int, str, tuple[Any, ...]]] = []
    for changes in batch.changes():
        _note(batch, changes, touched)
        if changes.new is not None:
            puts.append(_rows(batch, changes, changes.new, columns))
            holes += _holes(batch, changes, columns)
        if changes.old is not None:
            cuts.append(_keys(batch, changes, changes.old, columns))
        elif _is_update(batch, changes):
            cuts.append(_keys(batch, changes, changes.new, columns))
    return _last_of_each(columns, puts, cuts, holes, touched)


def _is_update(batch: ChangeBatch, changes: RowChanges) -> bool:
    return bool(batch.kinds[changes.order[0]] == ord("U"))


def _note(batch: ChangeBatch, changes: RowChanges, touched: dict[int, int]) -> None:
    ends, oids = batch.commit_of(changes.order), changes.oids
    for oid in np.unique(oids):
        of_leaf = oids == oid
        touched[int(oid)] = max(touched.get(int(oid), 0), int(ends[of_leaf].max()))


def _rows(batch: ChangeBatch, changes: RowChanges, image: Sequence[Field], columns: Columns) -> pa.Table:
    by_name = dict(zip(changes.relation.columns, image, strict=True))
    made: dict[str, pa.Array] = {}
    for column in columns.columns:
        if (where := by_name.get(column.name)) is None:
            made[column.name] = pa.nulls(len(changes.order), column.arrow)
        else:
            made[column.name] = to_arrow(batch.buffer, where, column)
    made[_ORDER] = pa.array(changes.order)
    return pa.table(made)


def _keys(batch: ChangeBatch, changes: RowChanges, image: Sequence[Field] | None, columns: Columns) -> pa.Table:
    assert image is not None
    by_name = dict(zip(changes.relation.columns, image, strict=True))
    made = {key.name: to_arrow(batch.buffer, by_name[key.name], key) for key in columns.keys}
    return pa.table(made | {_ORDER: pa.array(changes.order)})


def _holes(batch: ChangeBatch, changes: RowChanges, columns: Columns) -> list[tuple[int, str, tuple[Any, ...]]]:
    """Rows are few that have some: each is told with the key that had its value before."""
    assert changes.new is not None
    found = []
    known = set(columns.names)
    keys: list[tuple[Any, ...]] | None = None
    for name, where in zip(changes.relation.columns, changes.new, strict=True):
        if name not in known or not where.kept.any():
            continue
        if keys is None:
            source = changes.old if changes.old is not None else changes.new
            keys = key_tuples(_keys(batch, changes, source, columns), columns)
        found += [(int(changes.order[n]), name, keys[n]) for n in np.flatnonzero(where.kept)]
    return found


def key_tuples(table: pa.Table, columns: Columns) -> list[tuple[Any, ...]]:
    """Keys as plain values, for the few that are looked at one by one."""
    return list(zip(*(table[key.name].to_pylist() for key in columns.keys), strict=True))


def _last_of_each(
    columns: Columns,
    puts: list[pa.Table],
    cuts: list[pa.Table],
    holes: list[tuple[int, str, tuple[Any, ...]]],
    touched: dict[int, int],
) -> Effect:
    schema = columns.schema.append(pa.field(_ORDER, pa.int64()))
    put = pa.concat_tables([pa.table({n: pa.array([], schema.field(n).type) for n in schema.names}), *puts])
    put = put.sort_by(_ORDER)
    names = [key.name for key in columns.keys]
    key_schema = pa.schema([*(pa.field(n, schema.field(n).type) for n in names), pa.field(_ORDER, pa.int64())])
    cut = pa.concat_tables([pa.table({n: pa.array([], key_schema.field(n).type) for n in key_schema.names}), *cuts])
    filled, open_holes = _fill(put, holes, columns)
    # Without an update or a delete no key comes twice.
    last = _only_last(filled, cut, names) if cut.num_rows else filled
    # A row of which no change but its insert is in this batch is new to the cold table.
    hit = np.zeros(last.num_rows, np.bool_)
    if cut.num_rows:
        # One whose value the cold table has replaces a row there, though perhaps under another key.
        waiting = np.isin(last[_ORDER].to_numpy(), [order for order, _, _ in open_holes])
        hit = rows_with_keys(last, cut, names) | waiting
    appended, merged = last.filter(pa.array(~hit)), last.filter(pa.array(hit))
    gone = cut.drop_columns([_ORDER]).group_by(names).aggregate([]) if cut.num_rows else cut.drop_columns([_ORDER])
    places = {order: n for n, order in enumerate(merged[_ORDER].to_pylist())}
    left = tuple(Hole(places[order], name, key) for order, name, key in open_holes if order in places)
    return Effect(
        appended.drop_columns([_ORDER]), merged.drop_columns([_ORDER]), gone, left, touched
    )  # fmt: skip


def _only_last(put: pa.Table, cut: pa.Table, names: list[str]) -> pa.Table:
    """The rows that are there at the end of the batch: no later change of their key came."""
    newest = put.group_by(names).aggregate([(_ORDER, "max")]).rename_columns([*names, "__put"])
    gone = cut.group_by(names).aggregate([(_ORDER, "max")]).rename_columns([*names, "__cut"])
    newest = newest.join(gone, names, join_type="left outer")
    # An update cuts and puts at the same place of the log: then the row is there.
    newest = newest.filter(pc.less_equal(pc.fill_null(newest["__cut"], -1), newest["__put"]))
    kept = np.isin(put[_ORDER].to_numpy(), newest["__put"].to_numpy())
    return put.filter(pa.array(kept))


def rows_with_keys(table: pa.Table, keys: pa.Table, names: list[str]) -> Any:
    """Which rows have one of these keys."""
    slim = table.select(names).append_column("__row", pa.array(np.arange(table.num_rows)))
    found = slim.join(keys.select(names), names, join_type="left semi")["__row"].to_numpy()
    hit = np.zeros(table.num_rows, np.bool_)
    hit[found] = True
    return hit


def _fill(
    put: pa.Table, holes: list[tuple[int, str, tuple[Any, ...]]], columns: Columns
) -> tuple[pa.Table, list[tuple[int, str, tuple[Any, ...]]]]:
    """Fill what the log left out from earlier rows of the batch; gives the rest, which the cold table knows."""
    if not holes:
        return put, []
    place = {order: n for n, order in enumerate(put[_ORDER].to_pylist())}
    keys = key_tuples(put, columns)
    wanted = {key for _, _, key in holes}
    before: dict[tuple[Any, ...], list[int]] = {}
    for n, key in enumerate(keys):
        if key in wanted:
            before.setdefault(key, []).append(n)
    values = {name: put[name].to_pylist() for name in {name for _, name, _ in holes}}
    still: dict[tuple[int, str], tuple[Any, ...]] = {}
    for order, name, key in sorted(holes, key=lambda hole: hole[0]):
        row = place[order]
        earlier = [n for n in before.get(key, ()) if n < row]
        if not earlier:
            still[(order, name)] = key
            continue
        source = earlier[-1]
        origin = still.get((int(put[_ORDER][source].as_py()), name))
        if origin is not None:
            still[(order, name)] = origin
        values[name][row] = values[name][source]
    for name, filled in values.items():
        put = put.set_column(put.schema.get_field_index(name), name, pa.array(filled, columns[name].arrow))
    return put, [(order, name, key) for (order, name), key in still.items()]


def fill_from(merged: pa.Table, holes: Sequence[Hole], replaced: pa.Table, columns: Columns) -> pa.Table:
    """The rows with what the cold table's rows that they replace had."""
    if not holes:
        return merged
    known = {key: n for n, key in enumerate(key_tuples(replaced, columns))}
    values = {name: merged[name].to_pylist() for name in {hole.column for hole in holes}}
    for hole in holes:
        if hole.source not in known:
            raise CannotFollowError(
                "the log changes a row that the cold table does not have", hint="run `ebbtide tier resync TABLE`"
            )
        values[hole.column][hole.row] = replaced[hole.column][known[hole.source]].as_py()
    for name, filled in values.items():
        merged = merged.set_column(
            merged.schema.get_field_index(name), name, pa.array(filled, columns[name].arrow)
        )  # fmt: skip
    return merged
