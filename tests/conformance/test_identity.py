"""What tells a table from another one of its name, on every format (hazard 31)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.errors import RefusedError
from ebbtide.formats.same_table import same_table
from ebbtide.model.ids import DatasetId
from tests.conformance.conftest import Bench, MakeBench
from tests.conformance.driver import Table


@pytest.mark.spark41
def test_a_table_keeps_its_identity_and_one_that_is_made_anew_has_another(any_bench: Bench) -> None:
    bench = any_bench
    table = bench.create("identity")
    bench.driver.append(table, [(1, "x", "d")])
    reading = bench.read(table)
    found = replace(bench.found(table), identity=reading.identity)
    assert reading.identity
    with same_table(found, bench.catalog, bench.spark):
        bench.driver.append(table, [(2, "y", "d")])
        bench.driver.overwrite(table, [(3, "z", "d")])
    assert bench.read(table).identity == reading.identity

    def make_anew() -> Table:
        bench.driver.drop(table)
        again = bench.driver.create(table.id.table, variant=bench.variant)
        bench.driver.append(again, [(1, "x", "d")])
        return again

    with pytest.raises(RefusedError, match="look at what changed there"), same_table(found, bench.catalog, bench.spark):
        again = make_anew()
    with pytest.raises(RefusedError, match="nothing was changed"), same_table(found, bench.catalog, bench.spark):
        raise AssertionError("it was begun on another table")
    bench.driver.drop(again)
    with pytest.raises(RefusedError, match="no such table"), same_table(found, bench.catalog, bench.spark):
        raise AssertionError("it was begun on nothing")
    with same_table(found, bench.catalog, bench.spark, goes=True):
        pass  # a drop that died is finished


def test_without_an_identity_nothing_is_begun(any_bench: Bench) -> None:
    table = any_bench.create("nameless")
    found = any_bench.found(table)
    with pytest.raises(RefusedError, match="nothing tells it"), same_table(found, any_bench.catalog, any_bench.spark):
        raise AssertionError("it was begun")


@pytest.mark.parametrize(("format_", "variant"), [("delta", "plain"), ("hudi", "cow"), ("paimon", "append")])
def test_a_table_whose_folder_is_moved_has_its_files_where_they_lie_now(
    make_bench: MakeBench, format_: str, variant: str
) -> None:
    """Where paths are relative, a folder that is moved is the table, moved: nothing of it stays behind (hazard 34)."""
    bench = make_bench(format_, variant)
    table = bench.create("moved")
    bench.driver.append(table, [(1, "x", "d")])
    bench.driver.overwrite(table, [(2, "y", "d")])
    before = bench.read(table)
    name = bench.new_name("moved")
    Path(table.location).rename(Path(table.location).with_name(name))
    moved = Table(DatasetId(table.id.catalog, table.id.namespace, name), "", "")
    after = bench.read(moved)
    assert after.identity == before.identity, "a hold goes with it"
    assert (after.borrowed, after.was_at) == (0, ())
    assert {f.path.removeprefix(after.location) for f in after.files} == {
        f.path.removeprefix(before.location) for f in before.files
    }
