"""`ebbtide erase verify|certificate`: search all that lies in storage, and certify what was shown (spec §4, §5)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.app.erase_request import declared_in
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.opened import database_of
from ebbtide.config import Project
from ebbtide.errors import InputError, RefusedError, UnreadableError
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.paths import is_inside, normalise
from ebbtide.run import RunContext, quiet
from ebbtide.storage.files import open_store

if TYPE_CHECKING:
    from ebbtide.erasure.identities import Resolved
    from ebbtide.erasure.values import DeclaredIdentity
    from ebbtide.inventory.information_schema import Inventory
    from ebbtide.ledger.commitment import Identifier
    from ebbtide.verify.needles import Needle
    from ebbtide.verify.report import FoundValue, SearchPlace, SearchReport, Untold

_KEY_BYTES = 32
_ANY_TYPE = frozenset({"string", "bigint", "decimal(38,0)", "date", "binary"})
"""How a value may be stored by a table of which nobody knows the columns any more."""
_NUMBERS = frozenset({"bigint", "decimal(38,0)"})


def verify_requests(
    project: Project,
    requests: Sequence[str],
    *,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> list[dict[str, Any]]:
    """Search for the people of these requests, and record what was found, but for a dry run."""
    from ebbtide.app.hot_places import search_hot
    from ebbtide.app.scan import run_scan, start_session
    from ebbtide.app.state import open_state
    from ebbtide.erasure.exceptions import datasets_of, exceptions_of
    from ebbtide.erasure.filing import opening_of
    from ebbtide.erasure.searches import begin, record_search
    from ebbtide.verify.answers import hidden
    from ebbtide.verify.search import search

    context = quiet(context, as_of=as_of)
    if not requests:
        raise InputError("nobody to look for", hint="name a request: `erase list` has their ids")
    ledger, now = open_for_writing(project, context)
    began = begin(ledger)
    requests = list(dict.fromkeys(requests))
    people = [opening_of(ledger, request).everything for request in requests]
    run_scan(project, now=now, context=context)
    _, inventory, declared = declared_in(project)
    resolved = _resolved(project, inventory, people, context)
    needles = list(needles_of(requests, resolved.people, declared))
    excepted = {request: datasets_of(places) for request, places in exceptions_of(ledger, requests).items()}
    # What is written while it is read cannot be told of: nobody here writes into the state until the search is over.
    ledger.database.close()
    places, untold = places_to_search(project, inventory, ledger)
    path_key = secrets.token_bytes(_KEY_BYTES)
    report = search(needles, places, spark=lambda: start_session(project), run=context, path_key=path_key)
    report = replace(report, untold=(*report.untold, *hidden(untold, needles, path_key)))
    context.step("reading hot tables")
    report = search_hot(project, open_state(project), needles, report)
    if not dry_run:
        ledger, _ = open_for_writing(project, context)
        record_search(
            ledger, requests, report, began=began, path_key=path_key, scanner=f"ebbtide {version('ebbtide')}",
            excepted=excepted, known=dict(zip(requests, resolved.people, strict=True)),
        )  # fmt: skip
        _say_found(project, ledger, requests, report, excepted)
    return [_told(request, report, excepted.get(request, frozenset())) for request in requests]


def _resolved(
    project: Project, inventory: Inventory, people: Sequence[Sequence[Identifier]], context: RunContext
) -> Resolved:
    """All identifiers of each person. Where a table of them cannot be read, nobody is told to be nowhere."""
    from ebbtide.app.scan import start_session
    from ebbtide.config.subjects import load_identities
    from ebbtide.erasure.identities import Resolved, resolve

    identities = load_identities(project.root)
    if not identities.tables:  # then no session is needed where little is to be read
        return Resolved(tuple(tuple(person) for person in people), ())
    found = resolve(start_session(project), project.catalogs, identities, inventory, people, context)
    if found.not_reachable:
        first = found.not_reachable[0]
        raise UnreadableError(
            first.place, f"{first.because}, and it knows further identifiers", hint="`ebbtide scan` says more"
        )
    return found


def needles_of(
    requests: Sequence[str], people: Sequence[Sequence[Identifier]], declared: Mapping[str, DeclaredIdentity]
) -> Iterator[Needle]:
    """What is searched for: every identifier of every person, in all types of its identity's columns, and in any where
    not all of these are known.
    """
    from ebbtide.verify.needles import Needle

    for request, person in zip(requests, people, strict=True):
        for one in person:
            if one.type not in declared:
                raise InputError(
                    f"subjects.yml has no identity {one.type!r} any more", hint="put it back: somebody asked by it"
                )
            identity = declared[one.type]
            types = frozenset("string" if type_ == "uuid" else type_ for type_ in identity.types_of(one.value))
            yield Needle(request, one.type, one.value, types, identity.subject.match)
            if identity.more:  # beside, and not among these: a text of digits is another text as a number
                yield Needle(request, one.type, one.value, _any_type_of(one.value), identity.subject.match)


def _any_type_of(value: str) -> frozenset[str]:
    """The types that may hold a value as it is spelled: 0042 and 12E4 are texts, and no numbers."""
    from ebbtide.erasure.values import form

    is_plain = set(value) <= set("-.0123456789")
    return frozenset(
        type_
        for type_ in _ANY_TYPE
        if type_ == "string" or ((is_plain or type_ not in _NUMBERS) and form(type_, value) == value)
    )


def places_to_search(project: Project, inventory: Inventory, ledger: Ledger) -> tuple[list[SearchPlace], list[Untold]]:
    """Everywhere that a person may lie: datasets, those that were dropped, whole warehouses, and our own stores; and
    what lies where nobody can look.
    """
    from ebbtide.erasure.copies import out_of_reach
    from ebbtide.verify.report import SearchPlace, Untold

    places: list[SearchPlace] = []
    untold = [
        Untold(
            error["table_id"] or error["catalog"],
            "it could not be read, and where its objects lie is not known",
            is_place=True,
        )
        for error in inventory.errors()
    ]
    for entry in inventory.current.entries.values():
        handle, catalog = inventory.found(entry.table_id), project.catalogs.get(entry.catalog)
        if catalog is None:
            untold.append(
                Untold(entry.table_id, "its catalog is in ebbtide.yml no more: it was not looked at", is_place=True)
            )
        if handle is not None and catalog is not None:
            places += [SearchPlace(entry.table_id, at, catalog.options, (catalog, handle)) for at in entry.places]
    for former in inventory.current.former:
        catalog = project.catalogs.get(former.table_id.partition(".")[0])
        options = catalog.options if catalog else {}
        if former.location and _is_there(former.location, options):
            places.append(SearchPlace(former.table_id, former.location, options))
    prefixes = [(catalog.warehouse, catalog.options) for catalog in project.catalogs.values() if catalog.warehouse]
    prefixes += [(each.prefix, {}) for each in project.warehouses]
    places += [SearchPlace(at, at, options) for at, options in prefixes]
    untold += [Untold(place, because, is_place=True) for place, because in out_of_reach(project.root)]
    if database_of(project).folder is None:
        untold.append(Untold("ebbtide:state", "it is on a server, whose files are not read here", is_place=True))
    places += _own_places(project, ledger)
    untold += [
        Untold(table, "it references files outside of all that was read: a clone, or files of others", is_place=True)
        for table in _referencing_others(inventory, places)
    ]
    return places, untold


def _referencing_others(inventory: Inventory, places: Sequence[SearchPlace]) -> list[str]:
    """The datasets with files that lie in no place that is searched."""
    inside = {normalise(place.prefix) for place in places}
    files = inventory.table("files").select(["table_id", "path"])
    folders = pc.replace_substring_regex(files["path"], "/[^/]*$", "")
    known = pa.table({"table": files["table_id"], "folder": folders}).group_by(["table", "folder"]).aggregate([])
    outside = {
        table
        for table, folder in zip(known["table"].to_pylist(), known["folder"].to_pylist(), strict=True)
        if not any(is_inside(normalise(folder), place) for place in inside)
    }
    return sorted(outside)


def _is_there(place: str, options: Mapping[str, str]) -> bool:
    """Whether anything lies there; what cannot be looked at counts as something, and is told by the search."""
    try:
        return open_store(place, options).stat(place) is not None
    except UnreadableError:
        return True


def _own_places(project: Project, ledger: Ledger) -> Iterator[SearchPlace]:
    """Inventory, state with the ledger and its attachments, keys, and the copies of checkpoints."""
    from ebbtide.verify.report import SearchPlace

    own = {
        "ebbtide:project": project.root / ".ebbtide", "ebbtide:keys": ledger.home.keys.path,
        "ebbtide:inventory": project.inventory, "ebbtide:checkpoints": ledger.home.checkpoint or ledger.home.folder,
    }  # fmt: skip
    file = database_of(project).file
    # The files that SQLite keeps beside its own. What else lies in that folder is not ours.
    beside = [] if file is None else [file.with_name(file.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
    for name, path in (*own.items(), *(("ebbtide:state", path) for path in beside)):
        if path.exists():
            yield SearchPlace(name, str(path))


def _say_found(
    project: Project,
    ledger: Ledger,
    requests: Sequence[str],
    report: SearchReport,
    excepted: Mapping[str, frozenset[str]],
) -> None:
    """Where a person was found, something is left to be done: the next run looks at these datasets, rows or not. Where
    files only wait for readers, that is known.
    """
    from ebbtide.config.hottier import colds_of_hot_tables
    from ebbtide.erasure.owner import DATASET, HOT
    from ebbtide.state.erasure import ErasurePlace, PlaceState, places_of, put_places

    counts: dict[tuple[str, str], int] = {}
    for each in report.found:
        if each.dataset is not None and each.dataset not in excepted.get(each.person, ()):
            counts[each.person, each.dataset] = counts.get((each.person, each.dataset), 0) + 1
    at, hot = ledger.clock.now(), colds_of_hot_tables(project.root)
    places = [
        ErasurePlace(
            request=request, place=dataset, kind=HOT if dataset in hot else DATASET, state=PlaceState.FOUND,
            because=f"a search found them {count} times", updated_at=at,
        )
        for (request, dataset), count in sorted(counts.items())
        if request in requests
    ]  # fmt: skip
    if not places:
        return
    with ledger.database.writer() as state:
        waiting = {
            (each.request, each.place)
            for each in places_of(state.connection, requests)
            if each.state is PlaceState.DELETED
        }
        put_places(state.connection, [each for each in places if (each.request, each.place) not in waiting])


def _told(request: str, report: SearchReport, excepted: frozenset[str]) -> dict[str, Any]:
    """What a search says of one person. What lies in a dataset that keeps it for a reason is told apart."""
    from ebbtide.verify.report import Grade

    found = report.found_of(request)
    left = [each for each in found if each.dataset in excepted]
    grade = report.grade(request)
    if grade is Grade.F and len(left) == len(found):
        grade = Grade.B
    return {
        "id": request,
        "grade": grade.value,
        "files": report.files,
        "bytes": report.bytes,
        "found": [_shown(each) for each in found if each.dataset not in excepted],
        "left": [_shown(each) for each in left],
        "cannot_tell": [{"path": path, "because": why} for path, why in report.cannot_tell_of(request)],
        "inventory": report.inventory.digest,
    }  # fmt: skip


def _shown(found: FoundValue) -> dict[str, Any]:
    return {
        "path": found.path, "role": found.role, "how": found.how, "where": found.where,
        "referenced_by": list(found.referenced_by),
    }  # fmt: skip


def write_certificate(
    project: Project,
    request: str,
    path: Path,
    *,
    opening: Path | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Certify a request that was verified, and write its certificate, with what opens it into a file of its own.

    The opening is written first: when a request is closed, its identifiers and their key are destroyed.
    """
    from ebbtide.erasure.certify import certificate_of, certify
    from ebbtide.erasure.exceptions import excepted, exceptions_of
    from ebbtide.erasure.filing import opening_of
    from ebbtide.state.values import NEXT_STATES, RequestState

    context = quiet(context, as_of=as_of)
    beside = opening or path.with_name("opening.json")
    ledger, _ = open_for_writing(project, context)
    with ledger.database.reader() as state:
        found = state.get_request(request)
    if RequestState.CERTIFIED not in NEXT_STATES[found.state]:
        certify(ledger, request)  # refuses, or it was done before
    content = None if found.sealed is None else opening_of(ledger, request).encode()
    for file in (path, *([beside] if content is not None else [])):
        if file.exists():
            raise InputError(f"{file} is there already", hint="name a new file: what it has is not written over")
    told = {"id": request, "state": found.state.value, "certificate": str(path), "opening": None}
    told["opening"] = None if content is None else str(beside)
    if dry_run:
        return told
    if content is not None:
        _write_private(beside, content)
    try:
        left = [excepted(place) for place in exceptions_of(ledger, [request]).get(request, [])]
        told["state"] = certify(ledger, request, left=left).state.value
    except BaseException:
        # Nothing was certified: the request still has what opens it.
        with suppress(OSError):
            if content is not None and _is_sealed(ledger, request):
                beside.unlink()
        raise
    _write(path, certificate_of(ledger, request))
    return told


def _is_sealed(ledger: Ledger, request: str) -> bool:
    with ledger.database.reader() as state:
        return state.get_request(request).sealed is not None


def _write_private(path: Path, content: bytes) -> None:
    """For its owner's eyes only from the first byte on, and on the disk before anything is destroyed."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RefusedError(
            f"{path} cannot be written: {error.strerror}; nothing was certified", hint="name another with --opening"
        ) from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}", hint="the request is certified: ask for its file again"
        ) from None
