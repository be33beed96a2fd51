"""`ebbtide orphans`: what lies in the storage and is referenced by nothing, and the folders that a person condemns.

The order is always the same: list the storage, then read references (spec §2). Marking and removing orphans is the
business of policies, as for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ebbtide.app.actor import actor
from ebbtide.app.scan import run_scan, start_plan_session
from ebbtide.config import Project
from ebbtide.errors import InputError, RefusedError
from ebbtide.inventory import current as currents
from ebbtide.inventory.areas import Condemned, owner_of, places
from ebbtide.inventory.current import Current
from ebbtide.inventory.doubts import doubts
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.labelled import Labelled
from ebbtide.inventory.listing import Listing, list_storage
from ebbtide.inventory.markers import without_views
from ebbtide.inventory.orphans import Orphans, Unregistered, find_orphans
from ebbtide.inventory.scan import Watcher
from ebbtide.model.paths import is_inside, normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.plan.world import World

_YOUNG = timedelta(hours=24)
_MOST_ERRORS = 3


@dataclass(frozen=True, slots=True)
class Look:
    """The storage, what is referenced as it was read after, and what is left."""

    listing: Listing
    inventory: Inventory
    orphans: Orphans


def exclusive_prefixes(project: Project) -> list[str]:
    return [normalise(warehouse.prefix) for warehouse in project.warehouses if warehouse.exclusive]


def list_project(project: Project, *, now: datetime, watcher: Watcher | None = None) -> Listing:
    """List everything that the project's datasets own, and its exclusive prefixes. Call it before the scan that counts.

    The first time, also after an upgrade, there must be an inventory first, to know what there is to list.
    """
    if (before := currents.load(project.inventory)) is None or before.outdated:
        run_scan(project, now=now, watcher=watcher)
    current = Inventory.open(project.inventory).current
    return list_storage(places(current, project.catalogs, exclusive_prefixes(project)), project.inventory)


def look(project: Project, *, now: datetime, watcher: Watcher | None = None) -> Look:
    """List, scan, compare."""
    listing = list_project(project, now=now, watcher=watcher)
    run_scan(project, now=now, watcher=watcher)
    inventory = Inventory.open(project.inventory)
    spark = start_plan_session(project, inventory, listing)
    return Look(listing, inventory, search(project, inventory, listing, inventory.frame(spark, "files")))


def search(project: Project, inventory: Inventory, listing: Listing, references: DataFrame) -> Orphans:
    """What of the listing is not among the references: all files of this inventory, which was read after it."""
    from ebbtide.plan.world import settled

    if not listing.is_before(inventory.current):
        raise RefusedError("references were not read after the listing", hint="list first, then scan")
    spark = references.sparkSession
    prefixes, condemned = exclusive_prefixes(project), _condemned(project)
    found = find_orphans(spark, listing, references, inventory.current, project.catalogs, prefixes, condemned)
    # Whoever plans with them looks at them more than once: they are computed here, and only here.
    return replace(found, files=without_views(settled(found.files), project.catalogs))


def with_orphans(
    world: World,
    project: Project,
    inventory: Inventory,
    labelled: Labelled,
    listing: Listing,
    spark: SparkSession,
    *,
    now: datetime,
) -> World:
    """The plan's world with what the listing found. Whatever could not be read or listed keeps all of it."""
    from pyspark.sql import functions as F

    from ebbtide.spark.frames import small_frame

    found = search(project, inventory, listing, world.files)
    former = None
    if found.former:
        # Its labels outlive a table: a floor or an exclusion by label holds what is left of it.
        known = [(name, format_, labelled.of_former(name)) for name, format_ in sorted(found.former.items())]
        names = small_frame(spark, known, "table_id string, format string, labels array<string>")
        missing = [field for field in world.tables.schema if field.name not in names.columns]
        former = names.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing})
    # Without any, the plan need not look for them: the usual case, night after night.
    orphans = None if found.files.isEmpty() else found.files
    errors = tuple(unread(project, inventory.current, listing, now=now))
    return replace(world, orphans=orphans, listed_at=listing.listed_at, former=former, errors=errors)


def unread(project: Project, current: Current, listing: Listing, *, now: datetime) -> list[str]:
    """Why nothing is an orphan for now: catalogs, datasets and folders that could not be read (spec §2)."""
    in_doubt = doubts(current, project.catalogs, project.ignore, now=now)
    reasons = [f"{doubt.name}: {doubt.reason}" for doubt in in_doubt]
    reasons += [f"{root}: {error}" for root, error in sorted(listing.failed.items())]
    more = len(reasons) - _MOST_ERRORS
    return [*reasons[:_MOST_ERRORS], f"and {more} more"] if more > 0 else reasons


def list_orphans(project: Project, *, now: datetime, watcher: Watcher | None = None) -> dict[str, Any]:
    """Orphans by folder, whatever their age, and the tables that no catalog lists."""
    from pyspark.sql import functions as F

    found = look(project, now=now, watcher=watcher)
    rows = (
        found.orphans.files.groupBy("table_id", "folder")
        .agg(
            F.count("*").alias("files"),
            F.sum("bytes").alias("bytes"),
            F.max(F.unix_micros("modified_at")).alias("newest"),
        )
        .orderBy("table_id", "folder")
        .collect()
    )
    return {
        "listed_at": found.listing.listed_at,
        "orphans": [
            {"dataset": row.table_id, "folder": row.folder, "files": row.files, "bytes": row.bytes,
             "newest": None if row.newest is None else datetime.fromtimestamp(row.newest / 1e6, UTC)}
            for row in rows
        ],
        "unregistered": [_as_dict(each) for each in found.orphans.unregistered],
        "unread": unread(project, found.inventory.current, found.listing, now=now),
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
    project: Project, path: str, *, now: datetime, unsafe: bool = False, dry_run: bool = False
) -> dict[str, Any]:
    """Say of a table that no catalog lists that it may go: from the next plan on its files are orphans."""
    from ebbtide.app.ledger import open_ledger
    from ebbtide.ledger.entries import FolderCondemned, salted
    from ebbtide.sweep.words import dataset_in_ledger

    place = normalise(path)
    found = look(project, now=now)
    folder = _condemnable(project, found, place, now=now, unsafe=unsafe)
    dataset = owner_of(place, folder.format, found.inventory.current, project.catalogs)
    answer = {**_as_dict(folder), "dataset": dataset, "dry_run": dry_run}
    if dry_run:
        return answer
    ledger = open_ledger(project)
    ledger.open()
    with ledger.writing() as step:
        who = step.state.actor(actor())
        word = step.state.condemn(place, dataset, actor=who, at=ledger.clock.now())
        step.append(
            FolderCondemned(
                at=word.condemned_at, condemned=word.id, dataset=dataset_in_ledger([word], dataset),
                path=salted(word.salt, place), actor=who, files=folder.files, bytes=folder.bytes,
            )
        )  # fmt: skip
    return answer


def _condemnable(project: Project, found: Look, place: str, *, now: datetime, unsafe: bool) -> Unregistered:
    if not any(is_inside(place, prefix) for prefix in exclusive_prefixes(project)):
        raise RefusedError(
            f"{place} lies under no prefix that is exclusive",
            hint="declare one in ebbtide.yml: `warehouses: [{prefix: …, exclusive: true}]`",
        )
    # Strictly: who is ignored, or shares no files, may own the folder.
    reasons = [f"{row['table_id'] or row['catalog']}: {row['error']}" for row in found.inventory.errors()]
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
