"""mark, sweep and run as verbs: plan files, limits, dry runs, refusals. One small Iceberg lake for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.plan import make_plan, write_plan
from ebbtide.app.run import run_once
from ebbtide.config.project import Limits
from ebbtide.errors import InputError, RefusedError
from tests.tide import Tide

POLICIES = """
policies:
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
"""


@pytest.fixture(scope="module")
def tide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tide:
    made = Tide(spark, tmp_path_factory.mktemp("verbs") / "p", "iceberg", policies=POLICIES)
    driver = made.drivers["iceberg"]
    for name in ("one", "two"):
        table = driver.create(name)
        for number in range(2):
            driver.append(table, [(number, "x", "d")])
        driver.overwrite(table, [(9, "y", "d")])
    made.app.scan()
    return made


def test_verbs_do_what_they_say_and_refuse_what_changed(tide: Tide, tmp_path: Path) -> None:
    """In the order in which a person does it: a plan no writing verb has touched, a look, the mark, a changed world."""
    file = tmp_path / "plan.json"
    with make_plan(tide.project, now=tide.at(40)) as made:
        write_plan(made, file)
    looked = tide.mark(40, plan_file=file, dry_run=True)
    assert len(looked.marked) == 4
    assert not (tide.root / ".ebbtide" / "state.db").exists(), "a dry run writes nothing"

    none = tide.mark(40, limits=Limits(max_share=0.0, lake_max_share=1.0, min_bytes=0))
    assert (none.marked, len(none.over)) == ((), 2), "both datasets are past their limit, and left out"
    with pytest.raises(RefusedError, match="of the lake"):
        tide.mark(40, limits=Limits(max_share=1.0, lake_max_share=0.0, min_bytes=0))

    marked = tide.mark(40, plan_file=file)
    assert set(marked.marked) == set(looked.marked)
    with pytest.raises(RefusedError, match="the world changed"):
        tide.mark(40, plan_file=file)
    with pytest.raises(RefusedError, match="more than one tick"):
        tide.sweep(45, plan_file=file)

    early = tide.sweep(44)
    assert (early.results, early.removed_files) == ((), 0), "nothing goes within its grace"
    assert tide.mark(44).marked == (), "marking again changes nothing"
    would = tide.sweep(48, dry_run=True)
    assert {result.state for result in would.results} == {"would go"}

    done = run_once(tide.project, as_of=tide.at(48))
    assert done.exit_code == 0
    assert done.swept is not None
    assert done.swept.removed_files == would.removed_files
    assert {result.state for result in done.swept.results} == {"swept"}


def test_a_file_that_is_no_plan_is_wrong_input(tide: Tide, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    for name in ("x.json", "absent.json"):
        with pytest.raises(InputError, match="is not a plan"):
            tide.mark(40, plan_file=tmp_path / name)
