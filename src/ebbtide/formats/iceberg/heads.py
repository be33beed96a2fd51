"""Rewriting the heads of branches without people: one overwrite for each, of exactly the files that hold somebody.

An overwrite takes the deletes of these files with it, lets appends go on beside it, and is refused where a writer
deleted from them or compacted them meanwhile. It is looked through again until nothing of them came since.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.table.snapshots import Snapshot

from ebbtide.errors import ConflictError
from ebbtide.formats.conflicts import ATTEMPTS, retry_on_conflict
from ebbtide.formats.erasing import Erasure, Intend
from ebbtide.formats.iceberg.going import going_from, key_of
from ebbtide.formats.iceberg.java import CONFLICTS, Base, IcebergJavaTable
from ebbtide.formats.iceberg.rewrite import Discard, IcebergRewriter, locations
from ebbtide.formats.iceberg.staging import Staging, deletes_of
from ebbtide.formats.iceberg.survey import Survey
from ebbtide.formats.iceberg.traces import Traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Variant = tuple[str, tuple[str, ...]]
"""A data file, and the deletes that a version has for it."""


@dataclass(slots=True)
class Known:
    """What was looked through: `hits` hold somebody, all others of `seen` nobody who is to leave them.

    A hit that is not among `seen` was found by a search, which does not ask what is to be left of a row. `made` is what
    heads have in place of their hits by now.
    """

    seen: set[str]
    hits: set[str]
    made: dict[Variant, list[Any]] = field(default_factory=dict)
    rewritten: set[str] = field(default_factory=set)
    written_bytes: int = 0

    def shared(self, survey: Survey) -> dict[Variant, list[Any]]:
        """What of `made` some version has: with the same deletes the same is left of a file in every version. Only
        for a commit that is refused where the table changed since: till then nobody ends the version that has it.
        """
        return {each: files for each, files in self.made.items() if survey.every.issuperset(locations(files))}

    def look(self, rewriter: IcebergRewriter, tasks: Mapping[str, Any]) -> None:
        """Look through what nobody looked through yet; where rows are redacted, through what the search found, too."""
        fresh = {path: task for path, task in tasks.items() if path not in self.seen}
        found = rewriter.found_in({path: task for path, task in fresh.items() if path not in self.hits})
        found |= fresh.keys() & self.hits
        if rewriter.people.redacts:
            changing = rewriter.changing({path: fresh[path] for path in found})
            self.hits -= found - changing
            found = changing
        self.hits |= found
        self.seen |= fresh.keys()


@dataclass(frozen=True, slots=True)
class Heads:
    table: IcebergJavaTable
    erasure: Erasure
    spark: SparkSession
    known: Known
    intend: Intend
    discard: Discard

    def rewrite(self) -> None:
        """Every branch, until none of them holds anybody."""
        for branch in sorted(self.table.refresh().branches):
            self.rewrite_branch(branch)

    def rewrite_branch(self, branch: str) -> None:
        subject = f"{self.table.found.id} on {branch}"
        for _ in range(ATTEMPTS):
            if not retry_on_conflict(subject, CONFLICTS, lambda: self._rewrite(branch)):
                return
        raise ConflictError(
            f"{subject}: rows of these people came again {ATTEMPTS} times", hint="run again when it is quieter"
        )

    def _rewrite(self, branch: str) -> bool:
        """One commit; False where there is nothing to do."""
        base = self.table.refresh()
        head = base.branches.get(branch)
        if head is None:
            return False
        snapshot = base.files.table.snapshot_by_id(head)
        assert snapshot is not None
        survey = Survey(base.files, Traces(self.erasure.people, base.files.table))
        fresh, hits = survey.beside(head, self.known.seen), survey.among(head, self.known.hits)
        if not fresh and not hits and not survey.deleting(snapshot):
            return False
        rewriter = IcebergRewriter(self.spark, self.table.java, self.erasure.people)
        with ExitStack() as until:
            tasks = dict(Staging(self.spark, self.table.java, until).tasks(head))
        self.known.look(rewriter, tasks)
        going = self._going(base, survey, snapshot, tasks)
        if not going.files and not going.deletes:
            return False
        self.intend(going.sizes)
        made = rewriter.left_of_each({path: tasks[path] for path in going.files}, self.discard)
        new = [file for files in made.values() for file in files]
        try:
            self.table.overwrite(branch, head, [tasks[path].file() for path in going.files], going.deletes, new)
        except BaseException as error:
            self.discard(error, locations(new))
            raise
        self.known.seen |= set(locations(new))
        self.known.made |= {(path, deletes_of(tasks[path])): files for path, files in made.items()}
        self.known.rewritten |= set(going.files)
        self.known.written_bytes += sum(int(file.fileSizeInBytes()) for file in new)
        return True

    def _going(self, base: Base, survey: Survey, snapshot: Snapshot, tasks: Mapping[str, Any]) -> _Going:
        going = going_from(survey, snapshot, tasks, self.known.hits)
        gone = dict(going.deletes)
        if going.deleting - {path for path, _ in gone}:  # keys that no file has any more
            every = {key_of(each): each for each in self.table.delete_files_of(base, snapshot.snapshot_id)}
            gone |= {key: each for key, each in every.items() if key[0] in going.deleting}
        sizes = {path: int(tasks[path].file().fileSizeInBytes()) for path in going.files}
        sizes |= {path: int(each.fileSizeInBytes()) for (path, _), each in gone.items()}
        return _Going(list(going.files), list(gone.values()), sizes)


@dataclass(frozen=True, slots=True)
class _Going:
    files: list[str]
    deletes: list[Any]
    sizes: Mapping[str, int]
