"""Marks, unmarks and runs (spec §1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from ebbtide.errors import InputError, RefusedError
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease
from ebbtide.state.values import MarkState, ObjectKey, Proposal
from ebbtide.state.writer import StateWriter

NOW = datetime(2026, 11, 15, 9, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
DAY = (date(2026, 1, 31), date(2026, 1, 31))

KEY = ObjectKey("lake.raw.events", "transactions", "9223372036854775807")
PROPOSAL = Proposal(
    key=KEY,
    policy="old-transactions",
    because="older than 30d",
    fingerprint="sha256:aa",
    grace_until=NOW + timedelta(days=7),
    rows=3,
    bytes=9_000_000_000_000,
    days=DAY,
    frozen="2026-08-01",
    files="sha256:ff",
)


@pytest.fixture
def lease(database: Database) -> Iterator[Lease]:
    lease = Lease.acquire(database, holder="test", seconds=600)
    yield lease
    lease.release()


def test_a_mark_comes_back_as_it_was_written(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        (answer,) = state.mark([PROPOSAL], run="r1", at=NOW)
    assert answer.is_new
    assert answer.mark
    assert (answer.mark.key, answer.mark.marked_at, answer.mark.bytes) == (KEY, NOW, 9_000_000_000_000)
    with database.reader() as reader:
        assert reader.marks() == (answer.mark,)
        assert reader.get_mark(answer.mark.id) == answer.mark


def test_the_mark_of_a_partition_remembers_its_days(database: Database, lease: Lease) -> None:
    key = ObjectKey("lake.raw.events", "partitions", "0/day=2026-01-31")
    dateless = replace(PROPOSAL, key=replace(key, object="0/day=%00"), days=None)
    history = replace(PROPOSAL, facts='{"kind":"APPEND"}')
    with database.sweeper(lease) as state:
        state.mark([replace(PROPOSAL, key=key), dateless, history], run="r1", at=NOW)
    with database.reader() as reader:
        marks = {mark.key.object: mark for mark in reader.marks()}
    assert {object_: mark.days for object_, mark in marks.items()} == {
        key.object: DAY, dateless.key.object: None, history.key.object: None
    }  # fmt: skip
    assert marks[history.key.object].facts == '{"kind":"APPEND"}'


def test_marking_again_keeps_the_first_mark_as_it_was(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        (first,) = state.mark([PROPOSAL], run="r1", at=NOW)
    other = replace(PROPOSAL, policy="later-policy", fingerprint="sha256:bb", grace_until=NOW)
    with database.sweeper(lease) as state:
        (again,) = state.mark([other], run="r2", at=LATER)
    assert not again.is_new
    assert again.mark == first.mark
    with database.reader() as reader:
        assert reader.marks() == (first.mark,)


def test_one_object_proposed_twice_is_marked_once_by_the_first(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        first, second = state.mark([PROPOSAL, replace(PROPOSAL, policy="second")], run="r1", at=NOW)
    assert (first.is_new, second.is_new) == (True, False)
    assert second.mark == first.mark


def test_the_same_native_id_is_another_object_under_another_target(database: Database, lease: Lease) -> None:
    version = replace(PROPOSAL, key=replace(KEY, target="versions"))
    with database.sweeper(lease) as state:
        answers = state.mark([PROPOSAL, version], run="r1", at=NOW)
    assert [answer.is_new for answer in answers] == [True, True]


def test_an_unmark_closes_the_marks_of_every_target_and_pins_the_native_id(database: Database, lease: Lease) -> None:
    version = replace(PROPOSAL, key=replace(KEY, target="versions"))
    elsewhere = replace(PROPOSAL, key=replace(KEY, dataset="lake.raw.other"))
    with database.sweeper(lease) as state:
        state.mark([PROPOSAL, version, elsewhere], run="r1", at=NOW)
    with database.writer() as person:
        actor = person.actor("alice")
        pin, closed = person.unmark(
            KEY.dataset, KEY.object, actor=actor, reason="audit", until=LATER, at=NOW + timedelta(hours=1)
        )
    assert {mark.key.target for mark in closed} == {"transactions", "versions"}
    assert {mark.state for mark in closed} == {MarkState.UNMARKED}
    with database.reader() as reader:
        assert [mark.key for mark in reader.marks()] == [elsewhere.key]
        assert reader.unmarks() == (pin,)
    with database.sweeper(lease) as state:
        before, after = (
            state.mark([replace(PROPOSAL, key=replace(KEY, target="rows"))], run="r", at=at)[0]
            for at in (LATER - timedelta(microseconds=1), LATER)
        )
    assert (before.mark, before.pinned_by) == (None, f"unmark {pin.id}")
    assert after.is_new


def test_an_unmark_lasts_until_it_is_released(database: Database, lease: Lease) -> None:
    with database.writer() as person:
        actor = person.actor("alice")
        person.unmark(KEY.dataset, KEY.object, actor=actor, reason="audit", until=None, at=NOW)
        person.unmark(KEY.dataset, KEY.object, actor=actor, reason="again", until=LATER, at=NOW)
    with database.sweeper(lease) as state:
        (held,) = state.mark([PROPOSAL], run="r1", at=NOW + timedelta(days=9000))
        assert held.mark is None
    with database.writer() as person:
        released = person.release_unmark(KEY.dataset, KEY.object, actor=person.actor("bob"), at=NOW)
        assert len(released) == 2
        assert all(not pin.active(NOW) and pin.released_by != actor for pin in released)
    with database.sweeper(lease) as state:
        (marked,) = state.mark([PROPOSAL], run="r1", at=NOW)
        assert marked.is_new
    with pytest.raises(InputError), database.writer() as person:
        person.release_unmark(KEY.dataset, KEY.object, actor=actor, at=NOW)


def test_an_unmark_that_would_be_over_at_once_is_refused(database: Database) -> None:
    with pytest.raises(InputError), database.writer() as person:
        person.unmark("d", "1", actor=person.actor("a"), reason="", until=NOW, at=NOW)


def test_a_hold_keeps_an_object_from_being_marked(database: Database, lease: Lease) -> None:
    with database.writer() as person:
        hold = person.hold_partitions(
            KEY.dataset, date(2026, 1, 1), date(2026, 1, 31), owner=person.actor("x"), reason="case", at=NOW
        )
    outside = replace(PROPOSAL, key=replace(KEY, object="2"), days=(date(2026, 2, 1), date(2026, 2, 1)))
    unknown = replace(PROPOSAL, key=replace(KEY, object="3"), days=None)
    with database.sweeper(lease) as state:
        inside, free, undated = state.mark([PROPOSAL, outside, unknown], run="r1", at=NOW)
    assert inside.pinned_by == undated.pinned_by == f"hold {hold.id}"
    assert free.is_new


def test_a_mark_waits_is_swept_and_is_then_final(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        (answer,) = state.mark([PROPOSAL], run="r1", at=NOW)
        assert answer.mark
        waiting = state.wait(answer.mark.id, waits_for=["tag:v1", "dataset:lake.b.c"])
        assert (waiting.state, waiting.waits_for) == (MarkState.WAITING, ("tag:v1", "dataset:lake.b.c"))
        swept = state.sweep(answer.mark.id, because="no file is left", at=LATER)
        assert (swept.state, swept.waits_for, swept.closed_at) == (MarkState.SWEPT, (), LATER)
        with pytest.raises(RefusedError):
            state.send_back(swept.id, because="new tag", at=LATER)
        with pytest.raises(RefusedError):
            state.sweep(swept.id, because="", at=LATER)
        with pytest.raises(RefusedError):
            state.wait(swept.id, waits_for=["x"])
        with pytest.raises(InputError):
            state.wait(swept.id, waits_for=[])
    with database.reader() as reader:
        assert reader.marks() == ()
        assert reader.marks(only_open=False) == (swept,)


def test_an_object_whose_removal_has_begun_cannot_be_rescued_any_more(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        (answer,) = state.mark([PROPOSAL], run="r1", at=NOW)
        assert answer.mark
        state.begin([answer.mark.id], act="a")
    with pytest.raises(RefusedError, match="being swept"), database.writer() as person:
        person.unmark(KEY.dataset, KEY.object, actor=person.actor("alice"), reason="", until=None, at=LATER)
    with database.reader() as reader:
        assert [mark.state for mark in reader.marks()] == [MarkState.SWEEPING]
        assert reader.unmarks() == ()
    with database.sweeper(lease) as state:
        state.send_back(answer.mark.id, because="nothing was removed", at=LATER)
    with database.writer() as person:
        person.unmark(KEY.dataset, KEY.object, actor=person.actor("alice"), reason="", until=None, at=LATER)


def test_an_object_that_was_sent_back_may_be_marked_again_with_a_new_grace(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        (first,) = state.mark([PROPOSAL], run="r1", at=NOW)
        assert first.mark
        back = state.send_back(first.mark.id, because="a late write", at=LATER)
        (second,) = state.mark([replace(PROPOSAL, fingerprint="sha256:cc")], run="r2", at=LATER)
    assert (back.state, back.closed_because) == (MarkState.UNMARKED, "a late write")
    assert second.is_new
    assert second.mark
    assert (second.mark.marked_at, second.mark.fingerprint) == (LATER, "sha256:cc")
    with database.reader() as reader:
        assert reader.marks(datasets=[KEY.dataset], only_open=False) == (back, second.mark)
        assert reader.marks(datasets=["lake.raw.other"], only_open=False) == ()


def test_only_a_sweeper_can_mark() -> None:
    assert not {"mark", "wait", "sweep", "send_back", "start_run", "finish_run"} & set(dir(StateWriter))


def test_a_run_is_unfinished_until_it_says_how_it_ended(database: Database, lease: Lease) -> None:
    with database.sweeper(lease) as state:
        run = state.start_run("sweep", at=NOW)
        assert run.fence == lease.fence
    with database.reader() as reader:
        assert reader.runs(only_unfinished=True) == (run,)
    with database.sweeper(lease) as state:
        done = state.finish_run(run.id, exit_code=3, summary="{}", at=LATER)
        with pytest.raises(RefusedError):
            state.finish_run(run.id, exit_code=0, summary="{}", at=LATER)
    assert (done.exit_code, done.finished_at) == (3, LATER)
    with database.reader() as reader:
        assert reader.runs(only_unfinished=True) == ()
        assert reader.runs() == (done,)


def test_many_marks_are_made_in_one_go(database: Database, lease: Lease) -> None:
    proposals = [replace(PROPOSAL, key=ObjectKey(f"lake.a.t{i % 700}", "versions", str(i))) for i in range(3000)]
    with database.sweeper(lease) as state:
        assert all(answer.is_new for answer in state.mark(proposals, run="r", at=NOW))
        assert not any(answer.is_new for answer in state.mark(proposals, run="r", at=LATER))
    with database.reader() as reader:
        assert len(reader.marks()) == 3000


def test_a_time_without_a_zone_is_refused(database: Database, lease: Lease) -> None:
    with pytest.raises(InputError), database.sweeper(lease) as state:
        state.mark([PROPOSAL], run="r1", at=NOW.replace(tzinfo=None))
