"""A chunk is dropped before the lake's own policies let go of its rows (spec §6). No server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide import Ebbtide
from ebbtide.app.tier_cold import refuse_outlived
from ebbtide.app.tier_opened import hot_tables
from ebbtide.errors import InputError
from tests.hottier.tier import POLICY, PROJECT, TABLE

_SELECTED = "  - {{name: {0}, select: {{tables: [{1}]}}, {2}}}\n"


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (_SELECTED.format("p", "lake.hot.*", "partitions: {older_than: 10d}"), "policy 'p' removes partitions of lake"),
        (_SELECTED.format("t", "lake.**", "transactions: {older_than: 1w}"), "policy 't' removes transactions of lake"),
        (_SELECTED.format("r", "lake.hot.m", "rows: {column: at, older_than: 9d}"), "policy 'r' removes rows of lake"),
        (_SELECTED.format("a", "lake.hot.*", "tables: {older_than: 10d}"), "policy 'a' removes tables of lake.hot.m"),
        (_SELECTED.format("p", "lake.hot.*", "partitions: {older_than: 11d}"), None),
        (_SELECTED.format("o", "lake.other.*", "partitions: {older_than: 1d}"), None),
        (_SELECTED.format("v", "lake.**", "versions: {older_than: 1d}"), None),
        (
            _SELECTED.format("first", "lake.hot.m", "partitions: {older_than: 1y}")
            + _SELECTED.format("second", "lake.**", "partitions: {older_than: 1d}"),
            None,
        ),
    ],
)
def test_a_chunk_is_dropped_before_the_lake_lets_go_of_its_rows(
    tmp_path: Path, policies: str, said: str | None
) -> None:
    for name, text in (
        ("ebbtide.yml", PROJECT),
        ("hottier/m.yml", f"server: nobody asks it\ntables:\n{POLICY}"),
        ("policies/p.yml", f"policies:\n{policies}"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    project = Ebbtide(tmp_path).project
    table = hot_tables(project)[TABLE]
    if said is None:
        return refuse_outlived(project, table)
    with pytest.raises(InputError, match=said) as refused:
        refuse_outlived(project, table)
    assert "m.yml:3" in refused.value.message
    return None
