"""Objects as commands take them: what is printed can be pasted."""

from __future__ import annotations

import pytest

from ebbtide.app.datasets import parse_object
from ebbtide.model.ids import DatasetId, object_name, partition_id


@pytest.mark.parametrize(
    ("target", "object_id"),
    [
        ("versions", "4723938700349886826"),
        ("partitions", partition_id("0", [("day", None)])),
        ("partitions", partition_id("0", [("name", "50 % of a/b"), ("day", "2026-01-01")])),
        ("orphans", "file:///lake/db.v1/t%20x/data"),
        ("branches", "a.b#c@d:e%00"),
    ],
)
def test_a_printed_name_is_read_back_as_the_same_object(target: str, object_id: str) -> None:
    dataset = str(DatasetId("lake", ("db.v1",), "t#1"))
    assert parse_object(object_name(dataset, target, object_id)) == (dataset, target, object_id)


def test_a_null_partition_is_encoded_once_more() -> None:
    assert object_name("lake.db.t", "partitions", "0/day=%00") == "lake.db.t#partitions:0/day=%2500"
