"""What a Parquet file says of its rows beside them: statistics of chunks, page indexes, key-values of the footer.

A page's own header may carry the least and greatest value of that very page: those are values of rows, which are read.
A bloom filter holds bits of hashes: it can only say "may contain", and as all rows are read it is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal, localcontext

import pyarrow as pa

from ebbtide.verify.read.parquet_footer import BYTE_ARRAY, DOUBLE, FIXED, FLOAT, INT32, INT64, INT96, Footer, LeafColumn
from ebbtide.verify.read.pieces import Cells, Piece
from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, exactly, failed
from ebbtide.verify.read.thrift import Compact

_SHORTEST_CUT = 16
"""Writers cut after 64 bytes, which is 16 characters at the least, or not at all."""
_TEXTS, _LOGICAL_TEXTS = (0, 4, 19), {1, 4, 12}
"""UTF8, ENUM and JSON, as converted and as logical types."""
_DATE, _DECIMAL, _MILLIS, _MICROS = 6, 5, 9, 10
_DATE_TYPE, _TIME, _INSTANT, _OLD_TIMES = 6, 7, 8, (7, 8)


def statistics(stored: ObjectSource, footer: Footer, skipped: frozenset[int]) -> Iterator[Piece]:
    """Least and greatest values: of the chunks, by the footer, and of the pages, by their indexes."""
    for n, leaf in enumerate(footer.leaves):
        if n in skipped:
            continue
        found: dict[tuple[bool, bool], list[bytes]] = {}
        for _, chunks in footer.groups:
            facts = chunks[n].meta.get(12) or {}
            for field, upper, exact in ((1, True, 7), (5, True, 7), (2, False, 8), (6, False, 8)):
                if isinstance(facts.get(field), bytes):
                    found.setdefault((upper, facts.get(exact) is True), []).append(facts[field])
        for (upper, whole), values in found.items():
            yield from _cells("statistics", leaf, values, stored.name, upper=upper, whole=whole)
    try:
        yield from _page_indexes(stored, footer, skipped)
    except Exception as error:
        yield failed("its page index cannot be read", error)


def _page_indexes(stored: ObjectSource, footer: Footer, skipped: frozenset[int]) -> Iterator[Cells]:
    places = [
        (n, chunk.outer[6], chunk.outer[7])
        for _, chunks in footer.groups
        for n, chunk in enumerate(chunks)
        if n not in skipped and chunk.outer.get(6) and chunk.outer.get(7)
    ]
    if not places:
        return
    first, last = min(at for _, at, _ in places), max(at + size for _, at, size in places)
    with stored.open() as file:
        if last - first > HELD:
            raise UnknownContentError("it is larger than may be held")
        file.seek(first)
        content = exactly(file, last - first, "its page index")
    found: dict[tuple[int, bool], list[bytes]] = {}
    for n, at, _ in places:
        index = Compact(content, at - first).struct()
        nothing = index.get(1, [])
        for field, upper in ((2, False), (3, True)):
            values = [value for value, null in zip(index.get(field, []), nothing, strict=False) if not null]
            found.setdefault((n, upper), []).extend(values)
    for (n, upper), values in found.items():
        yield from _cells("page index", footer.leaves[n], values, stored.name, upper=upper, whole=False)


def _cells(
    what: str, leaf: LeafColumn, values: list[bytes], describes: str, *, upper: bool, whole: bool
) -> Iterator[Cells]:
    array = typed(leaf, values)
    text = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    cut = None if whole or not text else _SHORTEST_CUT
    if len(array):
        yield Cells(f"{what} of column {leaf.name}", "bound", array, cut, upper and cut is not None, describes)


def typed(leaf: LeafColumn, values: Iterable[bytes]) -> pa.Array:
    """Bounds as values of the column's type; as bytes where they are not of its length, or the type is not known."""
    values = list(values)
    numbers = {INT32: pa.int32(), INT64: pa.int64(), FLOAT: pa.float32(), DOUBLE: pa.float64()}
    kind = numbers.get(leaf.physical)
    scale = _scale(leaf)
    widest = max(map(len, values), default=0)
    if scale is not None and leaf.physical in (INT32, INT64, BYTE_ARRAY, FIXED) and widest <= 16:
        order = "little" if kind is not None else "big"
        with localcontext(prec=80):
            exact = [Decimal(int.from_bytes(each, order, signed=True)).scaleb(-scale) for each in values]  # type: ignore[arg-type]
            return pa.array(exact, pa.decimal256(76, scale))
    if kind is not None and all(len(each) == kind.bit_width // 8 for each in values):
        plain = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(b"".join(values))])
        is_date = kind == pa.int32() and (_DATE_TYPE in (leaf.element.get(10) or {}) or leaf.element.get(6) == _DATE)
        return plain.cast(pa.date32()) if is_date else plain
    if leaf.physical == BYTE_ARRAY and _is_text(leaf):
        try:
            return pa.array([each.decode() for each in values], pa.large_string())
        except UnicodeDecodeError:  # it was cut within a character
            pass
    return pa.array(values, pa.large_binary())


def _is_text(leaf: LeafColumn) -> bool:
    return leaf.element.get(6) in _TEXTS or bool(_LOGICAL_TEXTS & set(leaf.element.get(10) or {}))


def _scale(leaf: LeafColumn) -> int | None:
    logical = (leaf.element.get(10) or {}).get(5)
    if logical is None and leaf.element.get(6) != _DECIMAL:
        return None
    scale = int((logical or {}).get(1, leaf.element.get(7, 0)) or 0)
    return scale if 0 <= scale <= 76 else None


def is_time(leaf: LeafColumn) -> bool:
    """Whether its values are instants or times of a day: no value of a person is one."""
    logical, old = leaf.element.get(10) or {}, leaf.element.get(6)
    return leaf.physical == INT96 or _TIME in logical or _INSTANT in logical or old in (*_OLD_TIMES, _MILLIS, _MICROS)
