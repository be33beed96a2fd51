"""What an earlier act left: the object is no longer in the inventory, some of its files may still lie there.

A crash between the metadata's commit and the removal of files, or a store that refused some keys, ends here. Only files
that the act's intent named are touched, and only where nothing references them (the sweep asks that of all acts).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ebbtide.acts.act import NamedFile
from ebbtide.acts.recovery import failed_acts, files_of_act
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.renames import called_before, called_now
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.model.reasons import Code
from ebbtide.state.values import Mark, MarkState, ObjectKey
from ebbtide.sweep.act_planning import OBJECTS_PER_ACT, catalog_of, homes_of, new_act
from ebbtide.sweep.values import ExpiringObject, ObjectBatch

_OF_HISTORY = ("transactions", "versions")
_ROW: Mapping[str, Any] = {"drops_from": (), "policy": None, "because": "an earlier sweep left it", "cutoff": None}


IDLE = "the format still lists the version, and nothing that only it needs is there to remove"
UNNAMED = "its catalog, which the project no longer names: what it references is not known"


@dataclass(frozen=True, slots=True)
class Sorted:
    """What a sweep finds: objects to act on, marks of objects that are gone but for files, and objects to leave alone.

    A format that keeps versions in a log of its own (Delta) lists one whose files all live on: it waits for that log.
    """

    fresh: list[ExpiringObject] = field(default_factory=list)
    left: list[Mark] = field(default_factory=list)
    waiting: dict[ObjectKey, str] = field(default_factory=dict)


def sort_out(
    going: Iterable[ExpiringObject],
    marks: Iterable[Mark],
    waits: Mapping[ObjectKey, Mapping[str, Any]],
    catalogs: Mapping[str, Catalog],
) -> Sorted:
    """Who is acted on, and how."""
    todo = Sorted()
    for gone in marks:
        # For the proof, and for nobody who could not be read.
        if gone.key in waits and waits[gone.key]["waits_for_codes"] == [Code.PROOF]:
            if catalog_of(gone.key.dataset, catalogs) is not None:
                todo.left.append(gone)
            else:
                todo.waiting[gone.key] = UNNAMED
    going = list(going)
    # Where there is work, all versions that go take part: a file that several of them hold is named by the last one.
    working = {o.key.dataset for o in going if o.files or o.row["drops_from"] or o.key.target not in _OF_HISTORY}
    for object_ in going:
        mark, key = object_.mark, object_.key
        if key.target in _OF_HISTORY and not object_.row["drops_from"] and key.dataset not in working:
            todo.waiting[key] = IDLE
        elif (
            mark is not None
            and mark.act is not None
            and not object_.files
            and (key.target == "partitions" or object_.row["drops_from"])
        ):
            todo.left.append(mark)
        else:
            todo.fresh.append(object_)
    return todo


def leftovers(
    ledger: Ledger, marks: Collection[Mark], catalogs: Mapping[str, Catalog], inventory: Inventory
) -> Iterator[ObjectBatch]:
    """A batch per dataset and some hundred marks, with the files that the marks' own acts named."""
    if not marks:
        return
    failed = failed_acts(ledger, {mark.act for mark in marks if mark.act is not None and mark.key.target == "tables"})
    # A drop that failed took no table away: somebody else did, and may have plans for its files.
    marks = [replace(mark, act=None) if mark.act in failed and mark.key.target == "tables" else mark for mark in marks]
    named = files_of_act(ledger, {mark.act for mark in marks if mark.act is not None})
    by_dataset: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        by_dataset[mark.key.dataset].append(mark)
    renamed, names = called_now(inventory.current), called_before(inventory.current)
    as_versions = _went_as_versions(ledger, marks)
    for dataset, theirs in sorted(by_dataset.items()):
        files = {
            act: tuple(NamedFile(path, size) for path, size in named.get(act, {}).items())
            for act in {mark.act or "" for mark in theirs}
        }
        # Marks of one act stay together as far as they can: they share its files.
        theirs.sort(key=lambda mark: (mark.act or "", mark.key.target, mark.key.object))
        catalog = catalogs[DatasetId.parse(dataset).catalog]
        homes = homes_of(inventory, dataset)
        for start in range(0, len(theirs), OBJECTS_PER_ACT):
            part = theirs[start : start + OBJECTS_PER_ACT]
            objects = tuple(ExpiringObject(mark.key, _ROW, mark, files[mark.act or ""]) for mark in part)
            yield ObjectBatch(
                id=new_act(), dataset=dataset, catalog=catalog, objects=objects, leftover=True, homes=homes,
                root=homes[0] if homes else None,
                called_now=next(iter(renamed.get(dataset, ())), None), went_as_versions=as_versions.get(dataset, {}),
                took_its_name=dataset in inventory.current.entries, called_before=names.get(dataset, ()),
            )  # fmt: skip


def _went_as_versions(ledger: Ledger, marks: Iterable[Mark]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Of marks on which no act was begun: per dataset the transactions whose versions were swept, with those that had
    files of theirs then.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    asked = {mark.key.dataset for mark in marks if mark.act is None and mark.key.target == "transactions"}
    if not asked:
        return found
    with ledger.database.reader() as state:
        for mark in state.marks(datasets=asked, only_open=False):
            if mark.key.target == "versions" and mark.state is MarkState.SWEPT:
                found.setdefault(mark.key.dataset, {})[mark.key.object] = mark.carried_into
    return found
