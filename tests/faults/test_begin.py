"""The last look before anything changes: an act is begun for what may be marked, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ebbtide.acts.intents import begin
from ebbtide.acts.recovery import files_of_act
from ebbtide.config.project import Limits
from ebbtide.ledger.attachments import attach_files
from ebbtide.ledger.entries import Intent, Outcome
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.state.lease import Lease
from ebbtide.state.values import ObjectKey, Snapshot
from ebbtide.sweep.owner import Retention
from ebbtide.sweep.values import ExpiringObject, ObjectBatch
from tests.faults.place import AT, Place

ROW = {"policy": "p", "because": "old", "fingerprint": "f", "rows": 0, "bytes": 0, "drops_from": (), "cutoff": None}


def _batch(
    place: Place, table: str, objects: tuple[ExpiringObject, ...], found: TableHandle, **settings: Any
) -> ObjectBatch:
    return ObjectBatch(
        id=f"act-{table}", dataset=f"c.db.{table}", catalog=place.catalog, objects=objects, found=found, **settings
    )


def _begin(
    ledger: Ledger, lease: Lease, run: str, place: Place, batches: Sequence[ObjectBatch], snapshot: Snapshot
) -> list[tuple[str, object]]:
    """The datasets of the acts that were begun, with the versions that go."""
    nobody: Any = None
    owner = Retention(run, snapshot, {}, Limits(), nobody)
    acts = owner.plan(batches, place.scan())
    begun = [each for act in acts for each in begin(ledger, lease, run, owner, act, ())]
    return [(each.act.dataset, each.act.removal and each.act.removal.versions) for each in begun]


def test_versions_of_a_dataset_with_held_days_are_not_begun_along_with_a_partition(tmp_path: Path) -> None:
    """They have no mark of their own yet, nobody knows their days, and the hold refuses to mark them."""
    place = Place.new(tmp_path / "p")
    ledger = place.ledger()
    ledger.open()
    with ledger.writing() as person:
        who = person.state.actor("counsel")
        person.state.hold_partitions("c.db.a", date(2026, 5, 1), date(2026, 5, 2), owner=who, reason="case", at=AT)
    with Lease.acquire(ledger.database, holder="test") as lease:
        with ledger.sweeping(lease) as step:
            run, snapshot = step.state.start_run("sweep", at=AT).id, step.state.snapshot()

        def batch(table: str) -> ObjectBatch:
            found = TableHandle(DatasetId("c", ("db",), table), f"file://{place.root}/lake/{table}", "token")
            going = ExpiringObject(ObjectKey(f"c.db.{table}", "versions", "v1"), ROW, None)
            return _batch(place, table, (going,), found)

        begun = _begin(ledger, lease, run, place, [batch("a"), batch("b")], snapshot)
    assert begun == [("c.db.b", ("v1",))]
    ledger.database.close()


def test_what_was_held_or_rescued_since_the_plan_by_a_former_name_is_not_begun(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")
    ledger = place.ledger()
    ledger.open()
    with Lease.acquire(ledger.database, holder="test") as lease:
        with ledger.sweeping(lease) as step:
            run, snapshot = step.state.start_run("sweep", at=AT).id, step.state.snapshot()
        with ledger.writing() as person:
            who = person.state.actor("counsel")
            person.state.hold_dataset("c.db.held_once", owner=who, reason="case", at=AT)
            person.state.unmark("c.db.rescued_once", "v1", actor=who, reason="mine", until=None, at=AT)

        def batch(table: str) -> ObjectBatch:
            found = TableHandle(DatasetId("c", ("db",), table), f"file://{place.root}/lake/{table}", "token")
            goings = (ExpiringObject(ObjectKey(f"c.db.{table}", "versions", id_), ROW, None) for id_ in ("v1", "v2"))
            return _batch(place, table, tuple(goings), found, called_before=(f"c.db.{table}_once",))

        begun = _begin(ledger, lease, run, place, [batch("held"), batch("rescued")], snapshot)
    assert begun == [("c.db.rescued", ("v2",))]
    ledger.database.close()


def test_what_an_act_left_that_was_begun_before_layout_6_is_known_from_its_attachments(tmp_path: Path) -> None:
    """They held the paths themselves, and the state has no list: an empty one would call everything gone."""
    place = Place.new(tmp_path / "p")
    ledger = place.ledger()
    with ledger.writing() as step:
        named, gone = (
            attach_files(step.state.connection, [("file:///a", 1), ("file:///b", 2)]),
            attach_files(step.state.connection, [("file:///a", 1)]),
        )
        step.append(
            Intent(at=AT, act="old", verb="sweep", files=named),
            Outcome(at=AT, act="old", result="partial", removed=gone),
        )
    assert files_of_act(ledger, ["old"]) == {"old": {"file:///b": 2}}
    ledger.database.close()
