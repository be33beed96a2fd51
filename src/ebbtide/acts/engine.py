"""A set of acts, carried out: metadata first, then the files, then the proof (spec §2).

1. Intents, one an act; then every dataset's metadata changes through its executor, several at once.
2. All references are read again, once. What anything still needs stays, whoever named it.
3. Files go, by the format's own operation or by their exact list.
4. References are read a third time, files are listed, and the proof is made; owners settle by what was seen.

An act whose next stage is not due yet pauses, and a later run goes on with it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ebbtide.acts import intents
from ebbtide.acts.act import Act, ActResult, Phase
from ebbtide.acts.evidence import with_listing
from ebbtide.acts.owner import Executor, Owner
from ebbtide.acts.references import taken_along, with_needed
from ebbtide.errors import Cancelled, LeaseError, OverLimitError, told
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Ledger
from ebbtide.run import RunContext
from ebbtide.spark.session import activate
from ebbtide.state.lease import Lease
from ebbtide.storage.handles import places_around

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)
_AT_ONCE = 4
"""Datasets that are worked on at the same time: enough to hide a store's latency, few enough for one session."""


@dataclass(frozen=True, slots=True)
class Lake:
    """What acts are carried out on: a session for formats, how to read it all again, and who proves what was done."""

    session: Callable[[], SparkSession] | None
    """Always the same. Called once there is something to do: a night without anything starts no JVM. None where no
    executor needs one.
    """
    rescan: Callable[[], Inventory]
    prove: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
    """Datasets, and what is wrong with each; one that is not in the answer was not proved."""
    unread: Callable[[Inventory], Sequence[str]]
    """Who may reference files of others unknown to anybody, as `unread:NAME` (spec §7)."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a run of the engine did, and what its proof found wrong, by dataset. `refused` was not begun."""

    results: tuple[ActResult, ...] = ()
    refused: tuple[ActResult, ...] = ()
    proofs: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """One run under one lease."""

    lake: Lake
    ledger: Ledger
    lease: Lease
    context: RunContext
    executors: Mapping[str, Executor]
    """Who carries out acts, by kind."""
    _set_about: set[str] = field(default_factory=set)
    """Acts of which an executor was asked for a stage."""

    def carry_out(self, owner: Owner, acts: Sequence[Act]) -> Carried:
        """Do what these acts say, as far as their owner still wants it.

        A run that is asked to stop does so at the next boundary. What it had set about is closed as if the run died,
        and the next one finishes it. The rest is put back.
        """
        if not acts:
            return Carried()
        begun: list[ActResult] = []
        try:
            return self._carry_out(owner, acts, begun)
        except Cancelled:
            open_acts = [result.act for result in begun if result.error is None]
            intents.stop(self.ledger, self.lease, owner, open_acts, self._set_about)
            raise

    def _carry_out(self, owner: Owner, acts: Sequence[Act], begun: list[ActResult]) -> Carried:
        if self.lake.session is not None:
            self.lake.session()  # before several threads ask for it
        places = {act.id: places_around(act.homes) for act in acts}
        self.context.step("intents", len(acts), unit="acts")
        for act in acts:
            begun += intents.begin(self.ledger, self.lease, self._run, owner, act, places[act.id])
            self.context.advance()
        refused = tuple(result for result in begun if result.error is not None)
        results = [result for result in begun if result.error is None]
        self.context.step("metadata", len(results), unit="acts")
        results = self._pass(Phase.METADATA, results, self.commit)
        self.context.step("references")
        results = self.read_references(self._due(Phase.REFERENCES, results))
        results = self._due(Phase.FILES, results)
        self._tell_what_stays(results)
        also = taken_along(results)
        self.context.step("files", sum(len(result.deletes) for result in results), unit="files")
        results = self._pass(Phase.FILES, results, lambda r: self.delete(r, also.get(r.act.dataset, ())))
        return self._settle(owner, results, refused)

    @property
    def _run(self) -> str:
        assert self.context.run is not None, "acts are carried out by a run that the state knows"
        return self.context.run

    def _tell_what_stays(self, results: Sequence[ActResult]) -> None:
        for result in results:
            whys = Counter(str(reason.code) for reason in result.needed.values())
            for code, count in sorted(whys.items()):
                _logger.info("%s: %d files stay: %s", result.act.told, count, code, extra={"run": self.context.run})

    def commit(self, result: ActResult) -> ActResult:
        return self.executors[result.act.kind].commit(result)

    def read_references(self, results: Sequence[ActResult]) -> list[ActResult]:
        inventory = self.lake.rescan()
        return with_needed(results, inventory, self.lake.unread(inventory))

    def delete(self, result: ActResult, also: Sequence[str]) -> ActResult:
        return self.executors[result.act.kind].delete(result, also)

    def _pass(
        self, phase: Phase, results: Sequence[ActResult], work: Callable[[ActResult], ActResult]
    ) -> list[ActResult]:
        """A phase of all acts: several datasets at once, the acts of one dataset one after the other, in order."""
        by_dataset: dict[str, list[ActResult]] = {}
        for result in self._due(phase, results):
            by_dataset.setdefault(result.act.dataset, []).append(result)

        def one(result: ActResult) -> ActResult:
            if result.act.stage(phase) is None or result.error is not None or result.paused:
                return result
            self.context.cancellation.check()
            self._set_about.add(result.act.id)
            _logger.debug("%s: %s", result.act.told, result.act.stage(phase), extra={"run": self.context.run})
            try:
                return work(result)
            except LeaseError:
                raise
            except OverLimitError as error:
                return replace(result, error=error.message, over=True)
            except Exception as error:
                return replace(result, error=told(error))

        def in_order(of_dataset: Sequence[ActResult]) -> list[ActResult]:
            if self.lake.session is not None:
                activate(self.lake.session())
            done = []
            for result in of_dataset:
                done.append(one(result))
                self.context.progress.advance(len(result.deletes) if phase is Phase.FILES else 1)
            return done

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            # Consumed, so that a lost lease is raised here.
            done = {each.act.id: each for some in pool.map(in_order, by_dataset.values()) for each in some}
        return [done[result.act.id] for result in results]

    def _due(self, phase: Phase, results: Sequence[ActResult]) -> list[ActResult]:
        """The same, with those paused whose stage of this phase is for later."""
        now = self.ledger.clock.now()

        def early(result: ActResult) -> bool:
            stage = result.act.stage(phase)
            return stage is not None and stage.not_before is not None and stage.not_before > now

        return [replace(result, paused=True) if early(result) else result for result in results]

    def _settle(self, owner: Owner, results: Sequence[ActResult], refused: tuple[ActResult, ...]) -> Carried:
        after = self.lake.rescan()
        results = [result if result.paused else with_listing(result) for result in results]
        touched = sorted({result.act.dataset for result in results} & after.current.entries.keys())
        self.context.step("proof", len(touched), unit="datasets")
        proofs = self.lake.prove(touched)
        results = [replace(each, findings=_count(proofs.get(each.act.dataset))) for each in results]
        for result in results:
            if result.paused:
                intents.pause(self.ledger, self.lease, owner, result)
                continue
            entry = after.current.entries.get(result.act.dataset)
            settlement = owner.settle(result, after)
            intents.finish(self.ledger, self.lease, result, settlement, entry.token if entry else None)
        return Carried(tuple(results), refused, proofs)


def _count(proof: Sequence[str] | None) -> int | None:
    return None if proof is None else len(proof)
