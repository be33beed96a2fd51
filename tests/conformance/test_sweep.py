"""mark → grace → sweep on every format: one small lake each, marked once and swept twice (spec §1, §2).

Rows are read back row for row, never counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.formats.base import supports
from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability
from tests.conformance.one_lake import ALL, on
from tests.conformance.sweep_lake import Swept, build


def with_(capability: Capability) -> pytest.MarkDecorator:
    """Run a test on the formats that declare a capability."""
    return on(*(format_ for format_ in ALL if supports(load_format(format_), capability)))


@pytest.fixture(scope="module")
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    format_ = str(request.param)
    return build(spark, tmp_path_factory.mktemp(f"sweep-{format_}") / "p", format_)


@on(*ALL)
def test_superseded_versions_are_marked_and_the_head_is_not(lake: Swept) -> None:
    marked, ids = lake.objects(lake.marked, "plain"), lake.ids["plain"]
    assert marked, "nothing was marked"
    assert marked <= set(ids[:-1])


@on(*ALL)
def test_the_head_reads_back_row_for_row(lake: Swept) -> None:
    for sweep in lake.sweeps:
        assert not sweep.errors
        assert not sweep.findings
    for name in lake.tables.keys() - {"days", "adhoc", "adhoc_rows"}:
        assert lake.driver.rows(lake.tables[name]) == lake.rows[name], name


@on(*ALL)
def test_old_files_are_gone_and_the_state_says_so(lake: Swept) -> None:
    gone = lake.files[0] - lake.files[1]
    assert [path for path in gone if path.startswith(lake.folder("plain"))], "no file was removed"
    states = lake.states("plain")
    assert set(states.values()) <= {"swept", "waiting"}
    assert "swept" in states.values()


@with_(Capability.TAGS)
def test_a_tag_reads_back_after_the_sweep(lake: Swept) -> None:
    """A Hudi savepoint cannot be read once the table was cleaned: its files are there (formats.md)."""
    assert lake.pinned
    assert lake.pinned <= lake.files[2]
    if lake.format != "hudi":
        assert [(row["id"], row["name"]) for row in lake.tag_rows()] == [(1, "pinned")]


@with_(Capability.DROPS_PARTITIONS)
def test_a_partition_past_retention_leaves_the_head_and_no_other_row(lake: Swept) -> None:
    assert [row["id"] for row in lake.driver.rows(lake.tables["days"])] == [2, 3]


@with_(Capability.DROPS_TABLES)
def test_an_ad_hoc_table_goes_whole_and_the_one_beside_it_stays(lake: Swept) -> None:
    table = str(lake.tables["adhoc"].id)
    assert table in lake.objects(lake.marked, "adhoc")
    assert lake.states("adhoc", "tables") == {table: "swept"}
    along = lake.states("adhoc", "rows") | lake.states("adhoc")
    assert along.keys() > {"adhoc"}, "its rows and versions were marked too"
    assert set(along.values()) == {"swept"}
    folder = lake.folder("adhoc")
    assert [path for path in lake.files[0] if path.startswith(folder)]
    assert not Path(lake.tide.root, folder).exists()
    lake.tide.app.scan()
    listed = {row["table_id"] for row in lake.tide.app.information_schema("tables").collect()}
    assert listed == {str(other.id) for name, other in lake.tables.items() if name != "adhoc"}


@with_(Capability.DELETES_ROWS)
def test_rows_past_the_frozen_cutoff_go_and_later_ones_stay(lake: Swept) -> None:
    """Rows 2 and 5 are past retention on the day of the sweep, and were not on the day of the mark."""
    assert "ttl" in lake.objects(lake.marked, "adhoc_rows")
    assert [row["id"] for row in lake.between["adhoc_rows"]] == [2, 3, 5]
    assert lake.states("adhoc_rows", "rows") == {"ttl": "waiting"}


@with_(Capability.DELETES_ROWS)
def test_deleted_rows_are_swept_when_the_versions_before_are_gone(lake: Swept) -> None:
    assert lake.states("adhoc_rows", "rows", sweep=1) == {"ttl": "swept"}
    gone = {path for path in lake.files[0] - lake.files[2] if path.startswith(lake.folder("adhoc_rows"))}
    assert [path for path in gone if path.endswith((".parquet", ".orc"))], "the deleted rows still lie there"
    assert [row["id"] for row in lake.driver.rows(lake.tables["adhoc_rows"])] == [2, 3, 5]


@with_(Capability.DROPS_BRANCHES)
def test_a_forgotten_branch_is_dropped_and_main_is_not(lake: Swept) -> None:
    """Paimon's branch leaves the tag that it was made from: somebody named that version, and a tag is never taken."""
    assert "forgotten" in lake.objects(lake.marked, "branched")
    assert "main" not in lake.objects(lake.marked, "branched")
    assert lake.states("branched", "branches") == {"forgotten": "swept"}
    lake.tide.app.scan()
    refs = lake.tide.app.information_schema("branches").collect()
    names = {(row["kind"], row["name"]) for row in refs if row["table_id"] == str(lake.tables["branched"].id)}
    assert names == {("branch", "main")} | ({("tag", "from-forgotten")} if lake.format == "paimon" else set())


@on("delta")
def test_a_shallow_clone_reads_what_its_source_no_longer_needs(lake: Swept) -> None:
    assert [(row["id"], row["name"]) for row in lake.driver.rows(lake.tables["clone"])] == [(1, "of both")]
    gone = {path for path in lake.files[0] - lake.files[2] if path.startswith(lake.folder("source"))}
    assert len([path for path in gone if path.endswith(".parquet")]) == 1, "the file that nobody else reads goes"


@on("delta")
def test_versions_go_after_a_log_cleanup_too(lake: Swept) -> None:
    """What was superseded before the cleanup is in no version that the log still tells: nobody named it."""
    marked = lake.objects(lake.marked, "cleaned")
    assert marked
    assert set(lake.states("cleaned").values()) == {"swept"}
    gone = {path for path in lake.files[0] - lake.files[2] if path.startswith(lake.folder("cleaned"))}
    assert len([path for path in gone if path.endswith(".parquet")]) == 2


@on("delta")
def test_change_data_goes_with_its_own_version_and_with_no_other(lake: Swept) -> None:
    assert [bool(paths) for paths in lake.changes] == [True, True]
    here = lake.tide.files()
    # The policy keeps two versions: of the deletes, the second one.
    assert [paths & here for paths in lake.changes] == [set(), lake.changes[1]]


@with_(Capability.DROPS_PARTITIONS)
def test_a_floor_does_not_keep_a_partition_whose_day_the_head_no_longer_has(lake: Swept) -> None:
    """It left the head, and its mark still knows its day."""
    assert {*lake.states("days", "partitions", sweep=1).values()} == {"swept"}


@on(*ALL)
def test_every_intent_has_its_outcome(lake: Swept) -> None:
    kinds = lake.tide.ledger_kinds()
    assert kinds.count("act.intent") == kinds.count("act.outcome") > 0


@on(*ALL)
def test_a_second_sweep_removes_nothing_that_the_first_left(lake: Swept) -> None:
    for name, rows in lake.between.items():
        assert lake.driver.rows(lake.tables[name]) == rows, name


@on(*ALL)
def test_a_dry_run_says_of_every_object_what_the_sweep_then_does(lake: Swept) -> None:
    """But for rows that match nothing: only the delete finds that out."""
    word = {"would go": "swept", "waiting": "waiting", "would be sent back": "unmarked"}
    for foreseen, swept in zip(lake.foreseen, lake.sweeps, strict=True):
        said = {result.key: word[result.state] for result in foreseen.results if result.key.target != "rows"}
        assert said == {result.key: result.state for result in swept.results if result.key.target != "rows"}
        assert {dataset for dataset, _ in foreseen.stages} >= {r.key.dataset for r in swept.results if r.acted_at}
    assert lake.foreseen[0].removed_files == lake.sweeps[0].removed_files
