"""Bounds that were cut: as long as they are, all of them counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ebbtide.verify.bounds import Suspicion, explains
from ebbtide.verify.read.pieces import Cells
from tests.verify.people import LONG, needle, search


@pytest.mark.parametrize("length", [16, 20, len(LONG)])
def test_a_bound_is_suspected_by_all_of_its_characters(length: int) -> None:
    bounds = Cells("bound of column c", "bound", pa.array([LONG[:length], LONG[: length - 1] + "?"]), cut=16)
    assert {each.start for each in search(needle(LONG), bounds).suspicions} == {LONG[:length]}


_FILES = {  # what Paimon writes: rows alone, and rows behind their key
    "append": (["id", "mail", "tags.list.element", "city"], "bound of column 3"),
    "key": (["_KEY_city", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "mail", "city"], "bound of column 2"),
    "key itself": (["_KEY_id", "_KEY_city", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "city"], "bound of key field 1"),
}


@pytest.mark.parametrize("kind", _FILES)
def test_a_bound_of_a_column_by_number_is_explained_by_that_column_alone(kind: str) -> None:
    names, where = _FILES[kind]
    wanted, column = needle(LONG), "column _KEY_city" if "key field" in where else "column city"
    suspicion = Suspicion(0, where, "data-1.parquet", LONG[:16])
    for neighbour, told in ((LONG[:20] + "another", True), ("nobody", False)):
        cells = [Cells("names of columns", "row", pa.array(names)), Cells("column mail", "row", pa.array([LONG[:30]]))]
        assert explains(wanted, suspicion, iter([*cells, Cells(column, "row", pa.array([LONG, neighbour]))])) is told
    assert explains(wanted, suspicion, iter(cells)) is None
