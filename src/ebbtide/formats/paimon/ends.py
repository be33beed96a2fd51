"""Which versions end with an erasure, and which stay and why: a pure function of what a table's lines hold.

Paimon expires the oldest first, and manifests of a later snapshot still name what an earlier one had. So all of a line
ends up to the first snapshot that an erasure left clean; where none did, up to the last one that holds somebody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ebbtide.formats.erasing import Fate, ForeseenVersion, VersionFate
from ebbtide.formats.paimon.lines import MAIN, BranchLine, BranchLines
from ebbtide.model.reasons import Code, Reason, code_of

ERASER = "ebbtide-erasure-"
"""How the commit user of an erasure's own commits begins (`Rewriting.java`)."""
_ORDER = "Paimon expires the oldest first, and {} stays: {}"
_HEADS_ONLY = "only heads are rewritten (history: refuse)"


@dataclass(frozen=True, slots=True)
class EndingRules:
    """What decides: `holding` are the ids of versions that hold a file in which somebody is. Where a reader `merges`
    files nobody can say so of a version, and any may.
    """

    holding: Collection[str]
    merges: bool
    history: VersionFate = VersionFate.REWRITE
    kept: Mapping[str, Reason] = field(default_factory=dict)
    ahead: bool = False
    """Whether heads are still to be rewritten, and end with what is before them."""


@dataclass(slots=True)
class Ends:
    """`numbers` are the snapshots of each branch that end, `ids` the versions that no branch holds any longer then."""

    numbers: dict[str, range] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    stays: dict[str, str] = field(default_factory=dict)
    """Versions that should end and stay, each with why."""


def ends_of(lines: BranchLines, asked: EndingRules) -> Ends:
    """What ends on every line. What a branch has to keep, main keeps, too: they are one version."""
    found = Ends()
    left: dict[str, str] = {id_: why.text for id_, why in asked.kept.items()}
    unsure = not any(_of_eraser(line) for line in lines.lines) and not asked.holding
    for line in sorted(lines.lines, key=lambda line: line.name == MAIN):
        below = _below(line, lines, asked, unsure=unsure)
        begin = end = min(line.snapshots, default=0)
        while end < below and (reason := _stays(line, lines, end, left, asked.history)) is None:
            end += 1
        found.numbers[line.name] = range(begin, end)
        for number in range(end, below):
            id_ = lines.id_of(line.name, number)
            reason = _stays(line, lines, number, left, asked.history)
            first = lines.id_of(line.name, end)
            found.stays[id_] = reason or _after(first, found.stays[first])
        held = {lines.id_of(line.name, n): f"branch {line.name} holds it" for n in line.snapshots if n >= end}
        left = held | left
    kept = _kept_by_tags(lines)
    for line in lines.lines:
        found.ids |= {lines.id_of(line.name, number) for number in found.numbers[line.name]}
    found.ids -= kept | {lines.id_of(line.name, n) for line in lines.lines for n in _remaining(line, found)}
    return found


def _after(first: str, why: str) -> str:
    """Why what comes after a version that stays has to stay; a floor is one for all of them."""
    return why if code_of(why) is Code.FLOOR else _ORDER.format(first, why)


def _remaining(line: BranchLine, found: Ends) -> Collection[int]:
    return [number for number in line.snapshots if number not in found.numbers[line.name]]


def _kept_by_tags(lines: BranchLines) -> set[str]:
    return {lines.id_of(line.name, tag.number) for line in lines.lines for tag in line.tags.values() if not tag.apart}


def _of_eraser(line: BranchLine) -> int:
    """The last snapshot of a line that an erasure made."""
    return max((number for number, commit in line.snapshots.items() if commit.user.startswith(ERASER)), default=0)


def _below(line: BranchLine, lines: BranchLines, asked: EndingRules, *, unsure: bool) -> int:
    if line.head is None:
        return 0
    holding = [number + 1 for number in line.snapshots if lines.id_of(line.name, number) in asked.holding]
    clean = 0 if asked.ahead else _of_eraser(line)
    end = line.head + 1 if asked.ahead else line.head
    if asked.ahead and (holding or asked.merges):
        return end
    if not clean and (asked.merges or unsure):
        return end
    return min(max([clean, *holding]), end)


def _stays(
    line: BranchLine, lines: BranchLines, number: int, left: Mapping[str, str], history: VersionFate
) -> str | None:
    """Why a snapshot cannot end."""
    if history is VersionFate.REFUSE:
        return _HEADS_ONLY
    if number not in line.snapshots:
        return f"snapshot {number} of branch {line.name} is missing: expiry cannot pass a hole"
    if (why := left.get(lines.id_of(line.name, number))) is not None:
        return why
    return next((f"consumer {name} reads {line.name}/{n} next" for name, n in sorted(line.consumers.items())
                  if n <= number), None)  # fmt: skip


def foreseen(lines: BranchLines, asked: EndingRules, ids: Collection[str]) -> dict[str, ForeseenVersion]:
    """What becomes of each of these versions."""
    ends = ends_of(lines, asked)
    heads = set(lines.heads().values())
    tags = {lines.id_of_commit(line.name, tag) for line in lines.lines for tag in line.tags.values()}
    found: dict[str, ForeseenVersion] = {}
    for id_ in ids:
        holds = id_ in asked.holding or (asked.merges and id_ not in asked.kept)
        if id_ in asked.kept:
            found[id_] = ForeseenVersion(Fate.STAYS, asked.kept[id_].text)
        elif id_ in heads:
            found[id_] = ForeseenVersion(Fate.REWRITTEN if holds else Fate.CLEAN)
        elif id_ in tags:
            found[id_] = _of_tag(asked.history) if holds else ForeseenVersion(Fate.CLEAN)
        elif id_ in ends.ids:
            found[id_] = ForeseenVersion(Fate.EXPIRES, "Paimon expires the oldest first; none of them can be rewritten")
        elif id_ in ends.stays:
            found[id_] = ForeseenVersion(Fate.STAYS, ends.stays[id_])
        else:
            found[id_] = ForeseenVersion(Fate.CLEAN)
    return found


def _of_tag(history: VersionFate) -> ForeseenVersion:
    if tag_stays(history):
        return ForeseenVersion(Fate.STAYS, tag_stays(history))
    return ForeseenVersion(Fate.REWRITTEN)


def tag_stays(history: VersionFate) -> str | None:
    """Why no tag is rewritten."""
    if history is VersionFate.REFUSE:
        return _HEADS_ONLY
    return "tags are kept as they are (history: expire)" if history is VersionFate.EXPIRE else None
