"""ORC: the rows of all columns, stripe by stripe, and the file's own key-values.

Statistics of stripes and of row groups are not read: they hold the least and the greatest values of the rows beside
them, and all rows are read. Memory: one stripe where it is small, else one of its columns.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import orc

from ebbtide.verify.read.flat import leaves, names_in
from ebbtide.verify.read.orc_places import gaps
from ebbtide.verify.read.pieces import COLUMN_NAMES, Cells, Pieces
from ebbtide.verify.read.stored import HELD, ObjectSource, as_bytes, failed


def _between(stored: ObjectSource) -> Pieces:
    """Bytes before, between and within the stripes that belong to none of them, and to no footer."""
    try:
        places = list(gaps(stored))
    except Exception as error:
        yield failed("where its stripes lie cannot be told", error)
        places = [(0, stored.size)]
    for start, end in places:
        for piece in as_bytes(stored, "bytes between the stripes", start, end):
            if piece.data.strip(b"\0"):
                yield piece


def read_orc(stored: ObjectSource) -> Pieces:
    with stored.open() as file:
        read = orc.ORCFile(file)
        yield Cells(COLUMN_NAMES, "row", pa.array(list(names_in(read.schema)), pa.string()))
        for key, value in (read.metadata or {}).items():
            yield Cells("key-value footer", "row", pa.array([key, value], pa.large_binary()))
        stripes = read.nstripes
        small = stored.size // max(1, stripes) <= HELD // 4
        whole = True
        for stripe in range(stripes):
            for columns in [None] if small else [[name] for name in read.schema.names]:
                try:
                    batch = read.read_stripe(stripe, columns=columns)
                except Exception as error:
                    whole = False
                    yield failed("a stripe cannot be read", error)
                    continue
                for field, column in zip(batch.schema, batch.columns, strict=True):
                    for path, values in leaves(field.name, column):
                        yield Cells(f"column {path}", "row", values)
        yield from _between(stored)
        if not whole:
            yield from as_bytes(stored)
