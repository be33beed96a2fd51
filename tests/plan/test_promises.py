"""Promises: every term, the one that breaks, and a proof that no simulated life outlasts (spec §3)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from ebbtide.config.policies import PolicySet
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, parse_duration
from ebbtide.plan.promises import PromiseProof, derive_auto, gone_by_age
from ebbtide.plan.views import plan_views
from ebbtide.plan.world import ORPHANS_ONLY, Orders
from tests.plan.simulator import Life, gone_at, later
from tests.plan.worlds import EXACT, NOW, Table, day_partition, decisions, plan, policies, policy, world

DAILY = {"schedule": "+1d", "time_grain": "+1d"}
TARGETS = "partitions: {older_than: 90d, age_of: oldest}, versions: {older_than: 7d}"
PROMISE = 'promises: [{tables: ["**"], gone_within: 110d}]\n'
DAY = Duration(1, "d")


def daily(name: str = "lake.app.events", days: int = 1, **more: object) -> Table:
    extra = {**DAILY, **more}
    partition = day_partition(date(2026, 11, 1))
    span = (partition.first_day, date(2026, 11, 1) + timedelta(days=days - 1))
    parts = (day_partition(date(2026, 11, 1), days=span),)
    return Table(name, partitions=parts, extra=extra).commit("1", 3, partition=parts[0].id)


def proofs(
    found: PolicySet, *tables: Table, tick: str = "1d", holds: tuple[tuple[object, ...], ...] = ()
) -> list[PromiseProof]:
    lake, every = world(*tables), parse_duration(tick, hours=True)
    settled = derive_auto(found, lake, tick=every)
    return list(plan_views(settled, lake, Orders.of(holds=holds), tick=every, now=NOW).proofs)


def one(found: PolicySet, table: Table, tick: str = "1d") -> PromiseProof:
    (proof,) = proofs(found, table, tick=tick)
    return proof


def test_daily_user_data_with_the_pack_takes_109_days_term_by_term(tmp_path: Path) -> None:
    proof = one(policy(tmp_path, TARGETS, more=PROMISE), daily())
    assert [(term.name, term.days) for term in proof.bound.terms] == [
        ("day", 1), ("span", 0), ("retention", 90), ("tick", 1), ("grace", 7), ("tick", 1), ("versions", 7),
        ("tick", 1), ("verification", 1),
    ]  # fmt: skip
    assert proof.bound.days == 109
    assert proof.breaks is None


NEWEST = TARGETS.replace("oldest", "newest")
CASES: list[tuple[str, dict[str, object], dict[str, str], int | None, str | None]] = [
    (TARGETS, {}, {}, 109, None),
    (TARGETS.replace("90d", "91d"), {}, {}, 110, None),
    (TARGETS.replace("90d", "92d"), {}, {}, 111,
     "retention: 92d of policy NAME makes it 111 d, 1 d more than promised"),
    (NEWEST, {"time_grain": "+7d"}, {}, 116,
     "span: covered beyond the day that its age is measured from makes it 116 d, 6 d more than promised"),
    (NEWEST, {"time_grain": "+7d", "covers": "leading"}, {}, 115,
     "span: covered beyond the day that its age is measured from makes it 115 d, 5 d more than promised"),
    (TARGETS.replace("7d", "20d"), {}, {}, 122, "versions: 20d of policy NAME makes it 122 d, 12 d more than promised"),
    (TARGETS.replace("90d", "12m"), {"time_grain": "+1y", "schedule": "+1y"}, {}, 385,
     "retention: 12m of policy NAME makes it 385 d, 275 d more than promised"),
    (TARGETS, {"time_grain": "+7d"}, {}, 109, None),
    (TARGETS.replace("7d", "200d"), {}, {}, 302,
     "versions: 200d of policy NAME makes it 302 d, 192 d more than promised"),
    (TARGETS + ", grace: 100d", {}, {}, 202, "grace: policy NAME makes it 202 d, 92 d more than promised"),
    ("partitions: {older_than: 90d}", {}, {}, None,
     "versions: policy NAME has no versions target, so old versions keep what was deleted"),
    ("partitions: {older_than: 90d}, versions: {keep_max: 3}", {}, {}, None,
     "versions: policy NAME expires versions by number, not by age"),
    ("versions: {older_than: 7d}", {}, {}, None, "retention: no policy removes its partitions or rows"),
    ("rows: {where: 'x = 1'}, versions: {older_than: 7d}", {}, {}, None,
     "retention: rows of policy NAME go by predicate, not by age"),
    ("rows: {column: at, older_than: 90d}, versions: {older_than: 7d}", {}, {}, 109, None),
    (TARGETS, {"time_grain": "+3m", "schedule": "+3m"}, {}, None,
     "grain: 90d of policy NAME is not longer than the table's time grain"),
    (TARGETS, {"locked_by": ["lake.app.other"]}, {}, None, "locked:lake.app.other"),
    (TARGETS, {"scan_error": "manifest lost"}, {}, None, "unknown:manifest lost"),
    (TARGETS, {}, {"gc.enabled": "false"}, None, "floor:gc.enabled=false"),
    (TARGETS, {}, {"delta.appendOnly": "true"}, None, "floor:delta.appendOnly=true"),
    (TARGETS, {}, {"history.expire.min-snapshots-to-keep": "5"}, None,
     "floor:history.expire.min-snapshots-to-keep=5"),
    (TARGETS, {}, {"history.expire.min-snapshots-to-keep": "1"}, 109, None),
    (TARGETS, {}, {"consumer:c": "main/3"}, None, "floor:consumer:c"),
    (TARGETS, {}, {"versions:p": "7"}, None, "floor:versions:p"),
    (TARGETS, {}, {"delta.deletedFileRetentionDuration": "interval 1 week"}, 109, None),
    (TARGETS, {}, {"delta.deletedFileRetentionDuration": "interval 100 days"}, 202,
     "versions: floor:delta.deletedFileRetentionDuration=interval 100 days makes it 202 d, 92 d more than promised"),
    (TARGETS, {}, {"delta.deletedFileRetentionDuration": "interval some days"}, None,
     "floor:delta.deletedFileRetentionDuration=interval some days"),
]  # fmt: skip


def test_the_term_that_breaks_is_named_and_a_floor_without_a_bound_breaks(tmp_path: Path) -> None:
    tables, lines, expected = [], [], {}
    for n, (targets, extra, floors, days, breaks) in enumerate(CASES):
        table = daily(f"lake.app.t{n}", **extra)  # type: ignore[arg-type]
        table.floors = floors
        tables.append(table)
        lines.append(f"  - {{name: p{n}, select: {{tables: [lake.app.t{n}]}}, {targets}}}\n")
        expected[table.name] = (days, breaks and breaks.replace("NAME", f"p{n}"))
    found = policies(tmp_path, "policies:\n" + "".join(lines) + PROMISE)
    assert {p.table_id: (p.bound.days, p.breaks) for p in proofs(found, *tables)} == expected


def test_tags_branches_and_holds_break_it_because_nothing_bounds_them(tmp_path: Path) -> None:
    found = policy(tmp_path, TARGETS, more=PROMISE)
    tagged = daily("lake.app.tagged").tag("audit", "1")
    branched = daily("lake.app.branched").branch("dev", "1")
    held = daily("lake.app.held")
    broken = {
        p.table_id.removeprefix("lake.app."): p.breaks
        for p in proofs(
            found, tagged, branched, held, daily("lake.app.free"),
            holds=(("lake.app.held", None, None, "ann", "case 4"),),
        )
    }  # fmt: skip
    assert broken == {"tagged": "tag:audit", "branched": "branch:dev", "held": "hold:ann (case 4)", "free": None}


def test_a_statutory_floor_takes_the_place_of_the_retention(tmp_path: Path) -> None:
    more = PROMISE + 'floors: [{tables: ["**"], keep_at_least: 1y, basis: tax}]\n'
    proof = one(policy(tmp_path, TARGETS, more=more), daily())
    assert proof.bound.days == 1 + 366 + 1 + 7 + 1 + 366 + 1 + 1
    assert proof.breaks is not None
    assert proof.breaks.startswith("floor: floor:1y (tax) makes it")


def test_what_has_no_date_breaks_it(tmp_path: Path) -> None:
    found = policy(tmp_path, TARGETS, more=PROMISE)
    undated = Table("lake.app.undated", partitions=(day_partition(date(2026, 1, 1), days=(None, None)),), extra=DAILY)
    plain = Table("lake.app.plain", extra=DAILY).commit("1", 3)
    broken = [p.breaks for p in proofs(found, undated, plain)]
    assert broken == ["retention: its data is not partitioned by a date", "retention: 1 partitions have no date"]


def test_an_orphan_guard_is_added_where_only_orphan_removal_frees_bytes(tmp_path: Path) -> None:
    table = daily()
    table.capabilities = (*EXACT, ORPHANS_ONLY)
    assert "orphan guard" in str(one(policy(tmp_path, TARGETS, more=PROMISE), table).breaks)
    proof = one(policy(tmp_path, TARGETS + ", orphans: {older_than: 4d}", more=PROMISE), table)
    assert proof.bound.days == 113
    assert "orphan guard" in [term.name for term in proof.bound.terms]


def test_partitions_of_a_month_count_as_the_longest_month(tmp_path: Path) -> None:
    found = policy(tmp_path, NEWEST, more=PROMISE)
    month, year = proofs(found, daily("lake.app.month", days=28), daily("lake.app.year", days=365))
    assert (month.bound.days, year.bound.days) == (109 + 30, 109 + 365)


AUTO = TARGETS.replace("90d", "auto")


@pytest.mark.parametrize(
    ("promise", "tick", "days"), [("90d", "1d", 71), ("109d", "1d", 90), ("90d", "12h", 72), ("3m", "1d", 70)]
)
def test_auto_is_the_longest_retention_that_keeps_the_promise(
    tmp_path: Path, promise: str, tick: str, days: int
) -> None:
    found = policy(tmp_path, AUTO, more=f'promises: [{{tables: ["**"], gone_within: {promise}}}]\n')
    derived = derive_auto(found, world(daily()), tick=parse_duration(tick, hours=True))
    assert derived.policies[0].partitions is not None
    assert derived.policies[0].partitions.older_than == Duration(days, "d")


def test_auto_takes_the_strictest_table_and_promise_of_a_policy(tmp_path: Path) -> None:
    text = f"""\
policies:
  - {{name: p, select: {{tables: ["**"]}}, {AUTO.replace("oldest", "newest")}}}
promises:
  - {{tables: ["lake.app.a"], gone_within: 100d}}
  - {{tables: ["lake.app.b"], gone_within: 90d}}
"""
    lake = world(daily("lake.app.a"), daily("lake.app.b", time_grain="+7d"))
    derived = derive_auto(policies(tmp_path, text), lake, tick=DAY)
    assert derived.policies[0].partitions is not None
    assert str(derived.policies[0].partitions.older_than) == "64d"


def test_a_table_that_no_retention_saves_does_not_stop_the_others_and_is_named(tmp_path: Path) -> None:
    found = policy(tmp_path, AUTO, more='promises: [{tables: ["**"], gone_within: 90d}]\n')
    slow = daily("lake.app.slow")
    slow.floors = {"delta.deletedFileRetentionDuration": "interval 100 days"}
    lake = world(daily("lake.app.quick"), slow)
    derived = derive_auto(found, lake, tick=DAY)
    assert derived.policies[0].partitions is not None
    assert str(derived.policies[0].partitions.older_than) == "71d"
    broken = {proof.table_id: proof.breaks for proof in proofs(found, daily("lake.app.quick"), slow)}
    assert broken["lake.app.quick"] is None
    assert broken["lake.app.slow"] is not None
    assert broken["lake.app.slow"].startswith("versions: floor:delta.deletedFileRetentionDuration")
    with pytest.raises(InputError, match=r"for lake\.app\.slow: versions: floor:delta"):
        derive_auto(found, world(slow), tick=DAY)


def test_who_left_ages_out_only_where_that_is_proved_in_time(tmp_path: Path) -> None:
    """A retention that is as long as the promise is too long: marks, grace and versions come after it."""
    quick = "lake.app.quick, lake.app.month, lake.app.tagged"
    text = f"""\
policies:
  - {{name: slow, select: {{tables: [lake.app.slow]}}, {TARGETS}}}
  - name: rows
    select: {{tables: [lake.app.rows]}}
    rows: {{column: at, older_than: 10d}}
    versions: {{older_than: 7d}}
  - {{name: quick, select: {{tables: [{quick}]}}, {TARGETS.replace("90d", "71d")}}}
"""
    month = daily("lake.app.month", time_grain="+3m", schedule="+3m")
    tagged = daily("lake.app.tagged").tag("audit", "1")
    lake = world(daily("lake.app.quick"), daily("lake.app.slow"), daily("lake.app.rows"), month, tagged)
    assert gone_by_age(policies(tmp_path, text), lake, Orders(), Duration(90, "d"), tick=DAY) == {"lake.app.quick"}


def test_a_plan_with_auto_marks_by_the_derived_age(tmp_path: Path) -> None:
    found = policy(tmp_path, AUTO, more='promises: [{tables: ["**"], gone_within: 90d}]\n')
    days = [date(2026, 11, 15) - timedelta(days=age) for age in (71, 72)]
    table = Table("lake.app.t", partitions=tuple(day_partition(day) for day in days), extra=DAILY)
    with plan(found, world(table)) as made:
        assert decisions(made) == {"partitions:0/day=2026-09-05": "keep", "partitions:0/day=2026-09-04": "mark"}


@pytest.mark.parametrize(
    ("targets", "promise", "message"),
    [
        (AUTO, "", "is auto, and there is no promise"),
        (AUTO, 'promises: [{tables: ["**"], gone_within: 18d}]\n', "no partitions.older_than keeps the promise"),
        ("versions: {older_than: auto}", PROMISE, "versions.older_than is auto, and versions follow no promise"),
    ],
)
def test_auto_that_cannot_be_derived_is_refused(tmp_path: Path, targets: str, promise: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        derive_auto(policy(tmp_path, targets, more=promise), world(daily()), tick=DAY)
    assert caught.value.hint


@pytest.mark.parametrize("hours", [9, 30, 168])
def test_no_simulated_life_outlasts_its_bound_and_an_unlucky_one_reaches_it(tmp_path: Path, hours: int) -> None:
    """`hours` is the longest time between runs. Months and years have several lengths: their bound is the longest."""
    chance = random.Random(hours)
    cases = [_case(chance, n) for n in range(60)]
    text = "policies:\n" + "".join(case.policy(n) for n, case in enumerate(cases))
    found = policies(tmp_path, text + 'promises: [{tables: ["**"], gone_within: 9y}]\n')
    tables = [case.table(n) for n, case in enumerate(cases)]
    by_table = {proof.table_id: proof for proof in proofs(found, *tables, tick=f"{hours}h")}
    tick, reached = timedelta(hours=hours), 0
    for n, case in enumerate(cases):
        bound = by_table[f"lake.app.t{n}"].bound
        assert bound.days is not None, bound
        proven = timedelta(hours=sum(term.hours for term in bound.terms))
        for life in _lives(case, chance):
            begun = max(datetime.combine(life.first_day, time(), UTC), life.written_at)
            start = begun - timedelta(hours=chance.randrange(48))
            unlucky = gone_at(life, start, lambda now, until: min(now + tick, until if until > now else now + tick))
            at_random = gone_at(life, start, lambda now, _: now + tick * chance.uniform(0.05, 1))
            for gone in (unlucky, at_random):
                assert gone - begun + timedelta(days=1) <= proven, (case, life, bound)
            shorter = _SHORTER[case.retention[1]] + (0 if case.oldest else _SHORTER[case.grain[1]])
            if life.written_at <= datetime.combine(life.first_day, time(), UTC):
                reach = proven - tick - timedelta(days=shorter)
                assert unlucky - begun + timedelta(days=1) >= reach, (case, life, bound)
                reached += 1
    assert reached > 20


_SHORTER = {"d": 0, "w": 0, "m": 6, "y": 1}
"""By how many days a period can be shorter than the longest of its kind."""


@dataclass(frozen=True)
class _Case:
    """What a table and its policy say, drawn by chance."""

    retention: tuple[int, str]
    oldest: bool
    versions: int
    grace: int
    grain: tuple[int, str]
    schedule: str
    covers: str | None
    date: date

    @property
    def grain_text(self) -> str:
        return f"+{self.grain[0]}{self.grain[1]}"

    def policy(self, n: int) -> str:
        age = f"older_than: {self.retention[0]}{self.retention[1]}, age_of: {'oldest' if self.oldest else 'newest'}"
        return (
            f"  - {{name: p{n}, select: {{tables: [lake.app.t{n}]}}, partitions: {{{age}}}, "
            f"versions: {{older_than: {self.versions}h}}, grace: {self.grace}h}}\n"
        )

    def table(self, n: int) -> Table:
        extra = {"schedule": self.schedule, "time_grain": self.grain_text, "covers": self.covers}
        return Table(f"lake.app.t{n}", partitions=(day_partition(self.date),), extra=extra)


def _case(chance: random.Random, n: int) -> _Case:
    unit, grain_unit = chance.choice("dwmy"), chance.choice("dwm")
    grain = (chance.randint(1, {"d": 14, "w": 3, "m": 2}[grain_unit]), grain_unit)
    low, high = {"d": (75, 120), "w": (11, 20), "m": (4, 9), "y": (1, 2)}[unit]  # longer than any grain
    return _Case(
        retention=(chance.randint(low, high), unit),
        oldest=chance.random() < 0.5,
        versions=chance.randrange(1, 24 * 20),
        grace=chance.randrange(24 * 20),
        grain=grain,
        schedule=chance.choice([f"+{grain[0]}{grain[1]}", "+1d"]),
        covers=chance.choice([None, "leading", "trailing"]),
        date=date(2024, 2, 1) + timedelta(days=n),
    )


def _lives(case: _Case, chance: random.Random) -> list[Life]:
    """A partition that is written at once, and one that is written late."""
    found = []
    for late in (0, chance.randrange(1, 200)):
        day, (count, unit) = date(2023, 1, 1) + timedelta(days=chance.randrange(800)), case.grain
        longer = case.schedule != case.grain_text and later(day, count, unit) > later(day, 1, "d")
        trailing = case.covers == "trailing" or (case.covers is None and longer)
        first = later(day, -count, unit) if trailing else day
        last = day if trailing else max(day, later(day, count, unit) - timedelta(days=1))
        written = datetime.combine(first + timedelta(days=late), time(), UTC)
        grace, versions = timedelta(hours=case.grace), timedelta(hours=case.versions)
        found.append(Life(first, last, written, case.oldest, case.retention, grace, versions))
    return found
