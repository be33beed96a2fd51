"""What became of each object, by what the inventory and the listing show after the act (spec §2, "A sweep removes")."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.acts.act import ActResult
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import BESIDE
from ebbtide.model.reasons import CHANGELOG, Code, Reason
from ebbtide.state.values import ObjectKey
from ebbtide.sweep.values import ExpiringObject, ObjectBatch, ObjectOutcome


def results_of(batch: ObjectBatch, act: ActResult, after: Inventory, planned: DatasetState) -> list[ObjectOutcome]:
    """A result for every object of the act; `planned` is what the plan was made from."""
    return results_in(batch, act, DatasetState(batch.dataset, after), planned)


def results_in(batch: ObjectBatch, act: ActResult, seen: DatasetState, planned: DatasetState) -> list[ObjectOutcome]:
    """The same, where the dataset is as `seen` after the act."""
    if act.error is not None and act.over:
        return [ObjectOutcome(each.key, "waiting", act.error) for each in batch.objects]
    if act.error is not None:
        return [ObjectOutcome(each.key, "failed", f"failed: {act.error}") for each in batch.objects]
    if batch.leftover:
        return [_leftover(batch, act, each) for each in batch.objects]
    return [_result(batch, act, each, seen, planned) for each in batch.objects]


_WITH_ROWS = ("data", "log", "delete file", "deletion vector", "changelog", "change data")

_HIDING = ("log", "delete file", "deletion vector")


class DatasetState:
    """What an inventory says of one dataset, read when this is made: later scans drop what an older one was made of.

    Only `before` asks it again, and it is for what was scanned last.
    """

    def __init__(self, dataset: str, after: Inventory) -> None:
        self._dataset, self._after = dataset, after
        self.listed = dataset in after.current.entries
        rows = after.rows("transactions", table_id=dataset)
        self.versions: Mapping[str, Any] = {row["transaction_id"]: row for row in rows if not row["expired"]}
        refs = after.rows("branches", table_id=dataset)
        self.branches = {row["name"] for row in refs if row["kind"] == "branch"}
        self.main = next((row["head"] for row in refs if row["main"]), None)
        self.partitions = {row["partition"] for row in after.rows("partitions", table_id=dataset)}

    def without(
        self, *, table: bool, versions: Collection[str], partitions: Collection[str], branches: Collection[str]
    ) -> DatasetState:
        """The dataset as it would be without these, or without its table."""
        after = copy(self)
        after.listed = self.listed and not table
        after.versions = {id_: row for id_, row in self.versions.items() if not table and id_ not in versions}
        after.branches = set() if table else self.branches - {*branches}
        after.partitions = set() if table else self.partitions - {*partitions}
        return after

    def versions_of(self, paths: Collection[str]) -> set[str]:
        """The versions that have one of these files."""
        files = self._after.table("files", table_id=self._dataset).select(["path", "versions"])
        lists = files.filter(pc.field("path").isin(sorted(paths)))["versions"].to_pylist()
        runs = [(run["first"], run["last"]) for each in lists for run in each or ()]
        return {
            id_ for id_, row in self.versions.items() if any(first <= row["position"] <= last for first, last in runs)
        }

    def before(self, moment: datetime) -> list[str]:
        """Versions that hold rows from before that moment: older ones, and those of branches that left main before it.

        Delta's first one, of `CREATE TABLE`, has no file that could go, and is listed until the log is cleaned.
        """
        forks: dict[str, datetime] = {}
        for row in self.versions.values():
            if "main" in (row["branches"] or ()):
                forks |= {
                    name: max(row["committed_at"], forks.get(name, row["committed_at"])) for name in row["branches"]
                }
        older = [
            (id_, row["position"])
            for id_, row in self.versions.items()
            if row["committed_at"] < moment
            or not any(name == "main" or (name in forks and forks[name] >= moment) for name in row["branches"] or ())
        ]
        begin = self._first_with_rows() if older else None
        return [] if begin is None else sorted(id_ for id_, position in older if position >= begin)

    def hidden(self) -> int:
        """Files of heads that hide rows of others: what they hide may be what was to go."""
        rows = self._with_rows.filter(pc.field("live") & pc.field("role").isin(_HIDING))
        return int(rows.filter(pc.list_value_length(pc.field("versions")) > 0).num_rows)

    def left_to_changelogs(self) -> bool:
        """Whether a file is there that no version has any more, and that a changelog keeps."""
        lists = self._with_rows["versions"].to_pylist()
        return any(runs and all(run["first"] == BESIDE for run in runs) for runs in lists)

    def _first_with_rows(self) -> int | None:
        runs = self._with_rows["versions"].combine_chunks().flatten()
        return min((first for first in runs.field("first").to_pylist() if first != BESIDE), default=None)

    @cached_property
    def _with_rows(self) -> pa.Table:
        files = self._after.table("files", table_id=self._dataset).select(["role", "live", "versions"])
        return files.filter(pc.field("role").isin(_WITH_ROWS))


def _result(
    batch: ObjectBatch, act: ActResult, going: ExpiringObject, seen: DatasetState, planned: DatasetState
) -> ObjectOutcome:
    key = going.key
    if (why := act.committed.sent_back.get(key.object)) is not None:
        return ObjectOutcome(key, "unmarked", why)
    left = [file.path for file in going.files if file.path in act.there]
    needed = sorted({act.needed[path] for path in left if path in act.needed})
    stuck = [path for path in left if path not in act.needed]
    needed = _counted(needed, key)
    match key.target:
        case "rows":
            if batch.along:
                return _along(going, seen)
            return _rows(going, seen, planned)
        case "branches":
            gone, waits = key.object not in seen.branches, "the branch is still there"
        case "tables":
            gone, waits = not seen.listed, "its catalog still lists it"
        case "partitions":
            gone, waits = key.object not in seen.partitions, "it is still in the head"
        case "transactions" | "versions" if not going.row["drops_from"]:
            gone, waits = key.object not in seen.versions, _kept(act)
        case _:
            gone, waits = True, ""
    if stuck:
        return _stuck(act, key, stuck)
    if gone and key.target == "partitions" and going.kept_by_others:
        return ObjectOutcome(key, "waiting", f"{going.kept_by_others} of its files, which others reference")
    if not gone:
        return ObjectOutcome(key, "waiting", waits)
    if needed:
        return ObjectOutcome(key, "waiting", ", ".join(why.text for why in needed[:5]))
    return ObjectOutcome(key, "swept", "none of its files is left")


def _counted(needed: list[Reason], key: ObjectKey) -> list[Reason]:
    """Those reasons for files to stay that the object waits for."""
    if key.target == "versions":
        # A file that a retained version references is that one's (spec §2).
        return [why for why in needed if why.code is not Code.REFERENCED]
    return [why for why in needed if why.code is not Code.OUTSIDE] if key.target == "tables" else needed


def _stuck(act: ActResult, key: ObjectKey, paths: Collection[str]) -> ObjectOutcome:
    """Files that nothing needs and are still there: the format left them for later, or could not remove them."""
    if act.deletion.because and not any(path in act.deletion.failed for path in paths):
        return ObjectOutcome(key, "waiting", act.deletion.because)
    return ObjectOutcome(key, "failed", f"{len(paths)} files could not be removed")


def _kept(act: ActResult) -> str:
    return act.deletion.because or "the format still lists the version, which it does until its own log is cleaned"


def _rows(going: ExpiringObject, seen: DatasetState, planned: DatasetState) -> ObjectOutcome:
    acted = going.mark.acted_at if going.mark else None
    if acted is None and seen.main == planned.main:
        if going.tried_at is None and (hidden := seen.hidden()):
            return ObjectOutcome(
                going.key, "unmarked", f"no row matched, but {hidden} files only hide rows: compact the table"
            )
        if going.tried_at is None:
            return ObjectOutcome(going.key, "swept", "no row matched")
        acted = going.tried_at[1]
    if acted is None:
        head = seen.versions.get(seen.main or "")
        acted = None if head is None else head["committed_at"]
        if acted is None:
            return ObjectOutcome(going.key, "waiting", "the commit that deleted its rows is not in the inventory")
    older = seen.before(acted)
    if older:
        return ObjectOutcome(going.key, "waiting", f"version:{older[0]}", acted)
    if seen.left_to_changelogs():
        return ObjectOutcome(going.key, "waiting", CHANGELOG, acted)
    if hidden := seen.hidden():
        # Not swept, and no reason to keep its cutoff: rows that grow old meanwhile are to go by the next mark.
        why = f"deleted from the head, where {hidden} files only hide rows: compact the table"
        return ObjectOutcome(going.key, "unmarked", why, acted)
    return ObjectOutcome(going.key, "swept", "no version from before the delete is left", acted)


def _along(going: ExpiringObject, seen: DatasetState) -> ObjectOutcome:
    if seen.listed:
        return ObjectOutcome(going.key, "waiting", "its table, which was to go whole, is still there")
    return ObjectOutcome(going.key, "swept", "its table is gone")


def _leftover(batch: ObjectBatch, act: ActResult, going: ExpiringObject) -> ObjectOutcome:
    mark = going.mark
    assert mark is not None
    if batch.called_now is not None and not batch.took_its_name:
        # What an act began and left is gone by now, or needed; the rest is marked anew where it is.
        return ObjectOutcome(going.key, "unmarked", f"its table is called {batch.called_now} now")
    if mark.act is None and (into := batch.went_as_versions.get(going.key.object)) is not None:
        if not into:
            return ObjectOutcome(going.key, "swept", "none of its files is left: they went with its version")
        return ObjectOutcome(
            going.key, "unmarked", f"its version went, and its files are those of {', '.join(into)} now"
        )
    if mark.act is None:
        why = "it is gone: someone else removed it"
        went = "" if batch.called_now is None else f", or it went with the table that is called {batch.called_now} now"
        return ObjectOutcome(going.key, "unmarked", f"{why}{went}")
    if stuck := [file.path for file in going.files if file.path in act.there and file.path not in act.needed]:
        return _stuck(act, going.key, stuck)
    needed = sorted({act.needed[file.path] for file in going.files if file.path in act.there})
    # The intent lists the files of its act, not of each object: one that somebody needs may be this one's.
    if waits := _counted(needed, going.key):
        return ObjectOutcome(going.key, "waiting", ", ".join(why.text for why in waits[:5]))
    return ObjectOutcome(going.key, "swept", "none of its files is left")
