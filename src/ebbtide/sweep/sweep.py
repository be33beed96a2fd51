"""`sweep`: metadata first, then the files, then the proof (spec §2).

1. Acts that died are closed; what they left is gathered again.
2. Intents, one a dataset; then every dataset's metadata changes through its format, several at once.
3. All references are read again. What anything still needs stays, whoever named it.
4. Files go, by the format's own operation or by their exact list.
5. References are read a third time, files are listed, and the proof is made; marks close by what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ebbtide.config.policies import PolicySet, Rows
from ebbtide.config.project import Limits
from ebbtide.errors import LeaseError, OverLimitError, RefusedError, told
from ebbtide.formats.base import YES, Capability, supports
from ebbtide.formats.registry import load_format
from ebbtide.formats.same_table import same_table
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import look_again
from ebbtide.inventory.reachability import still_referenced
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import is_inside
from ebbtide.model.removal import Freed
from ebbtide.plan.plan import Plan
from ebbtide.spark.session import activate
from ebbtide.state.lease import Lease
from ebbtide.state.values import Mark, ObjectKey, Snapshot
from ebbtide.storage.handles import behind_links, led_elsewhere, places_around
from ebbtide.storage.remove import remove_empty_folders, remove_files
from ebbtide.sweep import intents
from ebbtide.sweep.carried import added_by, with_carried
from ebbtide.sweep.close import Seen, results_of
from ebbtide.sweep.gather import acts_of, decided, going_now
from ebbtide.sweep.leftover import leftovers, sort_out
from ebbtide.sweep.listing import still_there
from ebbtide.sweep.mark import send_back
from ebbtide.sweep.rows import most_rows, refuse_more, rows_proved, still_match
from ebbtide.sweep.values import OUTSIDE, UNREAD, Act, Result, SweepReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 4
"""Datasets that are worked on at the same time: enough to hide a store's latency, few enough for one session."""


@dataclass(frozen=True, slots=True)
class Lake:
    """What a sweep works on: the catalogs, a session for formats, how to read everything again, and who proves what it
    did.
    """

    catalogs: Mapping[str, Catalog]
    session: Callable[[], SparkSession]
    """Always the same. Called once there is something to do: a night without anything starts no JVM."""
    rescan: Callable[[], Inventory]
    prove: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
    """Datasets, and what is wrong with each; one that is not in the answer was not proved."""
    unread: Callable[[Inventory], Sequence[str]]
    """Who may reference files of others unknown to anybody, as `unread:NAME` (spec §7)."""

    @property
    def spark(self) -> SparkSession:
        return self.session()


@dataclass(frozen=True, slots=True)
class Sweeper:
    """One sweep under one lease."""

    lake: Lake
    ledger: Ledger
    lease: Lease
    run: str
    tell: Callable[[str], None]
    limits: Limits

    def sweep(self, plan: Plan, inventory: Inventory, policies: PolicySet, snapshot: Snapshot) -> SweepReport:
        """Do what the plan says; `inventory` is what it was made from, `snapshot` the state that it read."""
        intents.close_unfinished(self.ledger, self.lease)
        marks = {mark.key: mark for mark in snapshot.marks}
        back = send_back(self.ledger, self.lease, self.run, snapshot, decided(plan, "unmarked", "held"))
        waits = decided(plan, "wait")
        going = going_now(plan, marks)
        asked = {policy.name: policy.rows for policy in policies.policies if policy.rows is not None}
        found = sort_out(going, snapshot.marks, waits, self.lake.catalogs)
        left = {mark.key for mark in found.left}
        waiting = self._wait(marks, {key: row for key, row in waits.items() if key not in left})
        waiting += self._wait(marks, {key: {"waits_for": (why,)} for key, why in found.waiting.items()})
        acts = list(acts_of(found.fresh, self.lake.catalogs, inventory))
        acts += leftovers(self.ledger, found.left, self.lake.catalogs, inventory)
        if not acts:
            return SweepReport(self.run, (*back, *waiting))
        self.lake.session()  # before several threads ask for it
        for act in acts:
            act.places = places_around(act.homes)
        begun = intents.begin(self.ledger, self.lease, self.run, acts, snapshot, asked)
        refused = [act for act in acts if act.error is not None]
        return self._carry_out(begun, refused, inventory, asked, (*back, *waiting))

    def _wait(self, marks: Mapping[ObjectKey, Mark], waiting: Mapping[ObjectKey, Mapping[str, object]]) -> list[Result]:
        """Say in the state what each marked object waits for."""
        results = []
        with self.ledger.sweeping(self.lease) as step:
            still_open = {mark.id for mark in step.state.marks()}
            for key, row in waiting.items():
                mark = marks.get(key)
                waits_for = tuple(str(name) for name in row["waits_for"])  # type: ignore[attr-defined]
                if mark is not None and mark.id in still_open and waits_for:
                    step.state.wait(mark.id, waits_for=waits_for)
                    results.append(Result(key, "waiting", ", ".join(waits_for)))
        return results

    def _carry_out(
        self,
        acts: list[Act],
        refused: list[Act],
        inventory: Inventory,
        asked: Mapping[str, Rows],
        before: Iterable[Result],
    ) -> SweepReport:
        planned = {act.dataset: Seen(act.dataset, inventory) for act in acts}
        added = {act.id: added_by(act, inventory) for act in acts}
        for act in acts:
            if act.removal is not None and act.removal.rows:
                act.most_rows = most_rows(inventory, act.dataset, self.limits)
        self.tell(f"{len(planned)} datasets: metadata")
        self._each(acts, self._commit)
        after_commit = self.lake.rescan()
        self._mark_needed(acts, after_commit)
        self.tell(f"{sum(len(act.paths) - len(act.needed) for act in acts)} files go")
        _take_along(acts)
        self._each(acts, self._free)
        after = self.lake.rescan()
        for act in acts:
            _look(act)
        touched = sorted({act.dataset for act in acts} & after.current.entries.keys())
        self.tell(f"proof: {len(touched)} datasets")
        proofs = self.lake.prove(touched)
        results = [*before, *(Result(o.key, "failed", f"failed: {act.error}") for act in refused for o in act.objects)]
        for act in acts:
            mine = [
                rows_proved(act, each, asked, self.lake.spark) for each in results_of(act, after, planned[act.dataset])
            ]
            mine = with_carried(mine, act, added[act.id], after)
            entry = after.current.entries.get(act.dataset)
            proof = proofs.get(act.dataset)
            findings = None if proof is None else len(proof)
            intents.finish(self.ledger, self.lease, self.run, act, mine, entry.token if entry else None, findings)
            results += mine
        removed = {path: size for act in acts for path, size in act.removed.items()}
        errors = [f"{act.dataset}: {act.error}" for act in (*acts, *refused) if act.error and not act.over]
        errors += [
            f"{act.dataset}: {path.rpartition('/')[2]}: {why}"
            for act in acts
            for path, why in sorted(act.freed.failed.items())
        ]
        return SweepReport(
            self.run, tuple(results), len(removed), sum(removed.values()), tuple(errors),
            over=tuple(f"{act.dataset}: {act.error}" for act in acts if act.over),
            findings=tuple(f"{dataset}: {said}" for dataset, proof in proofs.items() for said in proof),
        )  # fmt: skip

    def _each(self, acts: Collection[Act], work: Callable[[Act], None]) -> None:
        """Several datasets at once; the acts of one dataset one after the other, in order."""
        by_dataset: dict[str, list[Act]] = {}
        for act in acts:
            by_dataset.setdefault(act.dataset, []).append(act)

        def one(of_dataset: list[Act]) -> None:
            activate(self.lake.spark)
            for act in of_dataset:
                if act.error is None:
                    try:
                        work(act)
                    except LeaseError:
                        raise
                    except OverLimitError as error:
                        act.error, act.over = error.message, True
                    except Exception as error:
                        act.error = told(error)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            # Consumed, so that a lost lease is raised here.
            list(pool.map(one, by_dataset.values()))

    def _commit(self, act: Act) -> None:
        if act.removal is None:
            return
        deletes = act.removal.rows
        if act.most_rows is not None:
            for delete in deletes:
                refuse_more(act.removal.found, act.catalog, delete, act.most_rows, self.lake.spark)
        if (place := led_elsewhere(act.places)) is not None:
            raise RefusedError(f"{place} is another folder than when the sweep began: nothing was changed")
        self.lease.check()
        with same_table(act.removal.found, act.catalog, self.lake.spark, goes=act.removal.table):
            act.committed = load_format(act.catalog.format).commit(act.removal, act.catalog, self.lake.spark)
        for delete in deletes:
            back = delete.object in act.committed.sent_back
            if not back and still_match(act.removal.found, act.catalog, delete, self.lake.spark):
                act.unhit.add(delete.object)

    def _mark_needed(self, acts: Collection[Act], inventory: Inventory) -> None:
        """What anything references after the commits stays. What could not be read again needs everything."""
        named = [(act.dataset, path) for act in acts for path in act.paths]
        # Also where no file was named: operations of a format's own find files by themselves.
        in_doubt = self.lake.unread(inventory)
        for act in acts:
            act.unread = next(iter(in_doubt), None)
        if not named:
            return
        going: dict[str, list[str]] = {}
        for act in acts:
            # A format whose commit unlists versions must show that it did: one that is still listed needs its files.
            unlists = act.removal is None or supports(load_format(act.catalog.format), Capability.UNLISTS)
            if act.removal is not None and act.error is None and not unlists:
                back = act.committed.sent_back
                going.setdefault(act.dataset, []).extend(v for v in act.removal.versions if v not in back)
        dropped = {act.dataset for act in acts if _is_dropped(act)}
        needed = still_referenced(inventory, named, going, dropped)
        unread = {e.table_id for e in inventory.current.entries.values() if e.error is not None}
        failed = {error.catalog for error in inventory.current.catalog_errors}
        for act in acts:
            # A dataset that is no longer listed may only not have been seen: unless this sweep drops it, or it was gone
            # before and left orphans, it needs everything.
            unseen = act.dataset not in inventory.current.entries and (act.found is not None or act.leftover)
            unseen = unseen and not _was_dropped(act)
            lost = act.dataset not in dropped and (unseen or act.dataset in unread)
            if lost or act.catalog.name in failed or act.error is not None:
                act.needed = dict.fromkeys(act.paths, UNREAD)
            else:
                act.needed = {path: needed[path] for path in act.paths if path in needed}
                act.needed |= {path: OUTSIDE for path in _outside(act) if path not in needed}
                if act.unread is not None:
                    act.needed |= {path: act.unread for path in act.paths if path not in act.needed}

    def _free(self, act: Act) -> None:
        if act.along:
            return
        if act.unread is not None:  # an operation of the format's own could take what we cannot name
            act.freed = Freed(because=act.unread)
            return
        paths = [path for path in act.paths if path not in act.needed]
        if act.removal is None:
            # Orphans may lie where there is no catalog, and so no format to ask.
            kept = supports(load_format(act.catalog.format), Capability.SINGLE_FILES) if act.leftover else YES
            if not kept:
                act.freed = Freed(because=kept.reason)
            elif paths:
                act.freed = self._remove(act, paths)
            return
        # No format is asked for a file behind a link: its own operations remove by path, and would follow it.
        linked = behind_links([*paths, *act.also], act.places)
        paths = [path for path in (*paths, *act.also) if path not in linked]
        if paths or act.removal.versions:
            adapter = load_format(act.catalog.format)
            with same_table(act.removal.found, act.catalog, self.lake.spark, goes=act.removal.table):
                act.freed = adapter.free(act.removal, paths, act.catalog, self.lake.spark, self.lease.check)
        failed = {**act.freed.failed, **linked, **_without_empty_folders(act, paths)}
        act.freed = replace(act.freed, failed=failed)

    def _remove(self, act: Act, paths: Collection[str]) -> Freed:
        """Orphans, and what an earlier act left. An orphan that was written since it was listed stays."""
        listed = {f.path: f.modified for going in act.objects for f in going.files if f.modified is not None}
        kept = look_again({path: listed[path] for path in paths if path in listed}, act.catalog.options)
        going = [path for path in paths if path not in kept]
        failed = remove_files(going, act.catalog.options, self.lease.check, act.places)
        folders = {path.rpartition("/")[0] for path in paths}
        if (root := act.root) is not None:
            inside = {folder for folder in folders if folder != root and is_inside(folder, root)}
            failed |= remove_empty_folders(inside, root, act.places)
        return Freed(failed=failed | kept)


def _without_empty_folders(act: Act, paths: Collection[str]) -> dict[str, str]:
    """Folders that the files leave empty go; so does one that the table lay in before, or that lies there no more."""
    assert act.removal is not None
    stayed: dict[str, str] = {}
    for home in act.homes:
        stays = home == act.removal.found.location and not act.removal.table
        root = home if stays else home.rpartition("/")[0]
        folders = {path.rpartition("/")[0] for path in paths if is_inside(path, home)}
        stayed |= remove_empty_folders({folder for folder in folders if folder != root}, root, act.places)
    return stayed


def _take_along(acts: Collection[Act]) -> None:
    """Where only the format's own operation removes files, what earlier acts left goes with what goes now, or not."""
    left: dict[str, list[str]] = {}
    for act in acts:
        if act.leftover and not supports(load_format(act.catalog.format), Capability.SINGLE_FILES):
            left.setdefault(act.dataset, []).extend(path for path in act.paths if path not in act.needed)
    for act in acts:
        if act.removal is not None:
            act.also = tuple(left.get(act.dataset, ()))


def _outside(act: Act) -> list[str]:
    """Files that lie elsewhere than the dataset that references them: another one's, for all that is known.

    Orphans were found by where they lie.
    """
    if not act.homes or all(going.key.target == "orphans" for going in act.objects):
        return []
    return [path for path in act.paths if not any(is_inside(path, home) for home in act.homes)]


def _look(act: Act) -> None:
    """What a listing shows of the act's files. One that fails is this act's error, and tells nothing of any file."""
    try:
        # What a link hides may still be there, wherever its folder went.
        hidden = behind_links(act.paths, act.places)
        act.there = frozenset({*still_there(act.paths, act.catalog.options), *hidden})
    except Exception as error:
        act.there, act.error = frozenset(act.paths), act.error or told(error)


def _was_dropped(act: Act) -> bool:
    """Whether an earlier act let the catalog forget the table, and ended before all of its files were gone."""
    return act.leftover and bool(act.homes) and all(going.key.target == "tables" for going in act.objects)


def _is_dropped(act: Act) -> bool:
    """Whether the whole table goes: Delta and a Hadoop catalog list it until its last file is gone."""
    return act.removal is not None and act.removal.table and act.error is None and not act.committed.sent_back
