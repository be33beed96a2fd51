"""The static proof of a promise for one table (spec §3, "Promises"): every term, and the one that breaks it.

    1 + span + retention + tick + grace + tick + versions.older_than + tick + verification

The first day is the one that strict comparison adds. Everything here is arithmetic on what policies say and on what the
inventory knows of the table; nothing looks at a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from ebbtide.config.policies import Policy, PolicySet
from ebbtide.model.durations import Duration, add, as_interval

_DAY = 24
_VERIFICATION = 1 * _DAY
_USUAL = {"day": _DAY, "span": 0, "tick": _DAY, "grace": 7 * _DAY, "versions": 7 * _DAY, "orphan guard": 3 * _DAY,
          "verification": _DAY}  # fmt: skip
"""What a term takes where nobody says otherwise; `retention` and `floor` get the rest of what is promised."""
TICK = Duration(1, "d")
"""The longest time between runs where the project says nothing."""

# Years with and without leap days, and the century that has none: every length that months can have occurs in them.
_SAMPLE = (*range(1999, 2005), *range(2092, 2105))


@dataclass(frozen=True, slots=True)
class Facts:
    """What the proof needs to know of one table. Policies and floors are numbers in the policy set.

    `span` is what its partitions cover beyond their first day. `endless` names what keeps its data without a bound in
    time; `timed_floors` are the format's own floors that have one, in hours.
    """

    table_id: str
    labels: tuple[str, ...] = ()
    partitions: int | None = None
    rows: int | None = None
    versions: int | None = None
    orphans: int | None = None
    floors: tuple[int, ...] = ()
    span: int = 0
    grain_days: int | None = None
    endless: tuple[str, ...] = ()
    without_date: str | None = None
    timed_floors: tuple[tuple[str, int], ...] = ()
    orphans_only: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    hours: int
    because: str

    @property
    def days(self) -> float:
        return self.hours / _DAY


@dataclass(frozen=True, slots=True)
class Bound:
    """How long data of a table can live: the sum of the terms, unless something keeps it without end."""

    terms: tuple[Term, ...]
    endless: tuple[str, ...] = ()

    @property
    def days(self) -> int | None:
        """Started days count; None where there is no bound."""
        return None if self.endless else -(-sum(term.hours for term in self.terms) // _DAY)

    def breaks(self, gone_within: Duration) -> str | None:
        """What breaks a promise; None where it is proved."""
        if self.endless:
            return "; ".join(self.endless)
        days, promised = self.days, lengths(gone_within)[0]
        if days is None or days <= promised:
            return None
        worst = self._worst(promised * _DAY)
        return f"{worst.name}: {worst.because} makes it {days} d, {days - promised} d more than promised"

    def _worst(self, promised: int) -> Term:
        """The term that takes most beyond its share: the usual length for each, and what those leave for the age."""
        left = promised - sum(_USUAL.get(term.name, 0) for term in self.terms)
        floors = {term.because for term in self.terms if term.name == "floor"}
        names = ["floor" if term.because in floors else term.name for term in self.terms]  # it may lengthen two steps
        beyond = dict.fromkeys(names, 0)
        for name, term in zip(names, self.terms, strict=True):
            beyond[name] += term.hours - _USUAL.get(term.name, max(0, left))
        return self.terms[names.index(max(beyond, key=lambda name: beyond[name]))]


@lru_cache(maxsize=256)
def lengths(duration: Duration) -> tuple[int, int]:
    """The shortest and the longest length in whole days, true to the calendar; hours are rounded up."""
    if not duration.months:
        days = -(-duration.exact // timedelta(days=1))
        return days, days
    found = {(add(day, duration) - day).days for day in _days()}
    return min(found), max(found)


def _days() -> Iterator[date]:
    for year in _SAMPLE:
        for n in range(365):
            yield date(year, 1, 1) + timedelta(days=n)


def _hours(duration: Duration) -> int:
    return lengths(duration)[1] * _DAY if duration.months else int(duration.exact.total_seconds()) // 3600


def bound_of(facts: Facts, policies: PolicySet, tick: Duration) -> Bound:
    """Every term for one table, in the order of the formula."""
    owner = facts.partitions if facts.partitions is not None else facts.rows
    if owner is None:
        return Bound((), (*facts.endless, "retention: no policy removes its partitions or rows"))
    policy = policies.policies[owner]
    endless = [*facts.endless, *_never(facts, policy)]
    run = _hours(tick)
    terms = [Term("day", _DAY, "older means strictly older"), *_age(facts, policies, policy)]
    terms += [Term("tick", run, "until a run marks it"), Term("grace", _hours(policy.grace), f"policy {policy.name}")]
    terms += [Term("tick", run, "until a run deletes it")]
    versions = _versions(facts, policies, policy)
    if isinstance(versions, str):
        endless.append(versions)
    else:
        terms += [versions, Term("tick", run, "until a run removes its versions")]
    if facts.orphans_only:
        guard = None if facts.orphans is None else policies.policies[facts.orphans].orphans
        if guard is None:
            endless.append("orphan guard: only orphan removal frees its bytes, and no policy removes its orphans")
        else:
            terms.append(Term("orphan guard", _hours(guard.older_than), "only orphan removal frees its bytes"))
    terms.append(Term("verification", _VERIFICATION, "reading that it is gone"))
    return Bound(tuple(terms), tuple(endless))


def _never(facts: Facts, policy: Policy) -> Iterator[str]:
    if facts.partitions is None:
        if policy.rows is None or policy.rows.older_than is None:
            yield f"retention: rows of policy {policy.name} go by predicate, not by age"
        return
    assert policy.partitions is not None
    if facts.without_date is not None:
        yield f"retention: {facts.without_date}"
    kept = policy.partitions.older_than
    if isinstance(kept, Duration) and facts.grain_days is not None and facts.grain_days >= as_interval(kept):
        yield f"grain: {kept} of policy {policy.name} is not longer than the table's time grain"


def _age(facts: Facts, policies: PolicySet, policy: Policy) -> list[Term]:
    """Span and retention, or the floor that is longer than both."""
    span, kept = 0, policy.rows.older_than if policy.rows else None
    if facts.partitions is not None and policy.partitions is not None:
        kept = policy.partitions.older_than
        span = 0 if policy.partitions.age_of == "oldest" else facts.span
    hours = _hours(kept) if isinstance(kept, Duration) else 0
    covered = facts.span if facts.partitions is not None else 0  # a floor always counts from the last day
    found = [Term("span", span * _DAY, "covered beyond the day that its age is measured from")]
    found += [Term("retention", hours, f"{kept} of policy {policy.name}")]
    for n in facts.floors:
        floor = policies.floors[n]
        if covered * _DAY + _hours(floor.keep_at_least) > sum(term.hours for term in found):
            found = [Term("span", covered * _DAY, "covered beyond the first day"),
                     Term("floor", _hours(floor.keep_at_least), f"floor:{floor.label}")]  # fmt: skip
    return found


def _versions(facts: Facts, policies: PolicySet, policy: Policy) -> Term | str:
    """The version step after the delete, or why it never comes."""
    if policy.versions is None or facts.versions is None:
        return f"versions: policy {policy.name} has no versions target, so old versions keep what was deleted"
    owner = policies.policies[facts.versions]
    kept = None if owner.versions is None else owner.versions.older_than
    if not isinstance(kept, Duration):
        return f"versions: policy {owner.name} expires versions by number, not by age"
    longest = Term("versions", _hours(kept), f"{kept} of policy {owner.name}")
    floors = [(f"floor:{f.label}", _hours(f.keep_at_least)) for f in (policies.floors[n] for n in facts.floors)]
    for text, hours in (*floors, *facts.timed_floors):
        if hours > longest.hours:
            longest = Term("versions", hours, text)
    return longest
