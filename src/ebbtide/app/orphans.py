"""`ebbtide orphans`: what lies in the storage and is referenced by nothing, and the folders that a person condemns.

The order is always the same: list the storage, then read references (spec §2). Marking and removing orphans is the
business of policies, as for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ebbtide.config import Project
from ebbtide.errors import InputError, RefusedError
from ebbtide.inventory import current as currents
from ebbtide.inventory.current import Current
from ebbtide.inventory.doubts import Doubt, doubts
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import Listing, list_storage
from ebbtide.inventory.orphans import OrphanFiles, Unregistered, find_orphans
from ebbtide.inventory.ownership import Condemned, owner_of, places
from ebbtide.kernel.tasks import Tasks
from ebbtide.lineage.labelled import Labelled
from ebbtide.model.paths import is_inside, normalise
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.plan.world import World

_YOUNG = timedelta(hours=24)
_MOST_ERRORS = 3


@dataclass(frozen=True, slots=True)
class OrphanLook:
    """The storage, what is referenced as it was read after, and what is left."""

    listing: Listing
    inventory: Inventory
    orphans: OrphanFiles


def exclusive_prefixes(project: Project) -> list[str]:
    return [normalise(warehouse.prefix) for warehouse in project.warehouses if warehouse.exclusive]


def list_project(project: Project, *, now: datetime, context: RunContext | None = None) -> Listing:
    """List everything that the project's datasets own, and its exclusive prefixes. Call it before the scan that counts.

    The first time, also after an upgrade, there must be an inventory first, to know what there is to list.
    """
    from ebbtide.app.scan import run_scan

    if (before := currents.load(project.inventory)) is None or before.outdated:
        run_scan(project, now=now, context=context)
    context = quiet(context)
    context.step("listing the storage", unit="objects")
    current = Inventory.open(project.inventory).current
    with context.cancellation.at_once():
        owned = places(current, project.catalogs, exclusive_prefixes(project))
        return list_storage(owned, project.inventory, context)


def look(project: Project, *, now: datetime, context: RunContext | None = None) -> OrphanLook:
    """List, scan, compare."""
    from ebbtide.app.scan import run_scan

    listing = list_project(project, now=now, context=context)
    run_scan(project, now=now, context=context)
    inventory = Inventory.open(project.inventory)
    return OrphanLook(listing, inventory, search(project, inventory, listing))


def search(project: Project, inventory: Inventory, listing: Listing) -> OrphanFiles:
    """What of the listing is not among the references: all files of this inventory, which was read after it."""
    if not listing.is_before(inventory.current):
        raise RefusedError("references were not read after the listing", hint="list first, then scan")
    prefixes, condemned = exclusive_prefixes(project), _condemned(project)
    return find_orphans(listing, inventory, project.catalogs, prefixes, condemned, tasks=tasks_of(project))


def tasks_of(project: Project) -> Tasks:
    """Where plans and orphans are worked out when there is too much for one process."""
    from ebbtide.app.scan import start_session

    return Tasks(project.plan.in_process, project.inventory, lambda: start_session(project))


def with_orphans(
    world: World,
    project: Project,
    inventory: Inventory,
    labelled: Labelled,
    listing: Listing,
    *,
    now: datetime,
) -> World:
    """The plan's world with what the listing found. Whatever could not be read or listed keeps all of it."""
    found = search(project, inventory, listing)
    former = None
    if found.former:
        # Its labels outlive a table: a floor or an exclusion by label holds what is left of it.
        said = {name: (format_, labelled.of_former(name)) for name, format_ in sorted(found.former.items())}
        rows = [{"table_id": name, "format": format_, "labels": labels} for name, (format_, labels) in said.items()]
        former = pa.Table.from_pylist(rows, world.tables.schema)
    errors = tuple(unread(project, inventory.current, listing, now=now))
    return replace(world, orphans=found.files, listed_at=listing.listed_at, former=former, errors=errors)


def unread(project: Project, current: Current, listing: Listing, *, now: datetime) -> list[str]:
    """Why nothing is an orphan for now: catalogs, datasets and folders that could not be read (spec §2)."""
    in_doubt = doubts(current, project.catalogs, project.ignore, now=now)
    reasons = [doubt.text for doubt in in_doubt]
    reasons += [f"{root}: {error}" for root, error in sorted(listing.failed.items())]
    more = len(reasons) - _MOST_ERRORS
    return [*reasons[:_MOST_ERRORS], f"and {more} more"] if more > 0 else reasons


def list_orphans(project: Project, *, now: datetime, context: RunContext | None = None) -> dict[str, Any]:
    """Orphans by folder, whatever their age, and the tables that no catalog lists."""
    from ebbtide.app.runs import watched

    with watched(quiet(context), project, "orphans list") as run:
        looked = look(project, now=now, context=run.context)
        not_read = unread(project, looked.inventory.current, looked.listing, now=now)
        run.ended(4 if not_read else 0, f"{looked.orphans.files.num_rows} files")
    grouped = looked.orphans.files.group_by(["table_id", "folder"]).aggregate(
        [([], "count_all"), ("bytes", "sum"), ("modified_at", "max")]
    )
    rows = grouped.sort_by([("table_id", "ascending"), ("folder", "ascending")]).to_pylist()
    return {
        "listed_at": looked.listing.listed_at,
        "orphans": [
            {"dataset": row["table_id"], "folder": row["folder"], "files": row["count_all"], "bytes": row["bytes_sum"],
             "newest": row["modified_at_max"]}
            for row in rows
        ],
        "unregistered": [_as_dict(each) for each in looked.orphans.unregistered],
        "unread": not_read,
    }  # fmt: skip


def _as_dict(folder: Unregistered) -> dict[str, Any]:
    return {
        "path": folder.path,
        "format": folder.format,
        "formerly": folder.table_id,
        "files": folder.files,
        "bytes": folder.bytes,
        "newest": folder.newest,
    }


def _condemned(project: Project) -> list[Condemned]:
    from ebbtide.app.state import open_state

    with open_state(project).reader() as state:
        return [Condemned(each.path, each.dataset, each.condemned_at) for each in state.condemned()]


def condemn(
    project: Project,
    path: str,
    *,
    now: datetime,
    unsafe: bool = False,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Say of a table that no catalog lists that it may go: from the next plan on its files are orphans."""
    from ebbtide.app.ledger import open_ledger
    from ebbtide.ledger.entries import FolderCondemned, salted
    from ebbtide.ledger.redaction import dataset_in_ledger

    context, place = quiet(context), _place_of(path)
    found = look(project, now=now, context=context)
    folder = _condemnable(project, found, place, now=now, unsafe=unsafe)
    dataset = owner_of(place, folder.format, found.inventory.current, project.catalogs)
    answer = {**_as_dict(folder), "dataset": dataset, "dry_run": dry_run}
    if dry_run:
        return answer
    ledger = open_ledger(project)
    ledger.open()
    with ledger.writing() as step:
        who = step.state.actor(context.actor)
        word = step.state.condemn(place, dataset, actor=who, at=ledger.clock.now())
        step.append(
            FolderCondemned(
                at=word.condemned_at, condemned=word.id, dataset=dataset_in_ledger([word], dataset),
                path=salted(word.salt, place), actor=who, files=folder.files, bytes=folder.bytes,
            )
        )  # fmt: skip
    return answer


def _place_of(path: str) -> str:
    """What a person means by a path: a relative one begins where she stands, as everywhere else."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return normalise(str(Path.cwd() / path))
    if not rest.startswith("/"):
        raise InputError(f"not an absolute URI: {path!r}", hint=f"write {scheme}:///…, or the path alone")
    return normalise(path)


def _condemnable(project: Project, found: OrphanLook, place: str, *, now: datetime, unsafe: bool) -> Unregistered:
    if not any(is_inside(place, prefix) for prefix in exclusive_prefixes(project)):
        raise RefusedError(
            f"{place} lies under no prefix that is exclusive",
            hint="declare one in ebbtide.yml: `warehouses: [{prefix: …, exclusive: true}]`",
        )
    # Strictly: who is ignored, or shares no files, may own the folder.
    reasons = [Doubt(row["table_id"] or row["catalog"], row["error"]).text for row in found.inventory.errors()]
    if reasons := reasons or unread(project, found.inventory.current, found.listing, now=now):
        raise RefusedError(f"not everything could be read: {reasons[0]}", hint="someone unread may own the folder")
    for entry in found.inventory.current.entries.values():
        if is_inside(entry.location, place) or is_inside(place, entry.location):
            raise RefusedError(f"{entry.table_id} lies at {entry.location}", hint="drop it in its catalog first")
    folders: Mapping[str, Unregistered] = {each.path: each for each in found.orphans.unregistered}
    if place not in folders:
        raise InputError(
            f"{place} is no table that catalogs do not list", hint="`ebbtide orphans list` shows those that are"
        )
    folder = folders[place]
    if not unsafe and folder.newest > found.listing.listed_at - _YOUNG:
        raise RefusedError(
            f"{place} was written in the last 24 hours", hint="a writer may be at work; wait, or say --unsafe"
        )
    return folder
