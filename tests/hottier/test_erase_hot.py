"""A person in the hot tier and in the lake behind it: found, planned for, taken out, looked for (spec §4, §6)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from ebbtide.spark.session import FEW_ROWS, session
from tests.hottier.tier import NOW, TABLE, Hot

COLD = "lake.hot.m"
SUBJECTS = "subjects:\n  user_id: {columns: [public.m.id]}\n"
ADA, ADAS = "1003", 1003


@pytest.fixture
def asked(hot: Hot, spark: SparkSession) -> Hot:
    """People are told by `id`, which the mirror has brought to the lake; the first chunk is proven."""
    (hot.root / "subjects.yml").write_text(SUBJECTS)
    hot.policy = hot.policy.replace("drop_after: 10d", "drop_after: 60d").replace("ahead: 1", "ahead: 0")
    hot.write(hot.policy)
    hot.fill(1, 2).added()
    assert "m_1" in hot.run().tiered
    with hot.tide as tide:
        tide.scan()
    session(hot.tide.project.catalogs.values(), master="local[1]", conf=FEW_ROWS)
    return hot


@pytest.mark.jvm
def test_a_person_leaves_the_hot_table_then_the_lake_and_nobody_else_does(asked: Hot) -> None:
    hot, others = asked, [row for row in asked.here() if row[0] != ADAS]
    with hot.tide as tide:
        found = tide.erase.find(subject={"user_id": ADA}).to_dicts()[0]
        there = {(each["dataset"], each["ref"], each["rows"]) for each in found["places"]}
        assert there == {(TABLE, "chunk:m_1", 1), (COLD, "branch:main", 1)}
        assert found["not_reachable"] == []

        request = tide.erase.request({"user_id": ADA}, law="gdpr", as_of=NOW).id
        assert request is not None
        (seen,) = tide.erase.verify(request, dry_run=True, as_of=NOW)
        assert seen.grade == "F"
        assert {(each.path, each.how) for each in seen.found if each.role == "hot table"} == {(TABLE, "row")}

        plan = tide.erase.plan(at_once=True, as_of=NOW)
        kinds = {place.dataset: (place.kind, place.decision, place.method) for place in plan.places}
        assert kinds == {TABLE: ("hot table", "erase", "delete"), COLD: ("dataset", "erase", "delete")}
        assert [(copy.copy, copy.kind) for copy in plan.copies] == [(f"{TABLE}#log", "log")]

        done = tide.erase.run(at_once=True, as_of=NOW)
        assert (done.exit_code, done.failed, done.left) == (0, (), ())
        assert hot.here() == others
        assert hot.in_lake() == others
        head = hot.cold().table.current_snapshot()
        assert head is not None
        assert head.summary is not None
        assert "ebbtide.hot.position" in head.summary.additional_properties  # whatever versions end
        states = {step.place: step for step in tide.erase.status(request).steps}
        assert (states[TABLE].state, states[TABLE].kind) == ("removed", "hot table")
        (log,) = [step for name, step in states.items() if name.startswith(f"{TABLE}#log:")]
        assert (log.state, log.kind) == ("expires", "log")

        later = NOW + timedelta(hours=3)
        done = tide.erase.run(at_once=True, as_of=later)
        assert done.exit_code == 0, done.to_dict()
        assert {row.dataset: row.state for row in done.datasets} == {TABLE: "removed", COLD: "removed"}
        (seen,) = tide.erase.verify(request, as_of=later)
        assert (seen.grade, seen.found) == ("B", ())
        assert TABLE in {each.path for each in seen.cannot_tell}
        tide.erase.certificate(request, hot.root / "certificate.json", as_of=later)
        assert tide.erase.status(request).state == "certified with exceptions"

    # The mirror goes on behind all that an erasure made of its cold table, and the chunk is proven anew.
    hot.fill(3)
    result = hot.run()
    assert (result.mirror, result.errors) == ("STREAMING", ())
    assert hot.chunk("m_1").state == "tiered"
    assert hot.in_lake() == hot.here()
