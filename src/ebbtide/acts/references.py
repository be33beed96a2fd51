"""Between metadata and files: what anything references after the commits stays, whoever named it (invariant 1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ebbtide.acts.act import Act, ActResult
from ebbtide.formats.base import supports
from ebbtide.formats.registry import load_format
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.reachability import still_referenced
from ebbtide.model.capabilities import Capability
from ebbtide.model.paths import is_inside
from ebbtide.model.reasons import Code, Reason

UNREAD = Reason("its dataset could not be read again", Code.UNREADABLE)
"""Why a file stays that may or may not be referenced: nobody could tell."""
OUTSIDE = Reason("it lies outside of its dataset's folder", Code.OUTSIDE)
"""Why a file stays that a dataset references and may not be its own (Iceberg's `add_files`, a clone)."""


def with_needed(results: Sequence[ActResult], inventory: Inventory, in_doubt: Iterable[str]) -> list[ActResult]:
    """Each result with the files that stay. What could not be read again needs everything.

    `in_doubt` are those who may reference files of others unknown to anybody. It counts where no file was named, too:
    operations of a format's own find files by themselves.
    """
    unread = next(iter(in_doubt), None)
    results = [replace(result, unread=unread) for result in results]
    named = [(result.act.dataset, path) for result in results for path in result.act.paths]
    if not named:
        return results
    dropped = {result.act.dataset for result in results if result.drops_table}
    needed = still_referenced(inventory, named, _leaving(results), dropped)
    cannot_read = {entry.table_id for entry in inventory.current.entries.values() if entry.error is not None}
    failed = {error.catalog for error in inventory.current.catalog_errors}

    def one(result: ActResult) -> ActResult:
        act = result.act
        gone = _unseen(act, inventory) or act.dataset in cannot_read
        if (gone and act.dataset not in dropped) or act.catalog.name in failed or result.error is not None:
            return replace(result, needed=dict.fromkeys(act.paths, UNREAD))
        stays = {path: Reason(needed[path], Code.REFERENCED) for path in act.paths if path in needed}
        stays |= {path: OUTSIDE for path in outside(act) if path not in stays}
        if unread is not None:
            doubt = Reason(unread, Code.UNREAD)
            stays |= {path: doubt for path in act.paths if path not in stays}
        return replace(result, needed=stays)

    return [one(result) for result in results]


def _leaving(results: Iterable[ActResult]) -> dict[str, list[str]]:
    """Versions that are on their way out and still listed, by dataset.

    A format whose commit unlists versions must show that it did: one that is still listed needs its files.
    """
    leaving: dict[str, list[str]] = {}
    for result in results:
        act, removal = result.act, result.act.removal
        if result.error is not None or result.paused:
            continue
        if result.ending:
            leaving.setdefault(act.dataset, []).extend(result.ending)
        if removal is not None and not supports(load_format(act.catalog.format), Capability.UNLISTS):
            back = result.committed.sent_back
            leaving.setdefault(act.dataset, []).extend(v for v in removal.versions if v not in back)
    return leaving


def _unseen(act: Act, inventory: Inventory) -> bool:
    """Whether a dataset is no longer listed that may only not have been seen: it needs everything.

    One that an earlier act let its catalog forget is gone, and so is one that was gone before and left orphans.
    """
    listed = act.dataset in inventory.current.entries
    return not listed and (act.found is not None or act.leftover) and not act.forgotten


def outside(act: Act) -> list[str]:
    """Files that lie elsewhere than the dataset that references them: another one's, for all that is known."""
    if not act.homes or act.anywhere:
        return []
    return [path for path in act.paths if not any(is_inside(path, home) for home in act.homes)]


def taken_along(results: Collection[ActResult]) -> dict[str, list[str]]:
    """By dataset: what earlier acts left where only the format's own operation removes files. It goes with what goes
    now, or not.
    """
    left: dict[str, list[str]] = {}
    for result in results:
        act = result.act
        if (
            act.leftover
            and not result.paused
            and not supports(load_format(act.catalog.format), Capability.SINGLE_FILES)
        ):
            left.setdefault(act.dataset, []).extend(result.deletes)
    return left
