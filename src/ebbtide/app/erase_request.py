"""`ebbtide erase request|list|status`: file requests, and say how they stand (spec §4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.config.laws import law_of
from ebbtide.config.subjects import Identities, load_identities
from ebbtide.errors import InputError
from ebbtide.model.times import as_text
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.erasure.subjects import RefusedLine
    from ebbtide.erasure.values import DeclaredIdentity
    from ebbtide.inventory.information_schema import Inventory
    from ebbtide.ledger.commitment import Identifier
    from ebbtide.state.values import Request

Values = Mapping[str, str | Sequence[str]]
"""What is known of one person: values by identity."""


@dataclass(frozen=True, slots=True)
class FiledRequests:
    """The requests of the people who were read, in their order; `known` of them had one before. `bad` lines filed
    nothing. Where it is only tried, `requests` is empty, and `would_file` counts.
    """

    requests: tuple[str, ...]
    known: int
    bad: tuple[RefusedLine, ...]
    would_file: int | None = None


def declared_in(project: Project) -> tuple[Identities, Inventory, Mapping[str, DeclaredIdentity]]:
    """The identities of a project, with the types that the last scan saw."""
    from ebbtide.erasure.subjects import declared_identities
    from ebbtide.inventory.information_schema import Inventory

    identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
    return identities, inventory, declared_identities(identities, inventory)


def one_person(values: Values, declared: Mapping[str, DeclaredIdentity]) -> tuple[Identifier, ...]:
    """The identifiers of one person, checked."""
    from ebbtide.erasure.subjects import person_of

    pairs = ((name, each) for name, said in values.items() for each in ([said] if isinstance(said, str) else said))
    return person_of(pairs, declared)


def file_request(
    project: Project,
    values: Values,
    *,
    law: str,
    received: datetime | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> FiledRequests:
    """File a request for one person. Who has an open one gets no second: it is named again."""
    *_, declared = declared_in(project)
    person = one_person(values, declared)
    return _file(project, [person], law=law, received=received, dry_run=dry_run, context=quiet(context, as_of=as_of))


def file_requests_from(
    project: Project,
    path: Path,
    *,
    law: str,
    received: datetime | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> FiledRequests:
    """File a request for everybody in a file. Lines that are wrong are told by their numbers, and the rest goes on."""
    from dataclasses import replace

    from ebbtide.erasure.subjects import PeopleFile

    *_, declared = declared_in(project)
    file = PeopleFile(path, declared)
    done = _file(
        project, file.people(), law=law, received=received, dry_run=dry_run, context=quiet(context, as_of=as_of)
    )
    return replace(done, bad=tuple(file.bad))


def _file(
    project: Project,
    people: Iterable[tuple[Identifier, ...]],
    *,
    law: str,
    received: datetime | None,
    dry_run: bool,
    context: RunContext,
) -> FiledRequests:
    from ebbtide.erasure.filing import Person, file_requests

    clock, found = law_of(project.root, law), None
    ledger, now = open_for_writing(project, context)
    if received is not None and received > now:
        raise InputError("a request that is received in the future", hint="give the day on which it came in")
    if dry_run:
        context.step("read people", unit="people")
        found = 0
        for _ in people:
            found += 1
            context.advance()
        return FiledRequests((), 0, (), found)
    filed = file_requests(
        ledger, (Person(person) for person in people), law=clock, received_at=received or now, run=context
    )
    return FiledRequests(filed.requests, len(filed.known), ())


def list_requests(project: Project, *, only_open: bool = False) -> list[dict[str, Any]]:
    """Every request, the one that is due first at the top; nobody is named."""
    with open_state(project).reader() as state:
        found = state.requests(only_open=only_open)
    return [told_of(request) for request in sorted(found, key=lambda one: (one.closed_at is not None, one.deadline))]


def told_of(request: Request) -> dict[str, Any]:
    """A request as it is listed."""
    return {
        "id": request.id,
        "law": request.law,
        "state": request.state.value,
        "received_at": as_text(request.received_at),
        "deadline": as_text(request.deadline),
        "closed_at": None if request.closed_at is None else as_text(request.closed_at),
    }
