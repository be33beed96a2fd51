"""State and entries, held against each other both ways (spec §5).

What people ordered and what is scheduled lies in rows that plans and sweeps believe; every change of one is an entry of
the same transaction. So each row must be what its entries say, and each entry must have its row: a hold that is gone
from the state, a mark that nobody made, a request whose deadline moved. What stands in the ledger in a keyed form
only is compared by that form, and findings name rows by their ids.

A row from before a pruning may have lost its entries to it, and is compared with those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from ebbtide.errors import EbbtideError
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import (
    BodiesPruned,
    CatalogDeclared,
    DatasetIgnored,
    FolderCondemned,
    HoldPlaced,
    HoldReleased,
    Intent,
    Marked,
    MarkRebound,
    MarkSentBack,
    Outcome,
    Unmarked,
    UnmarkReleased,
    parse_entry,
    salted,
)
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.recompute import Mismatch
from ebbtide.ledger.request_entries import RequestBatch, RequestCertified, RequestMoved, RequestReceived, Verified
from ebbtide.ledger.request_index import leaves_of
from ebbtide.state.reader import StateReader
from ebbtide.state.values import (
    Condemnation,
    Declaration,
    Hold,
    Mark,
    MarkState,
    Request,
    RequestState,
    Salt,
    Unmark,
    after_search,
)

_RowT = TypeVar("_RowT", Hold, Unmark, Mark, Request, Condemnation, Declaration)
_Differs = Iterator[tuple[str, bool]]
"""What is compared, and whether it is what the entries say."""

_RESTORE = "bring back the newest copy of the state"
_RELEASE = "someone wrote it past Ebbtide: release it, and order it again if it is wanted"
_UNMARK = "someone wrote it past Ebbtide: `unmark` the object, look at it, and release it"
_BEGINS = (RequestState.RECEIVED, RequestState.IDENTITY_PENDING)
_AGAIN = "someone wrote past Ebbtide: set it right by the verb that made it"


@dataclass(slots=True)
class _Story:
    """The entries about one row: what made it, and what ended or moved it, with their indexes."""

    made: Entry | None = None
    index: int = -1
    later: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class _LedgerSays:
    """What the entries tell, by kind of row and its id."""

    holds: dict[str, _Story] = field(default_factory=dict)
    unmarks: dict[str, _Story] = field(default_factory=dict)
    marks: dict[str, _Story] = field(default_factory=dict)
    requests: dict[str, _Story] = field(default_factory=dict)
    condemned: dict[str, _Story] = field(default_factory=dict)
    declared: dict[str, _Story] = field(default_factory=dict)
    outcomes: dict[str, datetime] = field(default_factory=dict)
    pruned_before: datetime | None = None

    def add(self, index: int, entry: Entry) -> None:
        match entry:
            case HoldPlaced(hold=id_):
                _made(self.holds, id_, index, entry)
            case HoldReleased(hold=id_):
                _later(self.holds, id_, entry)
            case Unmarked(unmark=id_, marks=marks):
                _made(self.unmarks, id_, index, entry)
                for mark in marks:
                    _later(self.marks, mark, entry)
            case UnmarkReleased(unmark=id_):
                _later(self.unmarks, id_, entry)
            case Marked(mark=id_):
                _made(self.marks, id_, index, entry)
            case MarkSentBack(mark=id_) | MarkRebound(mark=id_):
                _later(self.marks, id_, entry)
            case Intent(marks=marks):
                for mark in marks:
                    _later(self.marks, mark, entry)
            case Outcome(act=act, at=at):
                self.outcomes[act] = at
            case BodiesPruned(before=before):
                self.pruned_before = max(before, self.pruned_before or before)
            case _:
                self._add_other(index, entry)

    def _add_other(self, index: int, entry: Entry) -> None:
        """Requests, condemned folders and what the project file declares."""
        match entry:
            case RequestReceived(request=id_):
                _made(self.requests, id_, index, entry)
            case RequestMoved(request=id_) | RequestCertified(request=id_):
                _later(self.requests, id_, entry)
            case Verified(request=id_) if id_ in self.requests:
                _later(self.requests, id_, entry)
            case FolderCondemned(condemned=id_, path=path):
                # Condemned again, the new word counts, and has the row.
                for old in [old for old, story in self.condemned.items() if _path(story) == path]:
                    del self.condemned[old]
                _made(self.condemned, id_, index, entry)
            case CatalogDeclared(declaration=id_, ended=True) | DatasetIgnored(declaration=id_, ended=True):
                _later(self.declared, id_, entry)
            case CatalogDeclared(declaration=id_) | DatasetIgnored(declaration=id_):
                _made(self.declared, id_, index, entry)

    def may_be_pruned(self, moment: datetime | None) -> bool:
        """Whether an entry of that time may have been pruned."""
        return moment is not None and self.pruned_before is not None and moment < self.pruned_before


def compare_state(state: StateReader, log: LedgerLog) -> Iterator[Mismatch]:
    """Every row against its entries, every entry against its row. Entries that cannot be read are found elsewhere."""
    told = _LedgerSays()
    for index, _, body in log.rows(0, log.size):
        entry = _parsed(body)
        if isinstance(entry, RequestBatch):
            for leaf in leaves_of(state.connection, index):
                if (said := _parsed(leaf.leaf)) is not None:
                    told.add(index, said)
        elif entry is not None:
            told.add(index, entry)
    try:
        salts = {each.dataset: each.salt for each in state.condemned()}
        rows = (
            *_both(told, "hold", told.holds, state.holds(only_active=False), _hold, _RELEASE, salts),
            *_both(told, "unmark", told.unmarks, state.unmarks(), _unmark, _RELEASE, salts),
            *_both(told, "mark", told.marks, state.marks(only_open=False), _mark, _UNMARK, salts),
            *_both(told, "request", told.requests, state.requests(), _request, _RESTORE, salts),
            *_both(told, "condemned folder", told.condemned, state.condemned(), _condemned, _RESTORE, salts),
            *_both(
                told, "declaration", told.declared, state.declarations(only_active=False), _declared, _RESTORE, salts
            ),
        )
    except (EbbtideError, ValueError, TypeError) as error:  # its text may hold the value
        yield Mismatch("rows of the state", "rows that can be read", f"{type(error).__name__}: {_RESTORE}")
        return
    yield from rows


def _both(
    told: _LedgerSays,
    what: str,
    stories: Mapping[str, _Story],
    rows: Iterable[_RowT],
    compare: Callable[[_LedgerSays, _RowT, _Story, Mapping[str, Salt]], _Differs],
    remedy: str,
    salts: Mapping[str, Salt],
) -> Iterator[Mismatch]:
    found = {row.id: row for row in rows}
    for id_ in sorted(stories.keys() - found.keys()):
        by = f"entry {stories[id_].index}" if stories[id_].made is not None else "an entry"
        yield Mismatch(f"{what} {id_}", f"a row, for {by} tells of it", f"none: {_RESTORE}")
    for id_, row in found.items():
        story = stories.get(id_, _Story())
        if story.made is None and not told.may_be_pruned(_made_at(row)):
            yield Mismatch(f"{what} {id_}", "an entry that made it", f"none: {remedy}")
            continue
        wrong = [name for name, same in compare(told, row, story, salts) if not same]
        if wrong:
            said = f"entry {story.index} and later ones say" if story.made is not None else "its entries say"
            yield Mismatch(f"{what} {id_}", f"{', '.join(wrong)} as {said}", f"something else: {_AGAIN}")


def _hold(told: _LedgerSays, row: Hold, story: _Story, salts: Mapping[str, Salt]) -> _Differs:
    if isinstance(made := story.made, HoldPlaced):
        yield "time", row.created_at == made.at
        yield "scope", str(row.scope) == made.scope
        yield "dataset", _same_dataset(row.dataset, made.dataset, salts)
        yield "days", (row.first_day, row.last_day) == (made.first_day, made.last_day)
        yield "commitments", row.commitments == made.commitments
        yield "owner", row.owner == made.owner
        yield "reason", _same(row.salt, row.reason, made.reason)
    yield "release", _ended(told, story, (row.released_at, row.released_by))


def _unmark(told: _LedgerSays, row: Unmark, story: _Story, salts: Mapping[str, Salt]) -> _Differs:
    if isinstance(made := story.made, Unmarked):
        yield "time", row.created_at == made.at
        yield "dataset", _same_dataset(row.dataset, made.dataset, salts)
        yield "object", _same(row.salt, row.object, made.object)
        yield "actor", row.actor == made.actor
        yield "reason", _same(row.salt, row.reason, made.reason)
        yield "until", row.until == made.until
    yield "release", _ended(told, story, (row.released_at, row.released_by))


def _declared(told: _LedgerSays, row: Declaration, story: _Story, salts: Mapping[str, Salt]) -> _Differs:  # noqa: ARG001
    match story.made:
        case CatalogDeclared() as made:
            yield "name", (row.kind, row.name) == ("catalog", made.catalog)
            yield "actor", row.actor == made.actor
            yield "time", row.declared_at == made.at
        case DatasetIgnored() as made:
            yield "name", (row.kind, row.name) == ("dataset", made.dataset)
            yield "actor", row.actor == made.actor
            yield "time", row.declared_at == made.at
            yield "reason", _same(row.salt, row.reason, made.reason)
            yield "until", row.until == made.until
    yield "end", _ended(told, story, (row.ended_at, row.ended_by))


def _condemned(told: _LedgerSays, row: Condemnation, story: _Story, salts: Mapping[str, Salt]) -> _Differs:  # noqa: ARG001
    if isinstance(made := story.made, FolderCondemned):
        yield "time", row.condemned_at == made.at
        yield "path", _same(row.salt, row.path, made.path)
        yield "dataset", _same_dataset(row.dataset, made.dataset, salts)
        yield "actor", row.actor == made.actor


def _mark(told: _LedgerSays, row: Mark, story: _Story, salts: Mapping[str, Salt]) -> _Differs:
    if isinstance(made := story.made, Marked):
        yield "time", row.marked_at == made.at
        yield "run", row.run == made.run
        yield "dataset", _same_dataset(row.key.dataset, made.dataset, salts)
        yield "target", row.key.target == made.target
        yield "object", _same(row.salt, row.key.object, made.object)
        yield "policy", row.policy == made.policy
        yield "because", _same(row.salt, row.because, made.because)
        seen = [entry.fingerprint for entry in story.later if isinstance(entry, MarkRebound)]
        yield "fingerprint", _same(row.salt, row.fingerprint, seen[-1] if seen else made.fingerprint)
        yield "grace", row.grace_until == made.grace_until
    acts = [entry.act for entry in story.later if isinstance(entry, Intent)]
    yield "act", row.act == acts[-1] if acts else row.act is None or told.may_be_pruned(row.closed_at)
    yield "state", _closed(told, row, story)


def _closed(told: _LedgerSays, row: Mark, story: _Story) -> bool:
    """Whether a mark ended as its entries say, or is open because none says that it ended."""
    ends = [entry for entry in story.later if isinstance(entry, MarkSentBack | Unmarked)]
    if ends:
        because = ends[-1].because if isinstance(ends[-1], MarkSentBack) else None
        same = because is None or _same(row.salt, row.closed_because or "", because)
        return (row.state, row.closed_at) == (MarkState.UNMARKED, ends[-1].at) and same
    if row.state is MarkState.SWEPT:
        return told.outcomes.get(row.act or "") == row.closed_at or told.may_be_pruned(row.closed_at)
    if row.state is MarkState.UNMARKED:
        return told.may_be_pruned(row.closed_at)
    # Of a sweep that died the next one writes the outcome, and begins on the marks only later.
    return row.state is MarkState.SWEEPING or row.act is None or row.act in told.outcomes


def _request(told: _LedgerSays, row: Request, story: _Story, salts: Mapping[str, Salt]) -> _Differs:  # noqa: ARG001
    if isinstance(made := story.made, RequestReceived):
        yield "law", row.law == made.law
        yield "commitments", row.commitments == made.commitments
        yield "times", (row.received_at, row.due_at) == (made.received_at, made.due_at)
    states = _states(story)
    if (states is not None and story.later) or not told.may_be_pruned(row.updated_at):
        yield "state", row.state in (states or _BEGINS)
    deadlines = [entry.deadline for entry in story.later if isinstance(entry, RequestMoved) and entry.deadline]
    if deadlines or not told.may_be_pruned(row.updated_at):
        yield "deadline", row.extended_to == (deadlines[-1] if deadlines else None)


def _states(story: _Story) -> Collection[str] | None:
    """Where a request may be by its entries; None where the earlier ones are gone and the later ones do not say."""
    states: Collection[str] | None = _BEGINS if story.made is not None else None
    for entry in story.later:
        if isinstance(entry, RequestMoved | RequestCertified):
            states = (entry.state,)
        elif isinstance(entry, Verified) and states is not None:
            states = {str(after_search(state, found=entry.found > 0)) for state in RequestState if state in states}
    return states


def _parsed(body: object) -> Entry | None:
    """An entry; None where its body is gone, or cannot be read, which is found elsewhere."""
    try:
        return parse_entry(body) if isinstance(body, bytes) else None
    except EbbtideError:
        return None


def _ended(told: _LedgerSays, story: _Story, row: tuple[datetime | None, str | None]) -> bool:
    """Whether a row ended when and by whom its entries say."""
    for entry in story.later:
        if isinstance(entry, HoldReleased | UnmarkReleased | CatalogDeclared | DatasetIgnored):
            return row == (entry.at, entry.actor)
    return row == (None, None) or told.may_be_pruned(row[0])


def _same(salt: Salt, plain: str, said: str) -> bool:
    """Whether a text of the state is the one that an entry holds, in its keyed form or in clear."""
    return said in (salted(salt, plain), plain)


def _same_dataset(plain: str | None, said: str | None, salts: Mapping[str, Salt]) -> bool:
    """A dataset that was made of a condemned path has a keyed name, by the salt of the folder."""
    return plain == said or (plain is not None and any(salted(salt, plain) == said for salt in salts.values()))


def _made_at(row: Hold | Unmark | Mark | Request | Condemnation | Declaration) -> datetime:
    match row:
        case Hold(created_at=at) | Unmark(created_at=at) | Mark(marked_at=at):
            return at
        case Condemnation(condemned_at=at) | Declaration(declared_at=at) | Request(received_at=at):
            return at


def _made(stories: dict[str, _Story], id_: str, index: int, entry: Entry) -> None:
    story = stories.setdefault(id_, _Story())
    story.made, story.index = entry, index


def _later(stories: dict[str, _Story], id_: str, entry: Entry) -> None:
    stories.setdefault(id_, _Story()).later.append(entry)


def _path(story: _Story) -> str | None:
    return story.made.path if isinstance(story.made, FolderCondemned) else None
