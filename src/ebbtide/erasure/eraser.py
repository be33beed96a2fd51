"""Acts of the kind `erase`: a format rewrites what holds people, and later lets the bytes go (`formats.erasing`).

What a commit will let go of is kept before it is made: whatever dies in between, the next run finds these files. Every
further list of an act is an intent of its own in the ledger, with its own outcome.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ebbtide.acts.act import Act, ActResult, Phase
from ebbtide.erasure.gather import Gathering
from ebbtide.errors import RefusedError
from ebbtide.formats.erasing import Erased, Erasure, Fate
from ebbtide.formats.registry import load_erasing
from ebbtide.formats.same_table import same_table
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.entries import Intent, Outcome
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.removal import Committed, FileDeletion
from ebbtide.state import erasure as rows
from ebbtide.state.lease import Lease
from ebbtide.storage.handles import behind_links, led_elsewhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class ErasureOrder:
    """Whom an act is about, and the data files, and whole versions, in which they were found. `heads` are the branches
    that show them though an earlier run of the act, which was for all of them, took them out.
    """

    people: tuple[tuple[Identifier, ...], ...]
    files: frozenset[str]
    versions: frozenset[str] = frozenset()
    heads: frozenset[str] = frozenset()


@dataclass(slots=True)
class Eraser:
    """Carries out erasures. `check` raises before a commit or a batch once the lease is lost, or the run is to stop.

    `done` is what the format said of each act's rewriting, `came` are acts of which that was an earlier run's, as rows
    came since.
    """

    gathering: Gathering
    ledger: Ledger
    lease: Lease
    run: str
    check: Callable[[], None]
    window: timedelta
    asked: Mapping[str, ErasureOrder]
    done: dict[str, Erased] = field(default_factory=dict)
    came: set[str] = field(default_factory=set)

    @property
    def session(self) -> Callable[[], SparkSession]:
        return self.gathering.session

    def commit(self, result: ActResult) -> ActResult:
        """Take rows out of heads, and of what else the format rewrites. What is let go of stays for readers in flight,
        also where an earlier run of the act let go of more.
        """
        act = result.act
        if (place := led_elsewhere(act.places)) is not None:
            raise RefusedError(f"{place} is another folder than when the run began: nothing was changed")
        self.check()
        erasure, spark = self._erasure(act), self.session()
        if (before := self._done_before(act, erasure)) is not None:
            # Rows that came since are another act's, or whoever comes day by day would keep old bytes for good.
            self.came.add(act.id)
            self.done[act.id], stage = before, act.stage(Phase.FILES)
            assert stage is not None
            freeing = act.freeing(self._files(act), not_before=stage.not_before)
            return replace(result, act=freeing, committed=Committed(version=before.version), ending=before.ending)
        named = _Named(self, act, "erase")
        with same_table(erasure.found, act.catalog, spark), named:
            erased = load_erasing(act.catalog.format).erase(erasure, act.catalog, spark, named.intend)
        self.done[act.id] = erased
        _logger.info(
            "%s: %d files and %d versions written anew, %d versions end, %d places keep somebody", act.told,
            erased.rewritten_files, len(erased.rewritten_versions), len(erased.ending), len(erased.retained),
            extra={"run": self.run},
        )  # fmt: skip
        freeing = act.freeing(self._files(act), not_before=self._free_from(act, erased))
        return replace(result, act=freeing, committed=Committed(version=erased.version), ending=erased.ending)

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:  # noqa: ARG002 - each act names its own
        """Let versions and traces end, and remove what nothing needs; nothing where somebody could not be read."""
        act = result.act
        if result.unread is not None:
            return replace(result, deletion=FileDeletion(because=result.unread))
        linked = behind_links(result.deletes, act.places)
        paths = [path for path in result.deletes if path not in linked]
        erasure, spark = self._erasure(act), self.session()
        named = _Named(self, act, "purge")
        with same_table(erasure.found, act.catalog, spark), named:
            deletion = load_erasing(act.catalog.format).purge(
                erasure, self.done[act.id], paths, act.catalog, spark, self.check, named.intend
            )
        files = {**act.paths, **named.told}
        deletion = replace(deletion, failed={**deletion.failed, **linked})
        return replace(result, act=act.freeing(files, not_before=None), deletion=deletion)

    def _erasure(self, act: Act) -> Erasure:
        asked = self.asked[act.id]
        erasure = self.gathering.erasure(act.dataset, asked.people, asked.files, asked.versions, act.places)
        return replace(erasure, in_flight_since=self.ledger.clock.now() - self.window)

    def _files(self, act: Act) -> dict[str, int]:
        with self.ledger.database.reader() as state:
            return {**act.paths, **state.files_of_act(act.id)}

    def _done_before(self, act: Act, erasure: Erasure) -> Erased | None:
        """What an earlier run of the act did, as far as it may still be gone on with; None where nobody came since to a
        head that it rewrote, and where that is not known.
        """
        heads = self.asked[act.id].heads if act.paused else frozenset[str]()
        if not heads:
            return None
        with self.ledger.database.reader() as state:
            kept = rows.erased_by(state.connection, act.id)
        if kept is None:
            return None
        said: dict[str, Any] = {
            key: tuple(each) if isinstance(each, list) else each for key, each in json.loads(kept).items()
        }
        before = Erased(**said)
        if not before.rewritten_files or heads <= before.retained.keys():
            return None
        fates = load_erasing(act.catalog.format).foresee(erasure, act.catalog, self.session())
        # Those that a floor kept may end by now; of those that were to end something may keep one.
        named = {*before.ending, *(ref.removeprefix("version:") for ref in before.retained)}
        ending = tuple(id_ for id_ in fates if id_ in named and fates[id_].fate is Fate.EXPIRES)
        left = {ref: why for ref, why in before.retained.items() if ref.removeprefix("version:") not in ending}
        return replace(before, ending=ending, retained=left)

    def _free_from(self, act: Act, erased: Erased) -> datetime | None:
        """Until then readers in flight may need what was let go of."""
        stage = act.stage(Phase.FILES)
        assert stage is not None
        if act.paused and not erased.rewritten_files:
            return stage.not_before
        free_from = self.ledger.clock.now() + self.window
        with self.ledger.sweeping(self.lease) as step:
            rows.put_off(step.state.connection, act.id, free_from=free_from, erased=json.dumps(asdict(erased)))
        return free_from


@dataclass(slots=True)
class _Named:
    """What the commits of one act let go of: kept, and written into the ledger, before each of them."""

    eraser: Eraser
    act: Act
    verb: str
    told: dict[str, int] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def intend(self, files: Mapping[str, int]) -> None:
        eraser, act = self.eraser, self.act
        eraser.check()
        fresh = {path: size for path, size in files.items() if path not in act.paths and path not in self.told}
        if not fresh:
            return
        if any("\t" in path or "\n" in path for path in fresh):
            raise RefusedError("the name of a file holds a tab or a line break, which no list of the ledger can")
        with eraser.ledger.sweeping(eraser.lease) as step:
            record = step.state.act(act.id)
            assert record is not None
            rows.add_files(step.state.connection, act.id, fresh)
            part = f"{act.id}.{eraser.lease.fence}.{self.verb}.{len(self._open) + 1}"
            attached = step.attach_files(record.salt, fresh)
            step.append(
                Intent(
                    at=eraser.ledger.clock.now(), act=part, verb=self.verb, run=eraser.run, fence=eraser.lease.fence,
                    dataset=step.dataset_in_ledger(act.dataset), files=attached,
                    requests=act.requests,
                )
            )  # fmt: skip
        self.told |= fresh
        self._open.append(part)
        _logger.debug("%s: the next commit lets go of %d files", act.told, len(fresh), extra={"run": eraser.run})

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._open or (kind is not None and not issubclass(kind, Exception)):
            return  # a run that is ended at once: the next one closes what it finds open
        with self.eraser.ledger.sweeping(self.eraser.lease) as step:
            at = self.eraser.ledger.clock.now()
            for part in self._open:
                said = "done" if kind is None else "partial"
                step.append(Outcome(at=at, act=part, result=said, requests=self.act.requests))
