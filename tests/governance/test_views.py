"""The views that checks and reports run on: every column of spec §3 is there, and the state with its rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ebbtide.app.information_schema import information_schema
from ebbtide.app.state import open_state
from ebbtide.errors import InputError
from ebbtide.governance.views import SECTIONS
from ebbtide.state.lease import Lease
from ebbtide.state.values import ObjectKey, Proposal
from tests.governance.projects import NOW, SmallProject
from tests.inventory.sections import SPEC

VIEWS = SPEC | {"lineage": "source_column target_column kind provenance"}
EXACTLY = {
    "lineage": "source_column target_column kind provenance masking source_table target_table",
    "marks": "table_id target object_id policy fingerprint marked_at grace_until cutoff acted_at act id state because "
    "waits_for rows bytes run",
    "unmarks": "table_id target object_id until reason id created_at",
    "holds": "table_id partition_from partition_to owner reason id scope created_at",
    "scan_errors": "catalog table_id error hint",
}
LATER = NOW + timedelta(days=7)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallProject:
    return SmallProject.make(tmp_path_factory.mktemp("views"), "viewed")


@pytest.fixture(scope="module")
def views(project: SmallProject) -> Iterator[SparkSession]:
    project.table("events", pa.table({"uid": ["a"]}))
    project.table("counts", pa.table({"uid": ["a"]}))
    project.write({"lineage/viewed.app.counts.sql": "SELECT uid FROM viewed.app.events"})
    project.tide.scan()
    proposals = [
        Proposal(
            key=ObjectKey("viewed.app.events", "versions", id_), policy="p", because="old", fingerprint="f",
            grace_until=LATER, rows=3, bytes=4,
        )
        for id_ in ("1", "2")
    ]  # fmt: skip
    database = open_state(project.tide.project)
    with Lease.acquire(database, holder="test", seconds=600) as lease, database.sweeper(lease) as state:
        state.mark(proposals, run="r1", at=NOW)
    with database.writer() as state:
        owner = state.actor("counsel")
        state.unmark("viewed.app.events", "2", actor=owner, reason="needed", until=LATER, at=NOW)
        state.hold_dataset("viewed.app.counts", owner=owner, reason="case 7", at=NOW)
        state.hold_subject("h", commitments=["c"], sealed=b"sealed", owner=owner, reason="case 8", at=NOW)
    with information_schema(project.tide.project, now=NOW) as session:
        yield session


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_every_view_has_the_columns_of_the_spec(views: SparkSession, view: str) -> None:
    assert set(VIEWS[view].split()) <= set(views.table(view).columns)


@pytest.mark.parametrize("view", sorted(EXACTLY))
def test_views_of_the_state_and_of_lineage_have_exactly_their_columns(views: SparkSession, view: str) -> None:
    assert views.table(view).columns == EXACTLY[view].split()


def test_the_state_is_told_with_its_ids_and_times(views: SparkSession) -> None:
    (mark,) = views.table("marks").collect()
    assert (mark.table_id, mark.object_id, mark.state, mark.because) == ("viewed.app.events", "1", "marked", "old")
    assert (mark.rows, mark.bytes, mark.run, mark.waits_for) == (3, 4, "r1", [])
    (pin,) = views.table("unmarks").collect()
    assert (pin.object_id, pin.created_at.astimezone(UTC)) == ("2", NOW)
    assert len({mark.id, pin.id}) == 2


def test_a_hold_on_a_person_is_shown_on_every_table_where_nobody_can_tell_who_it_is(views: SparkSession) -> None:
    found = [
        (row.scope, row.table_id, row.owner, row.reason, _utc(row.created_at), bool(row.id))
        for row in views.table("holds").collect()
    ]
    assert sorted(found) == [
        ("dataset", "viewed.app.counts", "counsel", "case 7", NOW, True),
        ("subject", "viewed.app.counts", "counsel", "case 8", NOW, True),
        ("subject", "viewed.app.events", "counsel", "case 8", NOW, True),
    ]


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


def test_lineage_names_both_columns_and_where_it_is_from(views: SparkSession) -> None:
    (edge,) = views.table("lineage").collect()
    assert (edge.source_column, edge.target_column, edge.kind) == (
        "viewed.app.events.uid", "viewed.app.counts.uid", "direct",
    )  # fmt: skip
    assert "viewed.app.counts.sql" in edge.provenance


def test_the_library_hands_out_the_sections_that_checks_see(views: SparkSession, project: SmallProject) -> None:
    """Labels, the state and what policies make of tables included: there is one information schema."""
    frames = {name: project.tide.information_schema(name, now=NOW) for name in SECTIONS}
    for name, frame in frames.items():
        assert frame.columns == views.table(name).columns, name
        assert frame.sparkSession is not views
        assert sorted(map(str, frame.collect())) == sorted(map(str, views.table(name).collect())), name


def test_an_unknown_section_is_an_error_with_the_nearest_name(project: SmallProject) -> None:
    with pytest.raises(InputError, match="no section 'transaction'") as error:
        project.tide.information_schema("transaction")
    assert error.value.hint == "did you mean 'transactions'?"
