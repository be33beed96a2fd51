"""`ebbtide departed`: who left and is still in a table, and the erasure requests for them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from ebbtide.app.ledger import open_ledger
from ebbtide.app.scan import start_session
from ebbtide.app.state import open_state
from ebbtide.app.world import orders_of, read_state, tick_of, world_of
from ebbtide.config import Project
from ebbtide.config.policies import load_policies
from ebbtide.config.subjects import Subject, load_subjects
from ebbtide.erasure.keyring import destroy_left_keys
from ebbtide.erasure.leavers import decide, file_and_withdraw, open_requests
from ebbtide.errors import InputError
from ebbtide.governance.carriers import Carriers, carriers
from ebbtide.governance.departed import Departed, departed, promised
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Ledger
from ebbtide.lineage.labelled import label_inventory
from ebbtide.model.times import as_text


def departed_users(
    project: Project, *, file: bool = False, dry_run: bool = False, as_of: datetime | None = None
) -> dict[str, Any]:
    """Counts per place and subject; with `file`, requests are filed and withdrawn, or counted where `dry_run`."""
    from ebbtide.plan.promises import gone_by_age

    subjects = [subject for subject in load_subjects(project.root).values() if subject.left_at]
    if not subjects:
        raise InputError(
            "nothing says who left", hint=f"write `left_at:` of a subject into {project.root / 'subjects.yml'}"
        )
    # What is written carries the ledger's clock, which refuses an `as_of` unless the project's time is simulated.
    ledger = open_ledger(project, as_of=as_of if file and not dry_run else None)
    open_state(project)
    now = as_of or ledger.clock.now()
    inventory, policies = Inventory.open(project.inventory), load_policies(project.root, unsafe=True)
    labelled = label_inventory(project, inventory)
    carried = [(subject, carriers(subject, labelled, inventory)) for subject in subjects]
    spark, world = start_session(project), world_of(labelled, inventory)
    orders = orders_of(project, read_state(project), inventory)
    if file and not dry_run:
        destroy_left_keys(ledger)
    found = []
    for subject, places in carried:  # a few kinds of identifiers, each a handful of jobs over all tables
        gone_within = promised(subject, policies, world.only(place.table_id for place in places.columns))
        ages_out = gone_by_age(policies, world, orders, gone_within, tick=tick_of(project))
        with departed(spark, project.catalogs, subject, gone_within, now=now) as people:
            found.append(_told(project, subject, people, places, ages_out))
            if file:
                found[-1] |= _file(ledger, subject, people, dry_run=dry_run)
    return {"as_of": as_text(now), "subjects": found, "notices": list(ledger.notices)}


def _told(project: Project, subject: Subject, people: Departed, places: Carriers, ages_out: set[str]) -> dict[str, Any]:
    standings, unread = people.look(project.catalogs, places, ages_out)
    return {
        "subject": subject.name,
        "gone_within": str(people.gone_within),
        "places": [
            {**asdict(one.place), **{k: v for k, v in asdict(one).items() if k != "place"}} for one in standings
        ],
        "unread": [asdict(one) for one in unread],
    }


def _file(ledger: Ledger, subject: Subject, people: Departed, *, dry_run: bool) -> dict[str, Any]:
    with ledger.database.reader() as state:
        known = open_requests(state, ledger.home, subject)
    leavers, returned = people.to_file(known), people.returned(known)
    if dry_run:
        would = decide(known, leavers, returned)
        filed, withdrawn, too_late = len(would.file), len(would.withdraw), len(would.too_late)
        return {"filed": filed, "withdrawn": withdrawn, "too_late": too_late, "requests": []}
    done = file_and_withdraw(ledger, subject, leavers, returned)
    filed, withdrawn, too_late = len(done.filed), len(done.withdrawn), len(done.too_late)
    return {"filed": filed, "withdrawn": withdrawn, "too_late": too_late, "requests": list(done.filed)}
