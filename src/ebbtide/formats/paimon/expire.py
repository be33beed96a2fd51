"""Which snapshots Paimon's own expiry can take, and taking them (spec §2, §7).

Paimon expires a range that begins at a branch's earliest snapshot, and removes its files itself. So a version goes only
when all before it on its line go with it, or are kept by a tag; when no consumer has still to read it; when the head is
behind it; and when no other branch holds it, because expiry knows nothing of branches and would take what they read.

What is kept for those who follow a table longer than its snapshots are changelogs, which Paimon makes of snapshots that
expire. They go oldest first, too, all but the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from ebbtide.formats.paimon.java import Changer
from ebbtide.formats.paimon.lines import MAIN, BranchLine, BranchLines, changelog_id
from ebbtide.model.removal import FileDeletion

BATCH = 10
"""How many snapshots go at a time: Paimon's own limit (`snapshot.expire.limit`), and a lease is looked at between."""


@dataclass(frozen=True, slots=True)
class Range:
    """Snapshots of one branch from its earliest one, without `end`; the files of `tagged` ones stay with their tags."""

    branch: str
    begin: int
    end: int
    tagged: frozenset[int] = frozenset()
    changelogs: bool = False
    """Whether these are the branch's changelogs, not its snapshots."""

    def id_of(self, lines: BranchLines, number: int) -> str:
        return changelog_id(self.branch, number) if self.changelogs else lines.id_of(self.branch, number)

    def snapshots(self) -> list[str]:
        """The snapshot files of tagged versions: each lives on as the tag's own file."""
        place = "" if self.branch == MAIN else f"branch/branch-{self.branch}/"
        return [f"{place}snapshot/snapshot-{number}" for number in sorted(self.tagged)]


@dataclass(slots=True)
class Expirable:
    """The ranges that can go, and for every version that cannot, why."""

    ranges: list[Range] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    sent_back: dict[str, str] = field(default_factory=dict)


def expirable(lines: BranchLines, versions: Collection[str], earliest: Callable[[BranchLine], int | None]) -> Expirable:
    """What of the wanted versions can go now. `earliest` is where a line begins for Paimon: files below it are left
    over from an expiry that was cut off, and a hole there means nothing.
    """
    found = Expirable()
    holders: dict[str, list[str]] = {}
    for line in lines.lines:
        for number in line.commits:
            holders.setdefault(lines.id_of(line.name, number), []).append(line.name)
    holders |= {id_: [] for id_, _ in lines.changelogs()}
    found.gone.update(id_ for id_ in versions if id_ not in holders)
    for line in lines.lines:
        begin = earliest(line)
        tagged = {commit.number for commit in line.tags.values() if not commit.apart}
        wanted = {n for n in line.snapshots if lines.id_of(line.name, n) in versions} - tagged
        if not wanted or begin is None:
            continue
        end, reason = _reach(line, lines, begin, wanted, holders)
        for number in sorted(wanted):
            if number >= end or number < begin:
                found.sent_back[lines.id_of(line.name, number)] = reason
        while end > begin and end - 1 not in wanted:
            end -= 1  # nothing is gained by expiring tagged snapshots at the end
        if end > begin:
            found.ranges.append(Range(line.name, begin, end, frozenset(range(begin, end)) - wanted))
    for line in lines.lines:
        _add_changelogs(found, line, {n for n in line.changelogs if changelog_id(line.name, n) in versions})
    for id_ in versions:
        if id_ in holders and not any(_inside(r, lines, id_) for r in found.ranges):
            found.sent_back.setdefault(id_, "a tag keeps it")
    return found


def _inside(range_: Range, lines: BranchLines, id_: str) -> bool:
    return any(range_.id_of(lines, n) == id_ for n in range(range_.begin, range_.end) if n not in range_.tagged)


def _add_changelogs(found: Expirable, line: BranchLine, wanted: set[int]) -> None:
    """The changelogs of a line that can go: from its earliest up to the first that stays."""
    if not wanted:
        return
    begin = end = min(line.changelogs)
    reason = ""
    while end <= max(wanted) and not reason:
        waits = [(name, next_) for name, next_ in sorted(line.consumers.items()) if next_ <= end]
        if end not in line.changelogs:
            reason = f"changelog {end} of branch {line.name} is missing: expiry cannot pass a hole"
        elif end == max(line.changelogs):
            reason = f"it is the newest changelog of branch {line.name}, which Paimon keeps"
        elif waits:
            reason = f"consumer {waits[0][0]} reads {line.name}/{waits[0][1]} next"
        elif end not in wanted:
            reason = f"{changelog_id(line.name, end)} is older and stays: Paimon expires the oldest first"
        else:
            end += 1
    found.sent_back |= {changelog_id(line.name, number): reason for number in wanted if number >= end}
    if end > begin:
        found.ranges.append(Range(line.name, begin, end, changelogs=True))


def _reach(
    line: BranchLine, lines: BranchLines, begin: int, wanted: set[int], holders: dict[str, list[str]]
) -> tuple[int, str]:
    """How far expiry can go, and why no further."""
    tagged = {commit.number for commit in line.tags.values() if not commit.apart}
    for number in range(begin, max(wanted) + 1):
        id_ = lines.id_of(line.name, number)
        others = [name for name in holders.get(id_, ()) if name != line.name]
        if number not in line.snapshots:
            return number, f"snapshot {number} of branch {line.name} is missing: expiry cannot pass a hole"
        if number == line.head:
            return number, f"it is, or comes after, the head of branch {line.name}"
        for consumer, next_ in sorted(line.consumers.items()):
            if next_ <= number:
                return number, f"consumer {consumer} reads {line.name}/{next_} next"
        if number not in wanted and number not in tagged:
            return number, f"{id_} is older and stays: Paimon expires the oldest first"
        if number in wanted and others:
            return number, f"branch {others[0]} holds {id_} too, and expiry would take what it reads"
    return max(wanted) + 1, "files left over below the earliest snapshot are no version"


def expire(
    changer: Changer,
    ranges: Collection[Range],
    named: Collection[str],
    before_batch: Callable[[], None],
    spared: Collection[str] = (),
) -> FileDeletion:
    """Expire ranges in batches. Each is rehearsed first: where it would take an unnamed file, nothing goes.

    Paimon knows nothing of branches: files that one still needs are `spared`. Expiry asks for them and does not get
    them, and goes on.
    """
    failed: dict[str, str] = {}
    because: list[str] = []
    for range_ in ranges:
        allowed = {*named, *range_.snapshots()}
        take = changer.expire_changelogs if range_.changelogs else changer.expire
        rehearsed = take(range_.branch, range_.begin, range_.end, allowed, rehearsal=True)
        if rehearsed["stopped"] is not None:
            because.append(rehearsed["stopped"])
            continue
        if unnamed := [name for name in rehearsed["unnamed"] if name not in spared]:
            because.append(f"expiry would also take {unnamed[0]} ({len(unnamed)} in all), which the plan did not name")
            continue
        for begin, end in _batches(range_):
            before_batch()
            answer = take(range_.branch, begin, end, allowed)
            failed |= answer["failed"]
            strange = [name for name in answer["unnamed"] if name not in spared]
            failed |= dict.fromkeys(strange, "kept: the plan did not name it")
            if answer["stopped"] is not None:
                because.append(answer["stopped"])
                break
            if answer["count"] != end - begin:
                because.append(f"Paimon expired {answer['count']} of {end - begin}")
                break
    return FileDeletion(failed=failed, because="; ".join(because) or None)


def _batches(range_: Range) -> Iterator[tuple[int, int]]:
    for begin in range(range_.begin, range_.end, BATCH):
        yield begin, min(begin + BATCH, range_.end)
