"""Slices of nested arrays give their own values, and no others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ebbtide.verify.read.flat import leaves

_LISTS = [[f"a{n}", f"b{n}"] for n in range(10)]


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array(_LISTS, pa.list_(pa.string())), {"c.element": ["a3", "b3", "a4", "b4"]}),
        (pa.array(_LISTS, pa.large_list(pa.string())), {"c.element": ["a3", "b3", "a4", "b4"]}),
        (pa.array(_LISTS, pa.list_(pa.string(), 2)), {"c.element": ["a3", "b3", "a4", "b4"]}),
        (pa.array([[(f"k{n}", n)] for n in range(10)], pa.map_(pa.string(), pa.int64())),
         {"c.key": ["k3", "k4"], "c.value": [3, 4]}),
        (pa.array([{"x": n, "y": {"z": f"z{n}"}} for n in range(10)]), {"c.x": [3, 4], "c.y.z": ["z3", "z4"]}),
    ],
)  # fmt: skip
def test_a_slice_gives_its_values(array: pa.Array, wanted: dict[str, list[object]]) -> None:
    assert {path: values.to_pylist() for path, values in leaves("c", array.slice(3, 2))} == wanted


def test_a_dictionary_comes_once_or_by_row() -> None:
    values = pa.array(["a", "b", "a", None]).dictionary_encode()
    array = pa.StructArray.from_arrays([values], ["x"])
    assert {path: found.to_pylist() for path, found in leaves("c", array)} == {"c.x": ["a", "b"]}
    assert {path: found.to_pylist() for path, found in leaves("c", array, by_row=True)} == {
        "c.x": ["a", "b", "a", None]
    }
