"""Bounds that were cut: as long as they are, all of them counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ebbtide.verify.read.pieces import Cells
from tests.verify.people import LONG, needle, search


@pytest.mark.parametrize("length", [16, 20, len(LONG)])
def test_a_bound_is_suspected_by_all_of_its_characters(length: int) -> None:
    bounds = Cells("bound of column c", "bound", pa.array([LONG[:length], LONG[: length - 1] + "?"]), cut=16)
    assert {each.start for each in search(needle(LONG), bounds).suspicions} == {LONG[:length]}
