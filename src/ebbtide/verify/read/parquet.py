"""Parquet: the rows of all leaf columns batch by batch, what the footer says of them, and the bytes between.

Memory: a row group that unpacks to no more than `HELD` bytes is read with all of its columns at once, a larger one
column by column, in batches of some `_BATCH` bytes. A page is unpacked whole, and so is a column's dictionary; of a
column that is dictionary-encoded throughout only the dictionary comes out, once, as every value of its rows is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ebbtide.errors import keep_trace
from ebbtide.verify.read.delta import bounds_of_checkpoint
from ebbtide.verify.read.flat import is_variant, leaves
from ebbtide.verify.read.parquet_bounds import is_time, statistics
from ebbtide.verify.read.parquet_footer import BOOLEAN, BYTE_ARRAY, INT32, INT64, ColumnChunk, Footer, read_footer
from ebbtide.verify.read.pieces import COLUMN_NAMES, CannotTell, Cells, Piece, Pieces
from ebbtide.verify.read.stored import HELD, ObjectSource, arrow_file, as_bytes, exactly, failed
from ebbtide.verify.read.structural import is_checkpoint, is_fact_of_checkpoint, is_place
from ebbtide.verify.read.thrift import Compact

_BATCH = 16 << 20
_ROWS = 1 << 16
_CHECKPOINT_ROWS = 1 << 10
_STATS = ("add.stats", "remove.stats")
"""Statistics of a checkpoint as JSON: texts with counts in them. What they say of columns comes as bounds."""
_STREAM = 1 << 20
"""Of a column that is read alone, so much is fetched at a time."""


def read_parquet(stored: ObjectSource) -> Pieces:
    footer = read_footer(stored)
    if footer.encrypted:
        yield CannotTell("columns of it are encrypted")
    for key, value in (*footer.facts, (b"created_by", footer.writer)):
        yield from _fact(key, value)
    names = pa.array([leaf.name for leaf in footer.leaves], pa.string())
    yield Cells(COLUMN_NAMES, "row", names)
    skipped = _skipped(stored, footer)
    texts = {n for n, leaf in enumerate(footer.leaves) if leaf.name in _STATS}
    yield from statistics(stored, footer, skipped | (texts if _is_checkpoint(stored, footer) else set()))
    yield from _Rows(stored, footer, skipped).read()
    yield from _between(stored, footer)


def _fact(key: bytes, value: bytes) -> Iterator[Piece]:
    """A key-value of the footer. Arrow's own copy of the schema says nothing that the schema does not."""
    yield Cells("key-value footer", "row", pa.array([key.decode("utf-8", "replace")]))
    try:
        yield Cells("key-value footer", "row", pa.array([value.decode()], pa.large_string()))
    except UnicodeDecodeError:
        yield Cells("key-value footer", "row", pa.array([value], pa.large_binary()))


def _is_checkpoint(stored: ObjectSource, footer: Footer) -> bool:
    return is_checkpoint(stored.name, {leaf.path[0] for leaf in footer.leaves})


def _skipped(stored: ObjectSource, footer: Footer) -> frozenset[int]:
    """The leaves, by number, that can hold no value of a person."""
    tops = {leaf.path[0] for leaf in footer.leaves}
    checkpoint = _is_checkpoint(stored, footer)
    skipped = set()
    for n, leaf in enumerate(footer.leaves):
        whole_number = leaf.physical in (INT32, INT64)
        structural = is_fact_of_checkpoint(leaf.path) if checkpoint else is_place(leaf.path, leaf.field_id, tops)
        if leaf.physical == BOOLEAN or is_time(leaf) or (whole_number and structural):
            skipped.add(n)
    return frozenset(skipped)


class _Rows:
    """The rows of one file. What came out last of each column is remembered for the length of a row group."""

    def __init__(self, stored: ObjectSource, footer: Footer, skipped: frozenset[int]) -> None:
        self._stored, self._footer = stored, footer
        self._wanted = [n for n in range(len(footer.leaves)) if n not in skipped]
        self._checkpoint = _is_checkpoint(stored, footer)
        self._last: dict[str, pa.Array] = {}
        self._with_dictionary = [
            leaf.name
            for n, leaf in enumerate(footer.leaves)
            # A checkpoint's bounds stand row by row beside the files that they describe.
            if not self._checkpoint
            and leaf.physical == BYTE_ARRAY
            and footer.groups
            and all(c[n].all_dictionary for _, c in footer.groups)
        ]

    def read(self) -> Pieces:
        with ExitStack() as files:
            file = files.enter_context(arrow_file(files.enter_context(self._stored.open())))
            streamed = pq.ParquetFile(
                file, read_dictionary=self._with_dictionary, buffer_size=_STREAM, pre_buffer=False
            )
            for field in streamed.schema_arrow:
                if is_variant(field.type):
                    yield CannotTell(f"column {field.name} holds variants, whose numbers cannot be searched")
            together = streamed
            if any(self._is_small(chunks) for _, chunks in self._footer.groups):
                file = files.enter_context(arrow_file(files.enter_context(self._stored.open())))
                together = pq.ParquetFile(file, read_dictionary=self._with_dictionary, pre_buffer=True)
            for group, (rows, chunks) in enumerate(self._footer.groups):
                self._last.clear()
                if rows <= 0:  # it may have a dictionary, that of a table whose rows were all left out
                    for n in self._wanted:
                        yield from _held_by_none(self._stored, self._footer.leaves[n].name, chunks[n])
                if rows <= 0 or not self._wanted:
                    continue
                at_once = [n for n in self._wanted if self._is_small(chunks) and not self._may_swell(n, chunks[n])]
                alone = [n for n in self._wanted if n not in at_once]
                try:
                    if at_once:
                        yield from self._batches(together, group, at_once, self._size(rows, at_once, chunks))
                except Exception as error:  # one column may be broken: the others can still be read
                    keep_trace(error)
                    alone = self._wanted
                for n in alone:
                    yield from self._one(streamed, group, rows, n, chunks)

    def _weight(self, n: int, chunk: ColumnChunk) -> int:
        """What the values of a chunk take in memory, at the least."""
        leaf = self._footer.leaves[n]
        decoded = 0 if leaf.name in self._with_dictionary else chunk.decoded or 0
        return max(chunk.unpacked, leaf.width * int(chunk.meta.get(5, 0)), decoded)

    def _is_small(self, chunks: Sequence[ColumnChunk]) -> bool:
        return sum(max(self._weight(n, chunk), chunk.packed) for n, chunk in enumerate(chunks)) <= HELD

    def _may_swell(self, n: int, chunk: ColumnChunk) -> bool:
        """Whether its values may take far more room than their pages, each of them standing in a dictionary once."""
        leaf = self._footer.leaves[n]
        plain = leaf.physical == BYTE_ARRAY and leaf.name not in self._with_dictionary
        is_known = chunk.decoded is not None and chunk.decoded <= HELD
        return plain and chunk.has_dictionary and not is_known and not self._checkpoint

    def _one(self, parquet: pq.ParquetFile, group: int, rows: int, n: int, chunks: Sequence[ColumnChunk]) -> Pieces:
        """One column of one row group, or its bytes with the reason why they are no more than that."""
        size, chunk = self._size(rows, [n], chunks), chunks[n]
        try:
            if self._may_swell(n, chunk):
                size = min(size, self._rows_of_longest(group, n, parquet.metadata))
            yield from self._batches(parquet, group, [n], size)
        except Exception as error:
            yield failed(f"column {self._footer.leaves[n].name} cannot be read", error)
            yield from as_bytes(self._stored, "column that cannot be read", chunk.start, chunk.start + chunk.packed)

    def _size(self, rows: int, columns: Sequence[int], chunks: Sequence[ColumnChunk]) -> int:
        """The rows of a batch, by what one takes on average."""
        most = _CHECKPOINT_ROWS if self._checkpoint else _ROWS
        return int(max(1, min(most, _BATCH * rows // max(1, sum(self._weight(n, chunks[n]) for n in columns)))))

    def _rows_of_longest(self, group: int, n: int, known: pq.FileMetaData) -> int:
        """The rows of a batch if each had the longest value of the dictionary, which stands in the file only once."""
        name = self._footer.leaves[n].name
        with self._stored.open() as plain, arrow_file(plain) as file:
            parquet = pq.ParquetFile(
                file, metadata=known, read_dictionary=[name], buffer_size=_STREAM, pre_buffer=False
            )
            first = next(parquet.reader.iter_batches(1, [group], [n], use_threads=False), None)
        longest = 1
        for column in first.columns if first is not None else ():
            for _, values in leaves("", column):
                longest = max(longest, pc.max(pc.binary_length(values)).as_py() or 1)
        return max(1, 4 * _BATCH // longest)

    def _batches(self, parquet: pq.ParquetFile, group: int, columns: list[int], size: int) -> Pieces:
        for batch in parquet.reader.iter_batches(size, [group], columns, use_threads=False):
            for field, column in zip(batch.schema, batch.columns, strict=True):
                for path, values in leaves(field.name, column):
                    if self._checkpoint and path in _STATS:
                        continue
                    if not self._is_known(path, values):
                        yield Cells(f"column {path}", "row", values)
            if self._checkpoint:
                yield from bounds_of_checkpoint(batch)

    def _is_known(self, path: str, values: pa.Array) -> bool:
        """Whether these very values came out just before: a dictionary comes with each batch of its row group."""
        last, self._last[path] = self._last.get(path), values
        return last is not None and len(last) == len(values) and bool(last.equals(values))


def _held_by_none(stored: ObjectSource, name: str, chunk: ColumnChunk) -> Pieces:
    """What a chunk of no rows keeps. As a rule it is the head of a page with nothing in it."""
    if chunk.packed <= 0:
        return
    with stored.open() as file:
        file.seek(chunk.start)
        page = Compact(exactly(file, min(256, chunk.packed, stored.size - chunk.start), "a page")).struct()
    if page.get(2, 0):
        yield CannotTell(f"column {name} has a dictionary and no rows")
        yield from as_bytes(stored, "dictionary without rows", chunk.start, chunk.start + chunk.packed)


def _between(stored: ObjectSource, footer: Footer) -> Pieces:
    """Bytes that belong to no column, no index and no footer: nothing has to be there, but something may."""
    known = [(0, 4), (footer.start, footer.end), (stored.size - 8, stored.size)]
    for _, chunks in footer.groups:
        for chunk in chunks:
            known.append((chunk.start, chunk.start + chunk.packed))
            known += [(chunk.outer[at], chunk.outer[at] + chunk.outer[size]) for at, size in ((4, 5), (6, 7))
                      if chunk.outer.get(at) and chunk.outer.get(size)]  # fmt: skip
            if at := chunk.meta.get(14):
                known.append((at, at + (chunk.meta.get(15) or _bloom_size(stored, at))))
    at = 0
    for start, end in sorted(known):
        if start > at:
            for piece in as_bytes(stored, "bytes between the columns", at, start):
                if piece.data.strip(b"\0"):
                    yield piece
        at = max(at, end)


def _bloom_size(stored: ObjectSource, at: int) -> int:
    """A bloom filter with its header, where the footer does not say how long they are."""
    with stored.open() as file:
        file.seek(at)
        head = Compact(exactly(file, min(64, stored.size - at), "a bloom filter"))
    return int(head.struct().get(1, 0)) + head.at
