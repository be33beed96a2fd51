"""`Ebbtide.ledger`: the verbs of `ebbtide ledger` on one project."""

from __future__ import annotations

from pathlib import Path

from ebbtide.app import ledger as use
from ebbtide.app.results.ledger import (
    Audit,
    Export,
    Inclusion,
    Leaf,
    LedgerEntry,
    LedgerKey,
    Pruned,
    SignedCheckpoint,
)
from ebbtide.app.results.shown import ResultRows
from ebbtide.config import Project


class LedgerVerbs:
    """What was done, signed and provable by anyone. (`ebbtide ledger check` needs no project, and stays a command.)"""

    def __init__(self, project: Project) -> None:
        self._project = project

    def init(self, *, origin: str | None = None) -> LedgerKey:
        """Make the ledger: its origin, its key and its first entry. Doing it again changes nothing."""
        return LedgerKey.of(use.init(self._open(), origin=origin))

    def key(self) -> LedgerKey:
        """The key that signs now."""
        return LedgerKey.of(use.keys(self._open()).ledger[-1].key)

    def checkpoint(self, *, adopt: bool = False, up_to: int | None = None) -> SignedCheckpoint:
        """The signed checkpoint of everything that was appended."""
        return SignedCheckpoint.of(use.checkpoint(self._open(), adopt=adopt, up_to=up_to))

    def entries(self, start: int = 0, stop: int | None = None) -> ResultRows[LedgerEntry]:
        """What was done, from index `start` up to `stop`, as a ledger says it that is what was signed."""
        with self._open().verified() as log:
            return ResultRows(LedgerEntry.of(index, body) for index, _, body in log.rows(start, stop))

    def log(
        self,
        *kinds: str,
        dataset: str | None = None,
        request: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> ResultRows[LedgerEntry]:
        """What was done, oldest first, narrowed by what is given; all of it is held against what was signed before."""
        from ebbtide.app.ledger_log import LogFilter, read_log

        asked = LogFilter.of(dataset=dataset, request=request, kinds=kinds, since=since, until=until)
        return ResultRows(LedgerEntry(**row) for row in read_log(self._project, asked))

    def entry(self, index: int) -> Leaf:
        """One entry, held against the tree before it is handed out."""
        found = use.entry(self._open(), index)
        return Leaf(index, found.leaf_hash.hex(), found.leaf.decode())

    def prove(self, index: int) -> Inclusion:
        """The proof that an entry is in the ledger."""
        proof = use.prove(self._open(), index)
        return Inclusion(index, proof.checkpoint.size, proof.encode().decode())

    def rotate(self) -> LedgerKey:
        """Let a new key sign from now on."""
        return LedgerKey.of(use.rotate(self._open()))

    def audit(self) -> Audit:
        """The whole database against everything that was signed."""
        return Audit.of(use.audit(self._open()))

    def witness(self, url: str, key: str) -> SignedCheckpoint:
        """The last checkpoint with the cosignature of a witness."""
        return SignedCheckpoint.of(use.witness(self._open(), url, key))

    def prune(self, before: str, *, dry_run: bool = False) -> Pruned:
        """Remove the bodies of entries from before a date or an instant. Their hashes stay, and so do all proofs."""
        return Pruned.of(use.prune(self._open(), before, dry_run=dry_run))

    def export(self, folder: str | Path) -> Export:
        """Write the ledger as static files (C2SP tlog-tiles)."""
        done = use.export(self._open(), Path(folder))
        return Export(str(folder), done.written, done.minimum_index)

    def _open(self) -> use.Ledger:
        return use.open_ledger(self._project)
