"""Erasing people from one Paimon table (spec §4; `formats.erasing`).

`erase` rewrites what holds somebody in heads and tags (`rewrite.py`) and says which snapshots end (`ends.py`); they
cannot be rewritten under their ids, because Paimon 0.9 has no such thing and each stands on the one before. `purge`
ends them: a branch's own by their names, because Paimon's expiry would take what main reads; main's by that expiry,
which is rehearsed and may take no file that was not named. What is left of the named files goes by its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ebbtide.errors import RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.erasing import Erased, Erasing, Erasure, Fate, ForeseenVersion, Intend
from ebbtide.formats.paimon.ends import EndingRules, Ends, ends_of, foreseen, tag_stays
from ebbtide.formats.paimon.expire import Range, expire
from ebbtide.formats.paimon.java import open_changer, open_library, open_rewriter
from ebbtide.formats.paimon.lines import MAIN, BranchLines, PaimonCommit, parse_lines
from ebbtide.formats.paimon.read import read
from ebbtide.formats.paimon.rewrite import OpenedTarget, Rewriting, Target
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.removal import FileDeletion
from ebbtide.storage.remove import remove_empty_folders, remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ANOTHER_SCHEMA = "its snapshot has another schema"


@dataclass(frozen=True, slots=True)
class _Now:
    """The table as it is: its reading, its lines, and why nothing of it can be rewritten."""

    reading: Reading
    lines: BranchLines
    refusal: str | None
    has_key: bool

    def holding(self, paths: Collection[str]) -> frozenset[str]:
        """The versions that hold one of these files."""
        bits = 0
        for file in self.reading.files:
            if file.path in paths:
                bits |= file.versions or 0
        return frozenset(id_ for n, id_ in enumerate(self._ids()) if bits >> n & 1)

    def only_in(self, ids: Collection[str]) -> dict[str, int]:
        """The files that these versions hold and nothing else does."""
        mask = sum(1 << n for n, id_ in enumerate(self._ids()) if id_ in ids)
        return {
            file.path: file.bytes or 0
            for file in self.reading.files
            if file.versions and not file.versions & ~mask and not file.outlives
        }

    def beside(self, ids: Collection[str]) -> set[str]:
        """All other files."""
        return {file.path for file in self.reading.files} - self.only_in(ids).keys()

    @property
    def merges(self) -> bool:
        """Whether what a version holds can be told from no file of it alone."""
        return self.has_key or any(file.role == "deletion vector" for file in self.reading.files)

    def _ids(self) -> list[str]:
        return [transaction.id for transaction in self.reading.transactions]


def _now(found: TableHandle, catalog: Catalog, spark: SparkSession) -> _Now:
    reading = read(found, catalog, Depth.FILES, spark)
    answer = open_library(found, catalog, spark).history()
    lines = parse_lines(str(found.id), answer["branches"])
    rewriter = open_rewriter(found, catalog, spark)
    refusals = (rewriter.refusal(line.name) for line in lines.lines)
    reasons = [reason for reason in refusals if reason is not None]
    if any(line.changelogs for line in lines.lines):
        reasons.append("it has changelogs that outlived their snapshots, and the newest of them never goes")
    refusal = next(iter((*reading.unknown, *reasons)), None)
    return _Now(reading, lines, refusal, bool(json.loads(answer["schema"])["primaryKeys"]))


class _PaimonErasing(Erasing):
    def foresee(self, erasure: Erasure, catalog: Catalog, spark: SparkSession) -> Mapping[str, ForeseenVersion]:
        now = _now(erasure.found, catalog, spark)
        ids = [transaction.id for transaction in now.reading.transactions]
        if now.refusal is not None:
            return dict.fromkeys(ids, ForeseenVersion(Fate.STAYS, now.refusal))
        holding = now.holding(erasure.files) | erasure.versions
        return foreseen(now.lines, EndingRules(holding, now.merges, erasure.history, erasure.kept, ahead=True), ids)

    def erase(self, erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Erased:
        found = erasure.found
        before = _now(found, catalog, spark)
        if before.refusal is not None:
            refs = [f"{ref.kind}:{ref.name}" for ref in before.reading.refs]
            return Erased(
                version=before.lines.heads().get(MAIN), retained=dict.fromkeys(refs or ["branch:main"], before.refusal)
            )
        work = Rewriting(found, erasure.people, open_rewriter(found, catalog, spark), spark, intend)
        retained = _rewrite(work, before, erasure)
        after = _now(found, catalog, spark)
        dirty = erasure.files | work.paths
        asked = EndingRules(after.holding(dirty) | erasure.versions, after.merges, erasure.history, erasure.kept)
        ends = ends_of(after.lines, asked)
        intend(after.only_in(ends.ids))
        return Erased(
            version=after.lines.heads().get(MAIN),
            rewritten_files=work.files,
            written_bytes=work.bytes,
            rewritten_versions=tuple(sorted(_rewritten(after.lines))),
            ending=tuple(sorted(ends.ids)),
            retained={**_stays(after.lines, ends), **retained},
        )

    def purge(
        self,
        erasure: Erasure,
        erased: Erased,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
        intend: Intend,  # noqa: ARG002 - no commit of this call lets go of a file
    ) -> FileDeletion:
        found, named = erasure.found, set(paths)
        now = _now(found, catalog, spark)
        if now.refusal is not None:
            return FileDeletion(because=now.refusal)
        ending = set(erased.ending)
        failed = _end_on_branches(erasure, now, ending, named, catalog, spark, before_batch)
        now = _now(found, catalog, spark)
        deletion = _end_on_main(found, now, ending, named, catalog, spark, before_batch)
        now = _now(found, catalog, spark)
        rest = named - {file.path for file in now.reading.files}
        failed |= deletion.failed
        failed |= remove_files(rest, catalog.options, before_batch, erasure.places)
        failed = {path: why for path, why in failed.items() if path in named}
        folders = {path.rpartition("/")[0] for path in rest if "/bucket-" in path}
        failed |= remove_empty_folders(folders, found.location, erasure.places)
        return FileDeletion(failed=failed, because=deletion.because)


def _rewrite(work: Rewriting, now: _Now, erasure: Erasure) -> dict[str, str]:
    """Rewrite heads, then tags; what stays as it is and may hold somebody, with why."""
    tags = {Target(line.name, name): commit for line in now.lines.lines for name, commit in sorted(line.tags.items())}
    heads = [Target(line.name) for line in now.lines.lines]
    everywhere = {target: work.open(target) for target in (*heads, *tags)}
    shape = work.shape(everywhere[Target(MAIN)])
    opened = {target: each for target, each in everywhere.items() if work.shape(each) == shape}
    work.look(opened.values())
    others = {target: each for target, each in everywhere.items() if target not in opened}
    retained = {_named(target): _ANOTHER_SCHEMA for target, each in others.items() if not work.holds_nobody(each)}
    wanting = {target for target, each in opened.items() if work.theirs(each) or work.says_more(each)}
    for target in heads:
        # A branch that shows a snapshot of another one would keep that one from letting it end.
        borrows = not now.lines.heads().get(target.branch, "").startswith(f"{target.branch}/")
        if target in wanting or (borrows and wanting and target in opened):
            work.head(opened[target], anyway=borrows)
    return retained | _rewrite_tags(work, now, erasure, opened, {t: each for t, each in tags.items() if t in opened})


def _rewrite_tags(
    work: Rewriting,
    now: _Now,
    erasure: Erasure,
    opened: Mapping[Target, OpenedTarget],
    tags: Mapping[Target, PaimonCommit],
) -> dict[str, str]:
    retained: dict[str, str] = {}
    todo: list[Target] = []
    for target, commit in tags.items():
        id_ = now.lines.id_of_commit(target.branch, commit)
        if not (work.theirs(opened[target]) or work.says_more(opened[target])):
            if commit.apart:
                work.like.setdefault(
                    (commit.number, commit.committed_at), work.rewriter.ask("text", opened[target].state)
                )
        elif (held := erasure.kept.get(id_)) is not None:
            retained[_named(target)] = held.text
        elif (why := tag_stays(erasure.history) or work.unfit(opened[target])) is not None:
            retained[_named(target)] = why
        elif not opened[target].fixed and work.theirs(opened[target]):
            retained[_named(target)] = "only the head has an index of its dynamic buckets"
        else:
            todo.append(target)
    if todo:
        ids = {now.lines.id_of_commit(target.branch, tags[target]) for target in todo}
        work.intend(now.only_in(ids))
    for target in todo:
        work.tag(opened[target], tags[target].number, tags[target].committed_at)
    return retained


def _named(target: Target) -> str:
    if not target.tag:
        return f"branch:{target.branch}"
    return f"tag:{target.tag}" if target.branch == MAIN else f"tag:{target.branch}/{target.tag}"


def _rewritten(lines: BranchLines) -> set[str]:
    return {lines.id_of_commit(line.name, commit) for line in lines.lines for commit in line.rewritten.values()}


def _stays(lines: BranchLines, ends: Ends) -> dict[str, str]:
    heads = {id_: f"branch:{name}" for name, id_ in lines.heads().items()}
    return {heads.get(id_, f"version:{id_}"): why for id_, why in sorted(ends.stays.items())}


def _end_on_branches(
    erasure: Erasure,
    now: _Now,
    ending: set[str],
    named: set[str],
    catalog: Catalog,
    spark: SparkSession,
    before_batch: Callable[[], None],
) -> dict[str, str]:
    """Snapshots of branches end: their files go by name, what readers begin with is told first."""
    found, failed = erasure.found, dict[str, str]()
    for line in now.lines.lines:
        ids = {now.lines.id_of(line.name, n): n for n in sorted(line.snapshots)}
        gone = [ids[id_] for id_ in takewhile(ending.__contains__, ids)]
        if line.name == MAIN or not gone:
            continue
        if line.head in gone:
            raise RefusedError(f"{found.id}: the versions of branch {line.name} are others by now; nothing was removed")
        places = {f"{found.location}/branch/branch-{line.name}/snapshot/snapshot-{n}" for n in gone}
        if not places <= named:
            continue
        before_batch()
        open_rewriter(found, catalog, spark).begin(line.name, gone[-1] + 1)
        failed |= remove_files(places, catalog.options, before_batch, erasure.places)
    return failed


def _end_on_main(
    found: TableHandle,
    now: _Now,
    ending: set[str],
    named: set[str],
    catalog: Catalog,
    spark: SparkSession,
    before_batch: Callable[[], None],
) -> FileDeletion:
    main = next(line for line in now.lines.lines if line.name == MAIN)
    gone = {n for n in main.snapshots if now.lines.id_of(MAIN, n) in ending}
    if not gone:
        return FileDeletion()
    begin, end = min(main.snapshots), max(gone) + 1
    if main.head is None or end > main.head:
        raise RefusedError(f"{found.id}: the versions of main are others by now; nothing was removed")
    tagged = {tag.number for tag in main.tags.values() if not tag.apart}
    if late := set(range(begin, end)) - gone - tagged:
        return FileDeletion(because=f"snapshot {min(late)} is older and stays: Paimon expires the oldest first")
    changer: Any = open_changer(found, catalog, spark)
    range_ = Range(MAIN, begin, end, frozenset(range(begin, end)) - gone)
    relative = {path.removeprefix(f"{found.location}/") for path in named}
    spared = {path.removeprefix(f"{found.location}/") for path in now.beside(ending)}
    freed = expire(changer, [range_], relative, before_batch, spared)
    return FileDeletion(
        failed={f"{found.location}/{name}": why for name, why in freed.failed.items()}, because=freed.because
    )


ERASING = _PaimonErasing()
