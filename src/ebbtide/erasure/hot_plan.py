"""What a plan of an erasure knows of hot tables, and of the cold ones that their mirrors write (spec §4, §6).

1. What keeps an erasure from a cold table keeps it from its hot one: what leaves the one leaves the other.
2. Rows leave the hot table first, then its mirror applies that, then the lake's own erasure looks for what is left: the
   other way round, a merge would bring the person back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure.hot import HotPlace, HotSearch
from ebbtide.erasure.owner import HOT
from ebbtide.erasure.plan import DatasetFacts
from ebbtide.formats.erasing import Fate, ForeseenVersion
from ebbtide.hottier.columns import ServerColumn
from ebbtide.plan.held_back import HeldBack
from ebbtide.state.erasure import OPEN, ErasurePlace
from ebbtide.state.hottier import HotRecord, MirrorState
from ebbtide.state.values import Hold

_STOPS = (MirrorState.DEGRADED, MirrorState.STOPPED)


@dataclass(frozen=True, slots=True)
class HotLook:
    """Hot tables in one look: places, what was found there, what keeps each from an erasure, and its terms."""

    places: tuple[HotPlace, ...]
    search: HotSearch
    back: Mapping[str, HeldBack]
    terms: Mapping[str, ErasureTerms]

    def place(self, name: str) -> HotPlace:
        return next(each for each in self.places if each.name == name)


def look_of(
    places: Iterable[HotPlace],
    search: HotSearch,
    back: Mapping[str, HeldBack],
    terms: Mapping[str, ErasureTerms],
    holds: Collection[Hold],
) -> HotLook:
    """Holds and floors are those of the cold table, and of the hot one itself; so are the terms."""
    kept, said = dict[str, HeldBack](), dict[str, ErasureTerms]()
    own = tuple(places)
    for place in own:
        cold = place.table.cold or ""
        named = (place.name, cold)
        on_it = [f"hold {hold.id}" for hold in holds if hold.dataset in named]
        # On people, who were looked up in both.
        on_it += [text for name in named if name in back for text in back[name].holds]
        statutes = back[cold].statutes if cold in back else ()
        kept[place.name] = HeldBack(holds=tuple(dict.fromkeys(on_it)), statutes=statutes)
        said[place.name] = terms.get(cold, ErasureTerms())
    return HotLook(own, search, kept, said)


def hot_facts(look: HotLook, requests: Sequence[str], stated: Sequence[ErasurePlace]) -> list[DatasetFacts]:
    """What is known of each hot table that holds somebody, or in which an earlier run did not end. `requests` are in
    the order of their people.
    """
    open_there = {(each.request, each.place) for each in stated if each.kind == HOT and each.state in OPEN}
    found = []
    for place in look.places:
        here = {requests[n] for n in look.search.people_in(place.name)}
        here |= {request for request, name in open_there if name == place.name}
        if place.name not in look.search.columns:
            continue  # nobody could ask: it is told as a place that failed
        refs = {held.ref for some in look.search.held.values() for held in some if held.dataset == place.name}
        terms = look.terms[place.name]
        found.append(
            DatasetFacts(
                dataset=place.name, kind=HOT, back=look.back[place.name], terms=terms,
                rows=look.search.counts.get(place.name),
                foreseen={ref: ForeseenVersion(Fate.REWRITTEN) for ref in refs}, traced=frozenset(here),
                cannot=_no_redaction(place, terms, look.search.columns[place.name]),
            )
        )  # fmt: skip
    return found


def _no_redaction(place: HotPlace, terms: ErasureTerms, columns: Sequence[ServerColumn]) -> str | None:
    """Why what is to be redacted there would erase nobody, or would be refused."""
    if terms.method != "redact":
        return None
    known = {column.name: column for column in columns}
    if unknown := sorted(terms.redact.keys() - known.keys()):
        return f"its redaction names {', '.join(map(repr, unknown))}, and it has no such column"
    if left := sorted(place.columns.keys() - terms.redact.keys()):
        return f"its redaction leaves {', '.join(map(repr, left))}, which tells people apart: replace it too"
    if kept := sorted(n for n, put in terms.redact.items() if put is None and (known[n].key or known[n].required)):
        return f"its redaction empties {', '.join(map(repr, kept))}, which may not be empty"
    return None


def behind(search: HotSearch, records: Mapping[str, HotRecord], said: Mapping[str, str]) -> dict[str, str]:
    """By cold table, why what its mirror has not applied yet could bring people back: nothing is erased there before.
    `said` are hot tables whose mirror could not be brought up in this run, each with why. It goes by what was added, of
    either kind of mirror: where a file or a server cannot be read, the search has no place for its table.
    """
    failed = {each.place: each.because for each in search.missed if each.failed}
    found: dict[str, str] = {}
    for name, record in records.items():
        if record.cold is None:
            continue
        because = said.get(name) or failed.get(name)
        if because is None and record.state in _STOPS:
            because = f"it is {record.state}: {record.because}"
        if because is not None:
            found[record.cold] = f"the mirror of {name}, which may bring people back: {because}"
    return found


def waiting(
    facts: Iterable[DatasetFacts], because: Mapping[str, str], look: HotLook, stated: Sequence[ErasurePlace]
) -> list[DatasetFacts]:
    """The same, with what waits for a mirror; a cold table, too, in which nobody is yet who was in the hot one."""
    found = [replace(each, trouble=because[each.dataset]) if each.dataset in because else each for each in facts]
    known = {each.dataset for each in found}
    for place in look.places:
        cold = place.table.cold or ""
        was = frozenset(each.request for each in stated if (each.kind, each.place) == (HOT, place.name))
        if cold in because and cold not in known and was:
            found.append(DatasetFacts(dataset=cold, trouble=because[cold], traced=was))
    return found
