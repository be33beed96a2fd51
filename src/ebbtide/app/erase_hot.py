"""The hot side of a run of erasures: people leave hot tables first, and mirrors apply that, before the lake's turn.

1. Mirrors are brought up, so that the lake has what its hot tables had.
2. People who are found in a hot table leave it by an act: intent, one transaction, outcome.
3. Mirrors apply that. Where one cannot, its cold table waits: a later merge would bring people back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ebbtide.acts.engine import Engine, Lake
from ebbtide.app.erase_look import ErasureLook
from ebbtide.app.tier_opened import HotRun, added, hot_run
from ebbtide.app.tier_table import TierOutcome, guarded, look, mirrored
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable, load_hot_tables
from ebbtide.erasure.hot_act import KIND, HotAsked, HotEraser, HotRequests, act_of
from ebbtide.erasure.owner import HOT
from ebbtide.erasure.plan import Decision
from ebbtide.errors import EbbtideError
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Ledger
from ebbtide.run import RunContext
from ebbtide.state.erasure import EXCEPTIONS, ErasurePlace, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.writer import new_id


@dataclass(slots=True)
class HotSide:
    """Hot tables of one run. `failed` are those whose mirror could not be brought up, each with why."""

    hot: HotRun
    now: datetime
    failed: dict[str, str] = field(default_factory=dict)

    def bring_up(self) -> None:
        """The lake gets what its hot tables have by now. Who looks there tells of one that cannot be asked."""
        try:
            tables = load_hot_tables(self.hot.project.root)
        except EbbtideError:  # the search tells it of each table
            return
        known = added(self.hot.ledger)
        for name, table in tables.items():
            if name in known and table.cold is not None:
                told = TierOutcome(table)
                guarded(told, lambda told=told: look(self.hot, told, self.now, ahead=False))
                self._mirror(told)

    def _mirror(self, told: TierOutcome) -> None:
        if not told.errors:
            guarded(told, lambda: mirrored(self.hot, told))
        self.failed.pop(told.table.id, None)
        if told.errors:
            self.failed[told.table.id] = told.errors[0]

    def carry_out(self, look: ErasureLook) -> bool:
        """Take out whom the plan says; whether there was anybody."""
        asked = hot_asked(look)
        if not asked:
            return False
        run = self.hot
        eraser = HotEraser(run.session, look.gathering.identities, asked, run.lease.check)
        owner = HotRequests(eraser, frozenset(hold.id for hold in look.holds))
        for one in asked.values():  # opened here: acts of several tables run side by side
            _open(run, one.place.table)
        nothing = Inventory(run.project.inventory, Current())
        lake = Lake(None, lambda: nothing, lambda _: {}, lambda _: ())
        engine = Engine(lake, run.ledger, run.lease, run.context, {KIND: eraser})
        engine.carry_out(owner, [act_of(act, one) for act, one in asked.items()])
        known = added(run.ledger)
        for one in asked.values():
            if one.place.name in known and one.place.table.cold is not None:
                self._mirror(TierOutcome(one.place.table))
        return True


def _open(run: HotRun, table: HotTable) -> None:
    """A server that does not answer any more is its own act's error."""
    try:
        run.session(table)
    except EbbtideError:
        run.sessions.pop(table.id, None)


def hot_asked(look: ErasureLook) -> dict[str, HotAsked]:
    """The acts of a look on hot tables, by their ids."""
    found: dict[str, HotAsked] = {}
    for step in look.plan.places:
        if step.kind != HOT or step.decision is not Decision.ERASE:
            continue
        terms = look.hot.terms[step.dataset]
        found[new_id()] = HotAsked(
            look.hot.place(step.dataset), step.requests, tuple(look.people[each] for each in step.requests),
            terms.redact if terms.method == "redact" else None,
        )  # fmt: skip
    return found


def hot_unacted(look: ErasureLook, stated: Sequence[ErasurePlace], at: datetime) -> list[ErasurePlace]:
    """Hot tables in which something was kept, and nobody is any more; and those in which somebody is again."""
    now_there = {
        (request, step.dataset): step.decision
        for step in look.plan.places
        if step.kind == HOT
        for request in step.requests
    }
    found = []
    for place in stated:
        if place.kind != HOT or place.place not in look.hot.search.columns or place.request not in look.people:
            continue
        decided = now_there.get((place.request, place.place))
        if place.state in EXCEPTIONS and decided is None:
            state, because = PlaceState.REMOVED, "no row of theirs is left there"
        # What keeps a table from this run is told of it as a place already.
        elif place.state in (PlaceState.REMOVED, PlaceState.REDACTED) and decided is Decision.ERASE:
            state, because = PlaceState.WAITING, "rows of theirs came since: the next run takes them out"
        else:
            continue
        found.append(
            ErasurePlace(
                request=place.request, place=place.place, kind=HOT, state=state, because=because, updated_at=at
            )
        )
    return found


@contextmanager
def hot_side(project: Project, ledger: Ledger, lease: Lease, context: RunContext, now: datetime) -> Iterator[HotSide]:
    """Sessions are closed at the end."""
    with hot_run(project, ledger, lease, context) as hot:
        yield HotSide(hot, now)


def stages_of(asked: Mapping[str, HotAsked]) -> list[dict[str, object]]:
    """What these acts would do."""
    acts = [act_of(act, one) for act, one in asked.items()]
    return [{"dataset": act.dataset, "stages": [str(stage) for stage in act.stages]} for act in acts]
