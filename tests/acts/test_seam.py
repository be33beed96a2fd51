"""The engine serves whoever owns what goes: here requests that want a file rewritten, by an executor of their own.

The tables are those of `tests/faults/folder.py`, on which every step can be seen in one file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ebbtide.acts import engine as engines
from ebbtide.acts.act import Act, ActResult, CommitRemoval, DeleteFiles, NamedFile, Phase, ReadReferences, Stage
from ebbtide.acts.engine import Carried, Engine, Lake
from ebbtide.acts.recovery import close_unfinished
from ebbtide.acts.references import with_needed
from ebbtide.errors import Cancelled
from ebbtide.formats import registry
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.audit import audit
from ebbtide.ledger.ledger import Clock, Ledger, Step
from ebbtide.model.removal import FileDeletion, Removal
from ebbtide.run import RunContext
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.storage.remove import remove_files
from tests.faults import folder
from tests.faults.place import AT, Place

LATER = AT + timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFile(Stage):
    """Every version gets another file in place of this one."""

    phase: ClassVar[Phase] = Phase.METADATA
    old: str
    new: str


class Rewriter:
    """Writes the file anew, and points every version at it, in one step."""

    def commit(self, result: ActResult) -> ActResult:
        stage, found = result.act.stage(Phase.METADATA), result.act.found
        assert isinstance(stage, RewriteFile)
        assert found is not None
        table = Path(found.location.removeprefix("file://"))
        (table / stage.new).write_text("without the person")
        content = folder.load(table)
        versions = {
            id_: [stage.new if name == stage.old else name for name in names]
            for id_, names in content["versions"].items()
        }
        folder.save(table, {**content, "versions": versions})
        return result

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:
        assert not also
        failed = remove_files(list(result.deletes), result.act.catalog.options, lambda: None, result.act.places)
        return replace(result, deletion=FileDeletion(failed=failed))


@dataclass(frozen=True, slots=True)
class Answered:
    """A request is settled when a listing shows that its file is gone."""

    requests: Requests
    act: str
    finished: bool
    failed: bool = False

    def write(self, step: Step[SweepWriter], at: datetime) -> None:  # noqa: ARG002
        self.requests.states[self.act] = "gone" if self.finished else "still there"


@dataclass
class Requests:
    """Some people's requests, which they may take back."""

    verb: str = "forget"
    withdrawn: set[str] = field(default_factory=set)
    states: dict[str, str] = field(default_factory=dict)

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:  # noqa: ARG002
        return None if act.dataset in self.withdrawn else act

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:  # noqa: ARG002
        self.states[act.id] = "put back"

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:  # noqa: ARG002
        self.states[result.act.id] = "put off"

    def settle(self, result: ActResult, after: Inventory) -> Answered:
        assert result.act.dataset in after.current.entries
        return Answered(self, result.act.id, finished=not result.left and result.error is None)


@dataclass
class House:
    """A place, its ledger and inventory, and what a run of the engine needs."""

    place: Place
    now: datetime = AT

    def ledger(self) -> Ledger:
        return replace(self.place.ledger(), clock=Clock(lambda: self.now))

    def act(self, table: str, *, files_from: datetime | None = None) -> Act:
        found = self.place.scan().found(f"c.db.{table}")
        assert found is not None
        old = NamedFile(f"{found.location}/d4", 4)
        stages = (
            RewriteFile(old="d4", new="d4-clean"), ReadReferences(), DeleteFiles(files=(old,), not_before=files_from)
        )  # fmt: skip
        return Act(
            id=f"act-{table}", kind="rewrite", dataset=f"c.db.{table}", catalog=self.place.catalog, stages=stages,
            found=found, homes=(found.location,), root=found.location,
        )  # fmt: skip

    def run(
        self, owner: Requests, acts: Sequence[Act], context: RunContext | None = None, executor: Rewriter | None = None
    ) -> Carried:
        nobody: Any = None
        lake = Lake(lambda: nobody, self.place.scan, lambda _: {}, self.place.unread)
        with self.open() as (ledger, lease):
            with ledger.sweeping(lease) as step:
                run = step.state.start_run("forget", at=self.now).id
            given = replace(context or RunContext("somebody"), run=run)
            return Engine(lake, ledger, lease, given, {"rewrite": executor or Rewriter()}).carry_out(owner, acts)

    @contextmanager
    def open(self) -> Iterator[tuple[Ledger, Lease]]:
        ledger = self.ledger()
        ledger.open()
        with Lease.acquire(ledger.database, holder="test") as lease:
            yield ledger, lease
        ledger.database.close()

    def entries(self) -> list[dict[str, Any]]:
        ledger = self.ledger()
        assert not audit(ledger).findings
        with ledger.reading() as log:
            bodies = [body for _, _, body in log.rows(0, log.size) if body is not None]
        ledger.database.close()
        found = [json.loads(body) for body in bodies]
        return [entry for entry in found if entry["kind"].startswith("act.")]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setitem(registry._MODULES, "folder", folder.__name__)
    monkeypatch.setattr(engines, "activate", lambda _: None)  # there is no session here
    return House(Place.new(tmp_path / "p"))


def test_an_owner_and_an_executor_of_their_own_are_served_like_retention(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ebbtide")
    owner = Requests(withdrawn={"c.db.b"})
    carried = house.run(owner, [house.act("a"), house.act("b")])
    assert [result.removed for result in carried.results] == [{f"file://{house.place.root}/lake/a/d4": 4}]
    assert owner.states == {"act-a": "gone"}
    assert "d4" not in house.place.files("a")
    assert folder.load(house.place.root / "lake" / "a")["versions"]["v4"] == ["d4-clean", "s4"]
    assert "d4-clean" not in house.place.files("b"), "a request that was taken back changes nothing"
    intent, outcome = house.entries()
    assert (intent["kind"], intent["verb"], intent["act"]) == ("act.intent", "forget", "act-a")
    assert (outcome["kind"], outcome["act"], outcome["result"]) == ("act.outcome", "act-a", "done")
    assert [record.message for record in caplog.records if record.name == "ebbtide.acts.intents"] == [
        "act act-a on c.db.a begins (forget): 1 files named",
        "act act-b on c.db.b is not begun: nobody wants it any more",
        "act act-a on c.db.a ends, done: 1 files with 4 bytes removed, 0 left",
    ]


def test_a_file_that_another_version_took_up_again_stays(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """References are read again after the rewrite: a writer may have brought the old file back."""

    class Late(Rewriter):
        def commit(self, result: ActResult) -> ActResult:
            done = super().commit(result)
            table = house.place.root / "lake" / "a"
            content = folder.load(table)
            content["versions"]["v4"].append("d4")
            folder.save(table, content)
            return done

    owner = Requests()
    caplog.set_level(logging.INFO, logger="ebbtide")
    (result,) = house.run(owner, [house.act("a")], executor=Late()).results
    assert "act act-a on c.db.a: 1 files stay: referenced" in caplog.messages
    assert [why.text for why in result.needed.values()] == ["version:v4"]
    assert not result.removed
    assert "d4" in house.place.files("a")


def test_an_act_pauses_between_two_stages_and_a_later_run_goes_on(house: House) -> None:
    owner = Requests()
    act = house.act("a", files_from=LATER)
    (first,) = house.run(owner, [act]).results
    assert first.paused
    assert "d4" in house.place.files("a"), "readers in flight may still read it"
    assert [entry["kind"] for entry in house.entries()] == ["act.intent"]
    with house.open() as (ledger, lease):
        assert close_unfinished(ledger, lease) == 0, "who pauses did not die"
        with ledger.database.reader() as state:
            assert state.files_of_act("act-a"), "the list is kept for who goes on"
    house.now = LATER
    rest = replace(act, paused=True, stages=tuple(s for s in act.stages if s.phase is not Phase.METADATA))
    (second,) = house.run(owner, [rest]).results
    assert len(second.removed) == 1
    assert "d4" not in house.place.files("a")
    assert owner.states == {"act-a": "gone"}
    assert [entry["kind"] for entry in house.entries()] == ["act.intent", "act.outcome"]


def test_recovery_closes_what_any_owner_left(house: House) -> None:
    class DyingError(BaseException):
        pass

    def die(*_: object) -> ActResult:
        raise DyingError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rewriter, "delete", die)
        with pytest.raises(DyingError):
            house.run(Requests(), [house.act("a")])
    with house.open() as (ledger, lease):
        assert close_unfinished(ledger, lease) == 1
    assert [entry.get("result") for entry in house.entries()] == [None, "partial"]


@pytest.mark.parametrize("step", ["commit", "delete"])
def test_a_run_that_is_asked_to_stop_ends_at_the_next_boundary_and_closes_what_it_began(
    house: House, step: str
) -> None:
    context = RunContext("somebody")
    work: Callable[..., ActResult] = getattr(Rewriter, step)

    def stopping(*given: Any) -> ActResult:
        context.cancellation.request("somebody asked")
        return work(*given)

    owner = Requests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rewriter, step, stopping)
        with pytest.raises(Cancelled):
            house.run(owner, [house.act("a")], context)
    assert "d4-clean" in house.place.files("a"), "what was begun is not broken off"
    assert ("d4" in house.place.files("a")) == (step == "commit")
    assert owner.states == {}, "the next run finds out what became of it"
    assert [entry.get("because") for entry in house.entries()] == [None, "the run was asked to stop"]


def test_a_run_that_is_asked_to_stop_puts_back_what_it_had_not_set_about(house: House) -> None:
    context = RunContext("somebody")

    class Stopping(Requests):
        def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
            context.cancellation.request("somebody asked")
            return super().still_wanted(step, act, at)

    owner, before = Stopping(), house.place.files("a")
    with pytest.raises(Cancelled):
        house.run(owner, [house.act("a"), house.act("b")], context)
    assert owner.states == {"act-a": "put back"}, "the second was not begun"
    assert house.place.files("a") == before
    assert [entry.get("result") for entry in house.entries()] == [None, "failed"]


def test_an_act_that_waits_for_its_commit_frees_nothing_of_others(house: House) -> None:
    """Its table is to go whole tomorrow: until then everything in it is needed."""
    found = house.place.scan().found("c.db.a")
    assert found is not None
    common: dict[str, Any] = {"dataset": "c.db.a", "catalog": house.place.catalog, "found": found}
    file = NamedFile(f"{found.location}/d4", 4)
    drop = CommitRemoval(removal=Removal(found=found, table=True), not_before=LATER)
    later = Act(id="act-1", stages=(drop,), **common)
    now = Act(id="act-2", stages=(ReadReferences(), DeleteFiles(files=(file,))), homes=(found.location,), **common)
    results = [ActResult(act=later, paused=True), ActResult(act=now)]
    (_, freed) = with_needed(results, house.place.scan(), ())
    assert [why.text for why in freed.needed.values()] == ["version:v4"]


def test_a_paused_act_that_nobody_wants_any_more_is_closed(house: House) -> None:
    act = house.act("a", files_from=LATER)
    house.run(Requests(), [act])
    assert house.run(Requests(withdrawn={"c.db.a"}), [replace(act, paused=True)]).results == ()
    assert [entry.get("result") for entry in house.entries()] == [None, "nothing"]
    assert "d4" in house.place.files("a")
