"""The commits of a table and what names them: branches, tags, changelogs and consumers.

Ids of snapshots collide between branches, and a branch begins with a copy of the snapshot that it was made from. So a
transaction is known as `branch/id`, and one that several branches hold goes by the name of the branch where it was
made (formats.md, "Calls that bite").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from ebbtide.errors import UnreadableError
from ebbtide.model.history import Ref, RefKind

MAIN = "main"
REWRITTEN = "ebbtide-rewritten-"
"""How the commit user of a tag begins that an erasure rewrote: it is not the snapshot any more whose number it has."""
# What Paimon 0.9 writes. Another field may point to files that this version knows nothing of (hazard 19).
_FIELDS = {
    *("version", "id", "schemaId", "baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest"),
    *("commitUser", "commitIdentifier", "commitKind", "timeMillis", "logOffsets", "totalRecordCount"),
    *("deltaRecordCount", "changelogRecordCount", "watermark", "statistics", "tagCreateTime", "tagTimeRetained"),
}
_NEWEST = 3


@dataclass(frozen=True, slots=True)
class PaimonCommit:
    """One snapshot, as its own file, a tag or a changelog keeps it."""

    number: int
    base: str
    delta: str
    changelog: str | None
    index: str | None
    statistics: str | None
    operation: str
    committed_at: datetime
    user: str = ""
    apart: bool = False
    """Whether a tag holds it that was rewritten: no commit came before it, and none goes on from it."""


@dataclass(frozen=True, slots=True)
class BranchLine:
    """What one branch's folder holds. `commits` are all that can be read: snapshots, and tags of expired ones."""

    name: str
    snapshots: Mapping[int, PaimonCommit]
    tags: Mapping[str, PaimonCommit]
    changelogs: Mapping[int, PaimonCommit]
    consumers: Mapping[str, int]
    kept_for: Mapping[str, str]
    """How long a tag asks to be kept, for tags that say so."""

    commits: Mapping[int, PaimonCommit] = field(default_factory=dict)
    rewritten: Mapping[int, PaimonCommit] = field(default_factory=dict)
    """What tags hold that were rewritten, by the number of the snapshot that they were made of."""

    @property
    def head(self) -> int | None:
        return max(self.snapshots, default=None)

    def runs(self) -> Iterator[list[PaimonCommit]]:
        """The commits, oldest first, in stretches without a gap; what was rewritten, each by itself."""
        yield from ([commit] for _, commit in sorted(self.rewritten.items()))
        run: list[PaimonCommit] = []
        for number in sorted(self.commits):
            if run and run[-1].number != number - 1:
                yield run
                run = []
            run.append(self.commits[number])
        if run:
            yield run


@dataclass(frozen=True, slots=True)
class BranchLines:
    """All branches of a table, main first, with the native id of each commit."""

    lines: tuple[BranchLine, ...]
    ids: Mapping[tuple[str, int], str]
    unknown: tuple[str, ...]
    newer: tuple[str, ...] = ()
    """Those reasons of `unknown` that are files of a newer Paimon."""

    def id_of(self, branch: str, number: int) -> str:
        return self.ids.get((branch, number), f"{branch}/{number}")

    def id_of_commit(self, branch: str, commit: PaimonCommit) -> str:
        """The same, also of what a tag holds that was rewritten: a branch's copy of main's is the same one."""
        if not commit.apart:
            return self.id_of(branch, commit.number)
        mains = next((line.rewritten.get(commit.number) for line in self.lines if line.name == MAIN), None)
        owner = MAIN if mains is not None and mains.delta == commit.delta else branch
        return f"{owner}/rewritten/{commit.number}"

    def changelogs(self) -> Iterator[tuple[str, PaimonCommit]]:
        """The changelogs that outlived their snapshots, with their native ids: a line beside each branch's own."""
        for line in self.lines:
            for number, commit in line.changelogs.items():
                yield changelog_id(line.name, number), commit

    def parent_of(self, id_: str) -> str | None:
        branch, _, number = id_.rpartition("/")
        if "/" in branch:
            return None
        return None if number == "1" else self.id_of(branch, int(number) - 1)

    def heads(self) -> dict[str, str]:
        """The native id of each branch's newest snapshot."""
        return {line.name: self.id_of(line.name, line.head) for line in self.lines if line.head is not None}

    def refs(self) -> tuple[Ref, ...]:
        """Branches, then tags. A branch's copy of main's tag is the same tag; its own ones are `branch/tag`."""
        heads = self.heads()
        refs = [Ref(line.name, RefKind.BRANCH, heads.get(line.name), line.name == MAIN) for line in self.lines]
        tags: dict[str, str] = {}
        for line in self.lines:
            for name, commit in sorted(line.tags.items()):
                id_ = self.id_of_commit(line.name, commit)
                if line.name == MAIN:
                    tags[name] = id_
                elif tags.get(name) != id_:
                    tags[f"{line.name}/{name}"] = id_
        return (*refs, *(Ref(name, RefKind.TAG, id_) for name, id_ in tags.items()))


def changelog_id(branch: str, number: int) -> str:
    """The native id of a changelog: nobody travels to it, but who follows the table reads it."""
    return f"{branch}/changelog/{number}"


def parse_lines(subject: str, branches: Mapping[str, Mapping[str, Mapping[str, str]]]) -> BranchLines:
    """The lines of a table from the texts of its files."""
    unknown: set[str] = set()
    lines = [_line(subject, name, folder, unknown) for name, folder in branches.items()]
    lines.sort(key=lambda line: (line.name != MAIN, line.name))
    newer = tuple(sorted(unknown))
    for line in lines:
        numbers = sorted(line.snapshots)
        for before, after in pairwise(numbers):
            if after != before + 1:
                unknown.add(f"branch {line.name}: snapshots between {before} and {after} are missing")
    return BranchLines(tuple(lines), _identities(lines), tuple(sorted(unknown)), newer)


def _line(subject: str, name: str, folder: Mapping[str, Mapping[str, str]], unknown: set[str]) -> BranchLine:
    place = "" if name == MAIN else f"branch/branch-{name}/"

    def commits(kind: str) -> dict[str, PaimonCommit]:
        return {
            key: _commit(subject, f"{place}{kind}/{kind}-{key}", text, unknown) for key, text in folder[kind].items()
        }

    def numbered(kind: str) -> dict[int, PaimonCommit]:
        found = commits(kind)
        for key, commit in found.items():
            if key != str(commit.number):
                raise _broken(subject, f"{place}{kind}/{kind}-{key}", f"it says that it is number {commit.number}")
        return {commit.number: commit for commit in found.values()}

    snapshots, tags, changelogs = numbered("snapshot"), commits("tag"), numbered("changelog")
    together: dict[int, PaimonCommit] = dict(snapshots)
    rewritten: dict[int, PaimonCommit] = {}
    for tag, commit in tags.items():
        known = together
        if commit.user.startswith(REWRITTEN) and not _is(snapshots.get(commit.number), commit):
            tags[tag] = commit = replace(commit, apart=True)
            known = rewritten
        if not _is(known.setdefault(commit.number, commit), commit):
            raise _broken(subject, f"{place}tag/tag-{tag}", f"snapshot {commit.number} is another commit by now")
    return BranchLine(
        name,
        snapshots,
        tags,
        changelogs,
        {
            key: _next_snapshot(subject, f"{place}consumer/consumer-{key}", text)
            for key, text in folder["consumer"].items()
        },
        {
            key: kept
            for key, text in folder["tag"].items()
            if (kept := _kept_for(subject, f"{place}tag/tag-{key}", text))
        },
        together,
        rewritten,
    )


def _is(one: PaimonCommit | None, other: PaimonCommit) -> bool:
    """Whether both are the same commit: its delta list has a name that no other one has."""
    return one is not None and one.delta == other.delta


def _commit(subject: str, path: str, text: str, unknown: set[str]) -> PaimonCommit:
    said = _json(subject, path, text)
    if more := sorted(said.keys() - _FIELDS):
        unknown.add(f"{path} was written by a newer Paimon: {', '.join(more)}")
    if (version := said.get("version") or 1) > _NEWEST:
        unknown.add(f"{path} has format version {version}, known is up to {_NEWEST}")
    try:
        return PaimonCommit(
            int(said["id"]),
            _text(said, "baseManifestList"),
            _text(said, "deltaManifestList"),
            said.get("changelogManifestList"),
            said.get("indexManifest"),
            said.get("statistics"),
            _text(said, "commitKind"),
            datetime.fromtimestamp(int(said["timeMillis"]) / 1000, UTC),
            str(said.get("commitUser") or ""),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _broken(subject, path, f"{error} is missing or wrong") from error


def _json(subject: str, path: str, text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError as error:
        raise _broken(subject, path, str(error)) from error
    if not isinstance(said, dict):
        raise _broken(subject, path, "it is no JSON object")
    return said


def _text(said: Mapping[str, Any], key: str) -> str:
    if not isinstance(said[key], str) or not said[key]:
        raise ValueError(key)
    return str(said[key])


def _next_snapshot(subject: str, path: str, text: str) -> int:
    try:
        return int(_json(subject, path, text)["nextSnapshot"])
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(subject, path, "it has no next snapshot") from error


def _kept_for(subject: str, path: str, text: str) -> str | None:
    """How long a tag asks to be kept; Paimon 0.9 writes a number of seconds."""
    kept = _json(subject, path, text).get("tagTimeRetained")
    if kept is None:
        return None
    return f"{int(kept)} s" if isinstance(kept, int | float) else str(kept)


def _broken(subject: str, path: str, reason: str) -> UnreadableError:
    return UnreadableError(subject, f"{path} cannot be read: {reason}", hint="restore the file from a copy")


def _identities(lines: list[BranchLine]) -> dict[tuple[str, int], str]:
    """The native id of every commit that a branch holds.

    Copies are known by their delta list, whose name no other commit has.
    """
    lowest = {line.name: min(line.commits, default=0) for line in lines}
    holders: dict[tuple[int, str], list[str]] = {}
    for line in lines:
        for number, commit in line.commits.items():
            holders.setdefault((number, commit.delta), []).append(line.name)
    main = next(line for line in lines if line.name == MAIN)
    tagged = {line.name: {commit.number for commit in line.tags.values()} for line in lines}
    ids: dict[tuple[str, int], str] = {}
    for (number, _), names in sorted(holders.items(), key=lambda item: MAIN not in item[1]):
        owner = min(names, key=lambda name: (name != MAIN, lowest[name], name))
        # Main may have dropped what a branch was made from; the tag that came along still says that it was main's.
        began_here = number == lowest[owner] and number in tagged[owner] and number < min(main.snapshots, default=0)
        if began_here and f"{MAIN}/{number}" not in ids.values():
            owner = MAIN
        ids.update({(name, number): f"{owner}/{number}" for name in names})
    return ids
