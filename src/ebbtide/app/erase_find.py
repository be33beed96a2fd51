"""`ebbtide erase find`: what we hold of people, in every dataset, branch, tag and version (spec §4)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.app.erase_request import Values, declared_in, one_person
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.erasure.found import PersonalRow
    from ebbtide.ledger.commitment import Identifier


def find_people(
    project: Project,
    requests: Sequence[str] = (),
    *,
    subject: Values | None = None,
    rows: Path | None = None,
    context: RunContext | None = None,
) -> list[dict[str, Any]]:
    """Places of each request, or of a person without one. `rows` is the file that the person's own rows go to."""
    from ebbtide.app.hot_places import look_in_hot
    from ebbtide.app.scan import scan_project, start_session
    from ebbtide.app.state import open_state
    from ebbtide.config.copies import load_copies
    from ebbtide.erasure.copies import out_of_reach, with_clones
    from ebbtide.erasure.find import Finder
    from ebbtide.erasure.identities import resolve
    from ebbtide.erasure.places import NotReachable, places_of
    from ebbtide.inventory.information_schema import Inventory
    from ebbtide.lineage.labelled import label_inventory

    context = quiet(context)
    if bool(requests) == (subject is not None):
        raise InputError("nobody to look for", hint="name a request, or a person with --subject; not both")
    if rows is not None and len(requests) > 1:
        raise InputError("rows of several people in one file", hint="ask for one request at a time")
    _refuse_existing(rows)
    people = [one_person(subject, declared_in(project)[2])] if subject is not None else _people(project, requests)
    scan_project(project, now=context.now(), context=context)
    identities, inventory, _ = declared_in(project)
    spark = start_session(project)
    resolved = resolve(spark, project.catalogs, identities, inventory, people, context)
    names = {one.type for person in resolved.people for one in person}
    context.step("follow lineage")
    places = places_of(names, identities, label_inventory(project, Inventory.open(project.inventory)), inventory)
    places = with_clones(places, load_copies(project.root), inventory)
    finder = Finder(spark, project.catalogs, identities, inventory, with_rows=rows is not None)
    found = finder.find(resolved.people, places, context)
    context.step("ask hot tables")
    _, hot = look_in_hot(
        project, open_state(project), resolved.people, names, identities, places, inventory,
        with_rows=rows is not None,
    )  # fmt: skip
    found = hot.beside(found)
    if rows is not None:
        _write_rows(rows, found.rows[0])
    beside = {NotReachable(place, because, elsewhere=True) for place, because in out_of_reach(project.root)}
    missed = [
        {"place": one.place, "because": one.because, "failed": one.failed}
        for one in sorted({*found.not_reachable, *resolved.not_reachable, *beside})
    ]
    return [
        {"id": request, "places": [asdict(held) for held in found.held[n]], "not_reachable": missed}
        for n, request in enumerate(requests or (None,))
    ]


def _people(project: Project, requests: Sequence[str]) -> list[tuple[Identifier, ...]]:
    from ebbtide.app.ledger import open_ledger
    from ebbtide.erasure.filing import opening_of

    ledger = open_ledger(project)
    return [opening_of(ledger, request).everything for request in requests]


def _refuse_existing(path: Path | None) -> None:
    if path is not None and path.exists():
        raise InputError(f"{path} is there already", hint="name a new file: what it has is not written over")


def _write_rows(path: Path, rows: Iterable[PersonalRow]) -> None:
    """A JSON object a line, for its owner's eyes only from the first byte on."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", hint="name another file") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{row.line()}\n" for row in rows)
