"""Arrow arrays made flat: the leaves of structs, lists and maps with their paths, and of a dictionary its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.types as pt

_NOTHING = (pt.is_boolean, pt.is_null)
"""Types that can hold no value of a person."""


def leaves(path: str, array: pa.Array, *, by_row: bool = False) -> Iterator[tuple[str, pa.Array]]:
    """The leaves of one column, with their paths: "address.street", "tags.element", "names.key".

    A dictionary comes once; with `by_row` each of its values comes as often as rows have it, in their order.
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from leaves(path, array.storage, by_row=by_row)
    elif pt.is_struct(kind):
        for n in range(kind.num_fields):
            yield from leaves(f"{path}.{kind.field(n).name}", array.field(n), by_row=by_row)
    elif pt.is_map(kind):
        yield from leaves(f"{path}.key", _held(array, array.keys), by_row=by_row)
        yield from leaves(f"{path}.value", _held(array, array.items), by_row=by_row)
    elif is_list(kind):
        yield from leaves(f"{path}.element", _held(array, array.values), by_row=by_row)
    elif pt.is_union(kind):
        for n in range(kind.num_fields):
            yield from leaves(f"{path}.{n}", array.field(n), by_row=by_row)
    elif pt.is_dictionary(kind):
        yield from leaves(path, array.dictionary_decode() if by_row else array.dictionary, by_row=by_row)
    elif not any(test(kind) for test in _NOTHING):
        yield path, array


def names_in(schema: Iterable[pa.Field]) -> Iterator[str]:
    """The names of all fields, however deep: that of a struct's field may be a value, as a column's may."""
    for field in schema:
        yield field.name
        yield from names_in(field.type.field(n) for n in range(field.type.num_fields))


def _held(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Of the values that lists have together with those before and behind them, theirs, without a copy."""
    if pt.is_list_view(lists.type) or pt.is_large_list_view(lists.type):
        return values  # each of its lists may lie anywhere in them
    if pt.is_fixed_size_list(lists.type):
        return values.slice(lists.offset * lists.type.list_size, len(lists) * lists.type.list_size)
    start, end = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    return values.slice(start, end - start)


def is_list(kind: pa.DataType) -> bool:
    views = pt.is_list_view(kind) or pt.is_large_list_view(kind)
    return bool(views or pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind.value_type if pt.is_dictionary(kind) else kind))


def is_variant(kind: pa.DataType) -> bool:
    """Whether a column is, or holds, a variant: two binaries, the second with values in an encoding of its own."""
    if pt.is_struct(kind):
        fields = {kind.field(n).name: kind.field(n).type for n in range(kind.num_fields)}
        if {"metadata", "value"} <= fields.keys() and all(_is_binary(fields[n]) for n in ("metadata", "value")):
            return True
        return any(is_variant(each) for each in fields.values())
    if is_list(kind):
        return is_variant(kind.value_type)
    return bool(pt.is_map(kind)) and (is_variant(kind.key_type) or is_variant(kind.item_type))
