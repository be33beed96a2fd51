"""What becomes of each place of a request, and erasures that let go of files which are not gone yet.

A place is a dataset, a copy of one, or what the project declares beside its catalogs. Nothing here names a person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from ebbtide.state import act_files
from ebbtide.state.bulk import insert_rows
from ebbtide.state.tables import erasure_act_requests, erasure_acts, erasure_places

_PAGE = 5000


class PlaceState(StrEnum):
    """How a place of a request stands. The first five are open: something is still to be done there."""

    PENDING = "pending"
    FOUND = "found"
    """A search found something there that no row says: traces in metadata, versions or old files."""
    WAITING = "waiting"
    FAILED = "failed"
    DELETED = "deleted"
    """No reader sees the person any more; bytes of files that were replaced are still there."""
    REMOVED = "removed"
    REDACTED = "redacted"
    SHREDDED = "shredded"
    RETAINED = "retained"
    EXPIRES = "expires"
    HELD = "held"
    NOT_REACHABLE = "not reachable"


OPEN = frozenset(
    {PlaceState.PENDING, PlaceState.FOUND, PlaceState.WAITING, PlaceState.FAILED, PlaceState.DELETED}
)  # fmt: skip
UNTOUCHED = OPEN - {PlaceState.DELETED}
EXCEPTIONS = frozenset({PlaceState.RETAINED, PlaceState.EXPIRES, PlaceState.HELD, PlaceState.NOT_REACHABLE})
"""How a place may end that is no clean one (spec §4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlace:
    """One place of one request: how it stands and why, and until when something is left there."""

    request: str
    place: str
    kind: str
    state: PlaceState
    because: str
    updated_at: datetime
    until: date | None = None
    act: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenErasure:
    """An act whose files are not gone yet. Before `free_from` readers in flight may need them."""

    act: str
    dataset: str
    requests: frozenset[str]
    free_from: datetime
    files: Mapping[str, int]


def put_places(connection: Connection, places: Sequence[ErasurePlace]) -> None:
    """Say how these places stand, in place of what was said of them."""
    by_request: dict[str, list[str]] = {}
    for place in places:
        by_request.setdefault(place.request, []).append(place.place)
    table = erasure_places.c
    for request, names in by_request.items():
        connection.execute(delete(erasure_places).where(table.request == request, table.place.in_(names)))
    if places:
        connection.execute(insert(erasure_places), [{**asdict(place), "state": str(place.state)} for place in places])


def places_of(connection: Connection, requests: Collection[str]) -> list[ErasurePlace]:
    """The places of these requests, by name."""
    wanted, found = sorted(requests), list[ErasurePlace]()
    for start in range(0, len(wanted), _PAGE):
        query = select(erasure_places).where(erasure_places.c.request.in_(wanted[start : start + _PAGE]))
        rows = connection.execute(query.order_by(erasure_places.c.request, erasure_places.c.place)).mappings()
        found += [ErasurePlace(**{**row, "state": PlaceState(row["state"])}) for row in rows]
    return found


def drop_kinds(connection: Connection, requests: Iterable[str], kinds: Collection[str]) -> None:
    """Forget the places of these kinds."""
    wanted, table = sorted(requests), erasure_places.c
    for start in range(0, len(wanted), _PAGE):
        some = table.request.in_(wanted[start : start + _PAGE])
        connection.execute(delete(erasure_places).where(some, table.kind.in_(sorted(kinds))))


def forget_places(connection: Connection, requests: Iterable[str]) -> None:
    """These requests are closed: the ledger says what became of them."""
    rows = sorted(requests)
    for start in range(0, len(rows), _PAGE):
        some = rows[start : start + _PAGE]
        connection.execute(delete(erasure_places).where(erasure_places.c.request.in_(some)))


def open_erasure(
    connection: Connection, act: str, dataset: str, requests: Collection[str], *, free_from: datetime
) -> None:
    """An act for these requests lets go of files that stay until then."""
    connection.execute(insert(erasure_acts), [{"act": act, "dataset": dataset, "free_from": free_from}])
    insert_rows(connection, erasure_act_requests, [(act, request) for request in sorted(requests)])


def put_off(connection: Connection, act: str, *, free_from: datetime, erased: str) -> None:
    """It let go of more files, which readers may need for longer; `erased` is what its format said of that."""
    mine = erasure_acts.c.act == act
    connection.execute(update(erasure_acts).where(mine).values(free_from=free_from, erased=erased))


def erased_by(connection: Connection, act: str) -> str | None:
    """What came of an act so far; None where it ended before anything did, or began before that was kept."""
    return connection.execute(select(erasure_acts.c.erased).where(erasure_acts.c.act == act)).scalar()


def move_erasure(connection: Connection, act: str, dataset: str) -> None:
    """Its dataset is called otherwise now."""
    connection.execute(update(erasure_acts).where(erasure_acts.c.act == act).values(dataset=dataset))


def add_files(connection: Connection, act: str, files: Mapping[str, int]) -> None:
    """A further commit of an act lets go of these, too."""
    act_files.keep(connection, act, {**act_files.load(connection, act), **files})


def keep_files(connection: Connection, act: str, files: Mapping[str, int]) -> None:
    """These are what is left of an act."""
    act_files.keep(connection, act, files)


def close_erasure(connection: Connection, acts: Iterable[str]) -> None:
    """None of their files is left, or a later act has taken them over."""
    for act in acts:
        connection.execute(delete(erasure_act_requests).where(erasure_act_requests.c.act == act))
        connection.execute(delete(erasure_acts).where(erasure_acts.c.act == act))


def open_erasures(connection: Connection) -> list[OpenErasure]:
    """All acts whose files are not gone yet, oldest first."""
    query = select(erasure_acts).order_by(erasure_acts.c.free_from, erasure_acts.c.act)
    whose: dict[str, set[str]] = {}
    for act, request in connection.execute(select(erasure_act_requests)):
        whose.setdefault(act, set()).add(request)
    return [
        OpenErasure(
            act=row["act"], dataset=row["dataset"], requests=frozenset(whose.get(row["act"], ())),
            free_from=row["free_from"],
            files=act_files.load(connection, row["act"]),
        )
        for row in connection.execute(query).mappings()
    ]  # fmt: skip
