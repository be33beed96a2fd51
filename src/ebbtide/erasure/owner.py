"""Requests as an owner of acts: asked once more in the transaction of the intent, settled by what was seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ebbtide.acts.act import Act, ActResult, Phase
from ebbtide.formats.erasing import Erased
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Step
from ebbtide.model.reasons import Code, code_of
from ebbtide.model.times import as_text
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import ErasurePlace, PlaceState
from ebbtide.state.requests import requests_by_id
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import HoldScope, RequestState

DATASET = "dataset"
"""The kind of a place that a catalog lists."""
HOT = "hot table"
"""The kind of a place on a PostgreSQL server in front of the lake."""
GONE = (RequestState.REFUSED, RequestState.WITHDRAWN, RequestState.CERTIFIED)
"""Requests for which nothing is done any more."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the places of one act stand after it, and what of its files is left."""

    act: str
    state: PlaceState
    because: str
    left: Mapping[str, int]
    write_places: Callable[[Step[SweepWriter], datetime], None]
    raised: bool = False
    """Whether an error ended it: then nobody can tell here what it let go of."""

    @property
    def failed(self) -> bool:
        return self.state is PlaceState.FAILED

    @property
    def finished(self) -> bool:
        return self.state in (PlaceState.REMOVED, PlaceState.REDACTED)

    def write(self, step: Step[SweepWriter], at: datetime) -> None:
        """Say it of every request; what is left is kept for the next run, which plans again."""
        self.write_places(step, at)
        if self.raised:
            # A commit before the one that failed may have let go of files: the list of them is kept since then.
            rows.add_files(step.state.connection, self.act, self.left)
        elif self.left:
            rows.keep_files(step.state.connection, self.act, self.left)
        else:
            rows.close_erasure(step.state.connection, [self.act])


@dataclass(slots=True)
class Requests:
    """The requests of one run, by act. `known_holds` are those that its plan read, `taken_over` earlier acts whose
    files a new act names, `done` what formats said of rewriting, `came` acts whose people came again since they were.
    """

    by_act: Mapping[str, tuple[str, ...]]
    redacted: Collection[str]
    known_holds: Collection[str]
    done: Mapping[str, Erased]
    taken_over: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    came: Collection[str] = ()
    verb: str = "erase"

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
        """Not where a hold came since the plan, or where one of its requests is closed by now: plan again. An act whose
        requests are all closed is over, too; what it let go of is for whoever finds it.
        """
        state, ids = step.state, self.by_act[act.id]
        if held := next((hold.id for hold in state.holds() if self._is_new_hold(hold, act.dataset)), None):
            self._put(step, act, PlaceState.HELD, f"hold {held}", at)
            return None
        if not ids or any(request.state in GONE for request in requests_by_id(state.connection, ids)):
            return None
        if not act.paused:
            stage = act.stage(Phase.FILES)
            assert stage is not None
            rows.open_erasure(state.connection, act.id, act.dataset, ids, free_from=stage.not_before or at)
            rows.close_erasure(state.connection, self.taken_over.get(act.id, ()))
        self._put(step, act, PlaceState.PENDING, "begun", at)
        return act

    def _is_new_hold(self, hold: object, dataset: str) -> bool:
        from ebbtide.state.values import Hold

        assert isinstance(hold, Hold)
        return hold.id not in self.known_holds and (hold.dataset == dataset or hold.scope is HoldScope.SUBJECT)

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:
        """Nothing was done: its files, and those that it took over, are for the next run."""
        rows.keep_files(step.state.connection, act.id, act.named)

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:
        """No reader sees these people any more. Their bytes go when readers in flight have finished."""
        stage = result.act.stage(Phase.FILES)
        assert stage is not None
        rows.keep_files(step.state.connection, result.act.id, result.act.paths)
        until = as_text(stage.not_before) if stage.not_before is not None else "the next run"
        self._put(step, result.act, PlaceState.DELETED, f"files go from {until}, after readers in flight", at)

    def settle(self, result: ActResult, after: Inventory) -> Ended:  # noqa: ARG002 - a listing says what is left
        act, erased = result.act, self.done.get(result.act.id)
        state, because, left = self._state_of(result, erased)
        raised = result.error is not None
        return Ended(act.id, state, because, left, lambda step, at: self._put(step, act, state, because, at), raised)

    def _state_of(self, result: ActResult, erased: Erased | None) -> tuple[PlaceState, str, dict[str, int]]:
        if result.error is not None or erased is None:
            return PlaceState.FAILED, result.error or "nothing was done", result.act.paths
        if result.deletion.because is not None:
            return PlaceState.WAITING, result.deletion.because, result.act.paths
        if result.deletion.failed:
            there = {path: size for path, size in result.act.paths.items() if path in result.there}
            return PlaceState.FAILED, f"{len(result.deletion.failed)} files or folders could not be removed", there
        there = {path: size for path, size in result.act.paths.items() if path in result.there}
        if there and all(path in result.needed and result.needed[path].code is Code.OUTSIDE for path in there):
            # Nobody here may remove them, and no search of the table reads them: it never counts as clean.
            return (
                PlaceState.NOT_REACHABLE,
                f"{len(there)} files lie outside of its folder: a person removes them",
                there,
            )
        if there:
            who = sorted({str(result.needed[path].text) for path in there if path in result.needed})
            why = f"{len(there)} files stay for {who[0]}" if who else f"{len(there)} files are still there"
            return PlaceState.WAITING, why, there
        if result.act.id in self.came:
            return PlaceState.WAITING, "what was replaced is gone; rows that came since are taken out next", {}
        if erased.retained:
            ref, why = min(erased.retained.items())
            more = f" and {len(erased.retained) - 1} more" if len(erased.retained) > 1 else ""
            floor = all(code_of(each) is Code.FLOOR for each in erased.retained.values())
            return PlaceState.WAITING if floor else PlaceState.RETAINED, f"{ref}{more}: {why}", {}
        if result.act.dataset in self.redacted:
            return PlaceState.REDACTED, "its columns were replaced in every version", {}
        return PlaceState.REMOVED, "no file that held them is left", {}

    def _put(self, step: Step[SweepWriter], act: Act, state: PlaceState, because: str, at: datetime) -> None:
        place = ErasurePlace(
            request="", place=act.dataset, kind=DATASET, state=state, because=because, act=act.id, updated_at=at
        )
        rows.put_places(step.state.connection, [replace(place, request=each) for each in self.by_act[act.id]])
