"""What an erasure would do: a pure function of what was found, who asked, and what holds it back (spec §4, "Plan").

Highest first: a hold, a statutory floor, the request, retention. What keeps one place never stops the others, and every
place has a decision with its reason. The same input is the same plan, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure.copies import CopyStep
from ebbtide.erasure.costs import BytesEnd, Schedule, StoreCalls, day_after, ends_after, files_of, latest, shown_by
from ebbtide.erasure.found import Held, TableHits
from ebbtide.erasure.places import NotReachable
from ebbtide.formats.erasing import Fate, ForeseenVersion, VersionFate
from ebbtide.model.times import as_text
from ebbtide.plan.held_back import HeldBack

FEW_ROWS = 1000
"""A request that matches no more rows of a table than these is never too much."""

NOT_AWAITED = "its cool-off was not waited for"
DAILY = Schedule(timedelta(days=1), timedelta(hours=1))
"""How runs come where a project says nothing."""


class Decision(StrEnum):
    """What becomes of a dataset in this run."""

    ERASE = "erase"
    KEEP = "keep"
    HELD = "held"
    WAIT = "wait"
    CANNOT = "cannot"
    """Nobody has a reason to keep it; its format erases nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request that is asked for. `number` is that of its person in the search."""

    id: str
    number: int
    due_at: datetime
    ready_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """What is known of a dataset, or a hot table (its `kind`), that may hold somebody. `cannot` is why nobody can be
    erased from it, `busy` why nothing of it can begin before an earlier act went on (at `free_from`), `trouble` why
    nobody can tell what would become of it. `shared` are datasets that reference files in which somebody was found, and
    that nobody of this batch is erased from; `traced` are requests of which a search found something there that no row
    says.
    """

    dataset: str
    back: HeldBack = field(default_factory=HeldBack)
    terms: ErasureTerms = field(default_factory=ErasureTerms)
    hits: TableHits | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    foreseen: Mapping[str, ForeseenVersion] = field(default_factory=dict)
    cannot: str | None = None
    busy: str | None = None
    trouble: str | None = None
    shared: tuple[str, ...] = ()
    traced: frozenset[str] = frozenset()
    free_from: datetime | None = None
    kind: str = "dataset"


@dataclass(frozen=True, slots=True)
class RefStep:
    """A branch, tag or version that holds somebody: rows of all of them, their data files, and what becomes of it."""

    ref: str
    rows: int
    fate: Fate
    because: str | None = None
    files: int = 0
    bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "ref": self.ref, "rows": self.rows, "fate": str(self.fate), "because": self.because, "files": self.files,
            "bytes": self.bytes,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceStep:
    """A dataset: what is decided, why, for whom, and what it costs. Bytes written are an upper bound. `store` and
    `ends` are estimates, and no part of what a digest is of.
    """

    dataset: str
    decision: Decision
    method: str
    because: str
    requests: tuple[str, ...]
    refs: tuple[RefStep, ...] = ()
    files: int = 0
    bytes_read: int = 0
    waits_for: tuple[str, ...] = ()
    until: date | None = None
    history: VersionFate = VersionFate.REWRITE
    left: bool = False
    """Whether a person has to see to it: what it waits for ends by no time, or its format erases nobody."""
    store: StoreCalls
    ends: BytesEnd
    kind: str = "dataset"

    def to_dict(self) -> dict[str, Any]:
        return {**self.decided(), "store_requests": self.store.to_dict(), "ends": self.ends.to_dict()}

    def decided(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset, "kind": self.kind,
            "decision": str(self.decision), "method": self.method, "because": self.because,
            "waits_for": list(self.waits_for), "until": None if self.until is None else self.until.isoformat(),
            "history": str(self.history), "requests": list(self.requests), "files": self.files,
            "bytes": {"read": self.bytes_read, "written": self.bytes_read},
            "refs": [each.to_dict() for each in self.refs],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request: whether it goes on now, and why not. `early` where somebody passed its cool-off. `ends` is an
    estimate, of its last place; None where it has none.
    """

    id: str
    decision: str
    because: str
    deadline: datetime
    early: bool = False
    ends: BytesEnd | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.decided(), "ends": None if self.ends is None else self.ends.to_dict()}

    def decided(self) -> dict[str, Any]:
        return {
            "id": self.id, "decision": self.decision, "because": self.because, "deadline": as_text(self.deadline)
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Everything that a run would do, and everything that it would not, each with why."""

    as_of: datetime
    requests: tuple[PlannedRequest, ...]
    places: tuple[PlaceStep, ...]
    not_reachable: tuple[NotReachable, ...]
    copies: tuple[CopyStep, ...] = ()

    def with_copies(self, copies: tuple[CopyStep, ...]) -> ErasurePlan:
        """The same with copies, which end later than what they were made of, or by no time that is known."""
        ends: dict[str, list[BytesEnd]] = {each.id: [each.ends] for each in self.requests if each.ends is not None}
        for copy in copies:
            for request in copy.requests:
                ends.setdefault(request, []).append(
                    BytesEnd(None if copy.until is None else day_after(copy.until), copy.because)
                )
        told = tuple(replace(each, ends=latest(ends.get(each.id, ()))) for each in self.requests)
        return replace(self, requests=told, copies=copies)

    @property
    def over(self) -> tuple[PlannedRequest, ...]:
        """Requests that a limit leaves out."""
        return tuple(each for each in self.requests if each.decision == "refused")

    @property
    def failed(self) -> tuple[str, ...]:
        """Places that did not answer: who tries again may reach them."""
        return tuple(sorted({each.place for each in self.not_reachable if each.failed}))

    @property
    def digest(self) -> str:
        """Of what is decided and found; what is only estimated may be told better without another plan."""
        content = json.dumps(self._content(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"

    def to_dict(self) -> dict[str, Any]:
        estimated = {
            "requests": [each.to_dict() for each in self.requests],
            "places": [each.to_dict() for each in self.places],
        }
        return {"digest": self.digest, **self._content(), **estimated, "failed": list(self.failed)}

    def _content(self) -> dict[str, Any]:
        return {
            "as_of": as_text(self.as_of),
            "requests": [each.decided() for each in self.requests],
            "places": [each.decided() for each in self.places],
            "copies": [each.to_dict() for each in self.copies],
            "not_reachable": [{"place": each.place, "because": each.because} for each in self.not_reachable],
        }


def plan_erasure(
    asking: Sequence[Asking],
    held: Mapping[int, Sequence[Held]],
    facts: Iterable[DatasetFacts],
    not_reachable: Sequence[NotReachable] = (),
    *,
    now: datetime,
    at_once: bool = False,
    most_share: float = 0.01,
    schedule: Schedule = DAILY,
) -> ErasurePlan:
    """Decide on every request, and on each dataset that holds one that goes on. `at_once` passes the cool-off."""
    about = {each.dataset: each for each in sorted(facts, key=lambda one: one.dataset)}
    requests = [_request(each, held.get(each.number, ()), about, now, most_share, at_once) for each in asking]

    def places_of(going: Mapping[int, str], begin: datetime) -> list[PlaceStep]:
        steps = (_place(each, going, held, begin, schedule) for each in about.values())
        return [step for step in steps if step is not None]

    by_run: dict[datetime, dict[int, str]] = {now: {}}
    for asked, step in zip(asking, requests, strict=True):
        if step.decision != "refused":
            begin = now if step.decision == "erase" else schedule.run_after(now, asked.ready_from)
            by_run.setdefault(begin, {})[asked.number] = asked.id
    ends: dict[str, list[BytesEnd]] = {}
    # Who waits for a cool-off is in no place of this run: what is foreseen now says when they would end.
    foreseen = {begin: places_of(going, begin) for begin, going in by_run.items()}
    for place in (place for some in foreseen.values() for place in some):
        for request in place.requests:
            ends.setdefault(request, []).append(place.ends)
    told = (replace(each, ends=latest(ends.get(each.id, ()))) for each in requests)
    return ErasurePlan(
        now,
        tuple(sorted(told, key=lambda one: (one.deadline, one.id))),
        tuple(foreseen[now]),
        tuple(sorted(not_reachable)),
    )


def _request(
    asked: Asking, held: Sequence[Held], about: Mapping[str, DatasetFacts], now: datetime, most: float, at_once: bool
) -> PlannedRequest:
    over = _over(held, about, most)
    if over is not None:
        return PlannedRequest(asked.id, "refused", over, asked.due_at)
    if now < asked.ready_from and not at_once:
        return PlannedRequest(asked.id, "wait", f"its cool-off ends at {as_text(asked.ready_from)}", asked.due_at)
    said = f"due at {as_text(asked.due_at)}" if now < asked.due_at else f"overdue since {as_text(asked.due_at)}"
    early = now < asked.ready_from
    return PlannedRequest(asked.id, "erase", f"{said}, {NOT_AWAITED}" if early else said, asked.due_at, early)


def _over(held: Sequence[Held], about: Mapping[str, DatasetFacts], most: float) -> str | None:
    """Why a request is too much for a run: a wrong identifier (a test account, a default) matches half a table. Rows
    that something keeps are none of it.
    """
    if most >= 1:
        return None
    rows: dict[str, int] = {}
    for each in held:
        if each.dataset in about and _stays(about[each.dataset]):
            continue
        rows[each.dataset] = max(each.rows, rows.get(each.dataset, 0))
    for dataset, count in sorted(rows.items()):
        known = about[dataset].rows if dataset in about else None
        if count <= FEW_ROWS:
            continue
        if known is None:
            return f"it matches {count:,} rows of {dataset}, and how many that has is not known"
        if count > known * most:
            return f"it matches {count:,} of {known:,} rows of {dataset}, more than {most:.2%}"
    return None


def _stays(facts: DatasetFacts) -> bool:
    """Whether a hold, a floor or its own terms keep a dataset as it is."""
    kept = kept_from(facts.back, facts.terms)
    return kept is not None and kept[0] in (Decision.HELD, Decision.KEEP)


def _place(
    facts: DatasetFacts,
    going: Mapping[int, str],
    held: Mapping[int, Sequence[Held]],
    begin: datetime,
    schedule: Schedule,
) -> PlaceStep | None:
    """What becomes of one dataset with the run at `begin`; None where nobody who goes on is in it."""
    people = facts.hits.people if facts.hits is not None else frozenset[int]()
    requests = {going[n] for n in people if n in going} | (facts.traced & set(going.values()))
    if not requests:
        return None
    refs = _refs(facts, going, held)
    files = files_of(facts.hits, going) if facts.hits is not None else frozenset[str]()
    decision, because, until, waits_for = kept = _decide(facts, refs)
    return PlaceStep(
        dataset=facts.dataset, decision=decision, method=facts.terms.method, because=because, until=until,
        waits_for=waits_for, requests=tuple(sorted(requests)), refs=refs, files=len(files),
        bytes_read=sum(facts.sizes.get(path, 0) for path in files), history=VersionFate(facts.terms.history),
        left=decision is Decision.CANNOT or (decision is Decision.WAIT and _is_stuck(facts)),
        store=StoreCalls.of(len(files), len(refs) if facts.kind == "dataset" else 0),
        ends=_ends(facts, refs, kept, begin, schedule),
        kind=facts.kind,
    )  # fmt: skip


def _ends(
    facts: DatasetFacts, refs: Sequence[RefStep], kept: KeptFrom, begin: datetime, schedule: Schedule
) -> BytesEnd:
    """When the last byte of these people is gone there."""
    decision, because, until, waits_for = kept
    if decision is Decision.KEEP and until is not None:  # through that day
        begin = schedule.run_after(begin, day_after(until))
    elif decision is Decision.WAIT and facts.free_from is not None and waits_for == (facts.busy,):
        begin = schedule.run_after(begin, facts.free_from)
    elif decision is not Decision.ERASE or waits_for:
        return BytesEnd(None, because)
    aged = {text for text, age in facts.back.ages.items() if age is not None}
    stays = (each.because or "it stays" for each in refs if each.fate is Fate.STAYS)
    if left := next((why for why in stays if not any(why.startswith(text) for text in aged)), None):
        return BytesEnd(None, left)
    return ends_after(begin, schedule, facts.back.ages)


KeptFrom = tuple[Decision, str, date | None, tuple[str, ...]]
"""A decision, why, until when, and what is waited for."""


def kept_from(back: HeldBack, terms: ErasureTerms) -> KeptFrom | None:
    """What keeps every erasure from a dataset, one that was begun included; None where nothing does."""
    if back.holds:
        return Decision.HELD, ", ".join(back.holds), None, ()
    if back.statutes:
        latest = max(back.statutes, key=lambda each: (each.until is None, each.until or date.min))
        return Decision.KEEP, latest.basis, latest.until, ()
    if terms.method == "keep":
        return Decision.KEEP, terms.basis or "", terms.until, ()
    if waits := (*back.blocks, *back.settings):
        return Decision.WAIT, f"it waits for {waits[0]}", None, waits
    return None


def _decide(facts: DatasetFacts, refs: Sequence[RefStep]) -> KeptFrom:
    kept = kept_from(facts.back, facts.terms)
    if facts.cannot is not None and (kept is None or kept[0] is Decision.WAIT):
        return Decision.CANNOT, facts.cannot, None, ()
    if kept is not None:
        return kept
    if facts.busy is not None:
        return Decision.WAIT, facts.busy, None, (facts.busy,)
    if facts.trouble is not None:
        return Decision.WAIT, facts.trouble, None, (facts.trouble,)
    stuck = [each for each in refs if each.fate is Fate.STAYS and not each.ref.startswith("branch:")]
    if refs and len(stuck) == len(refs):
        reasons = tuple(sorted({each.because or "it stays" for each in stuck}))
        return Decision.WAIT, f"what is left of it stays: {reasons[0]}", None, reasons
    if facts.shared:
        others = ", ".join(facts.shared)
        return Decision.ERASE, f"files stay for {others}, which reference them", None, facts.shared
    return Decision.ERASE, "it holds them" if refs else "a search found traces of them", None, ()


def _is_stuck(facts: DatasetFacts) -> bool:
    return bool(facts.back.blocks or facts.back.settings or (facts.trouble is not None and facts.busy is None))


def _refs(facts: DatasetFacts, going: Mapping[int, str], held: Mapping[int, Sequence[Held]]) -> tuple[RefStep, ...]:
    rows: dict[str, int] = {}
    for number in going:
        for each in held.get(number, ()):
            if each.dataset == facts.dataset:
                rows[each.ref] = rows.get(each.ref, 0) + each.rows
    return tuple(_ref_of(facts, ref, count, going) for ref, count in sorted(rows.items()))


def _ref_of(facts: DatasetFacts, ref: str, rows: int, going: Mapping[int, str]) -> RefStep:
    shown = {} if facts.hits is None else shown_by(facts.hits)
    if facts.hits is None or ref not in shown:
        return _ref(ref, rows, facts.foreseen.get(ref))
    files = files_of(facts.hits, going, shown[ref])
    step = _ref(ref, rows, facts.foreseen.get(facts.hits.retained.ids[shown[ref].bit_length() - 1]))
    return replace(step, files=len(files), bytes=sum(facts.sizes.get(path, 0) for path in files))


def _ref(ref: str, rows: int, foreseen: ForeseenVersion | None) -> RefStep:
    if foreseen is None or (ref.startswith("branch:") and foreseen.fate is not Fate.STAYS):
        # Heads get a new version, whatever becomes of the one that they show now.
        return RefStep(ref, rows, Fate.REWRITTEN if ref.startswith("branch:") else Fate.EXPIRES)
    return RefStep(ref, rows, foreseen.fate, foreseen.because)
