"""How far the log is in the lake is never forgotten there, whoever compacts the cold table or expires of it (§6)."""

from __future__ import annotations

from ebbtide.formats.base import Depth
from ebbtide.formats.iceberg import FORMAT
from ebbtide.formats.iceberg.named_since import kept_now
from ebbtide.model.dataset import Reading, TableHandle
from tests.hottier.tier import Hot

_FLOOR = "versions:ebbtide.hot.position"


def _read(hot: Hot) -> Reading:
    catalog = hot.tide.project.catalogs["lake"]
    (found,) = [each for each in FORMAT.discover(catalog) if isinstance(each, TableHandle)]
    return FORMAT.read(found, catalog, Depth.HISTORY, None)


def _others_commit(hot: Hot) -> int:
    """A head that says nothing of the log, as a compaction makes one; gives the one before."""
    table = hot.cold().table
    before = table.current_snapshot()
    assert before is not None
    table.append(table.schema().as_arrow().empty_table())
    return before.snapshot_id


def test_the_versions_that_lead_to_the_position_are_a_floor_until_the_head_has_it_again(hot: Hot) -> None:
    hot.fill(1).added()
    assert _FLOOR not in _read(hot).floors
    first = _others_commit(hot)
    planned = hot.cold().table.metadata
    second = _others_commit(hot)
    # Between the two nothing says so either: but without it nobody gets from the head to the first.
    assert _read(hot).floors[_FLOOR] == f"{second},{first}"
    kept = kept_now(planned, hot.cold().table.metadata)
    assert {str(first), str(second)} <= {id_ for id_, why in kept.items() if "how far the log is" in why}
    hot.fill(2)
    assert hot.sync().mirror == "STREAMING"
    assert _FLOOR not in _read(hot).floors
    assert hot.in_lake() == hot.here()


def test_a_head_that_does_not_know_the_position_is_told_it_also_where_nobody_writes(hot: Hot) -> None:
    hot.fill(1).added()
    position = hot.cold().position()
    _others_commit(hot)
    hot.sync()
    table = hot.cold().table
    head = table.current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert "ebbtide.hot.position" in head.summary.additional_properties
    assert hot.cold().position() == position
    commits = len(table.history())
    hot.sync()
    assert len(hot.cold().table.history()) == commits


def test_a_cold_table_without_what_leads_to_its_position_shuts_the_gate(hot: Hot) -> None:
    """Another tool's expiry asks no floor of ours."""
    hot.fill(1).added()
    first = _others_commit(hot)
    hot.cold().table.maintenance.expire_snapshots().by_id(first).commit()
    result = hot.run()
    assert (result.mirror, result.dropped) == ("DEGRADED", ())
    assert "no longer says how far" in hot.status().because
