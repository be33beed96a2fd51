"""`Ebbtide`: the library's front door. Every method is a verb of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.app.opened import opened
from ebbtide.app.retention_verbs import RetentionVerbs
from ebbtide.app.verb import time_asked, verb
from ebbtide.config import Project, load_project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.app.erase_verbs import EraseVerbs
    from ebbtide.app.ledger_verbs import LedgerVerbs
    from ebbtide.app.results.governance import (
        CheckResult,
        DepartedResult,
        Drift,
        LabelExplanation,
        LabelsResult,
        LineageResult,
        Repair,
        SuggestionsResult,
    )
    from ebbtide.app.results.lake import (
        CondemnedTable,
        History,
        OrphansResult,
        RunRow,
        ScanError,
        ScanResult,
        StateUpgrade,
        Table,
    )
    from ebbtide.app.results.shown import ResultRows
    from ebbtide.app.tier_verbs import TierVerbs
    from ebbtide.run import RunContext


class Ebbtide(RetentionVerbs):
    """One project, beside the session `spark` where one is given.

    That one keeps its settings, catalogs, current database and views: ours is another of the same context, and a
    DataFrame that a verb hands out is one of theirs. What the context lacks is a `SetupError` with the setting to add.
    """

    def __init__(self, project: str | Path | Project = "ebbtide.yml", *, spark: SparkSession | None = None) -> None:
        loaded = project if isinstance(project, Project) else load_project(Path(project))
        self.project = opened(loaded, spark)
        if spark is not None:
            from ebbtide.spark.foreign import refuse_lacking
            from ebbtide.spark.session import profile

            refuse_lacking(spark, loaded.catalogs.values(), profile())

    @classmethod
    def init(cls, folder: str | Path = ".", *, name: str | None = None, pack: str | None = None) -> Ebbtide:
        """Write a commented project into a folder, and a pack into a new or an existing one; nothing is overwritten."""
        from ebbtide.app.init import init_project

        init_project(Path(folder), name=name, pack=pack)
        return cls(Path(folder))

    def __repr__(self) -> str:
        return f"Ebbtide({self.project.name!r}, catalogs: {', '.join(self.project.catalogs) or 'none'})"

    def __enter__(self) -> Ebbtide:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, and remove what DataFrames of the information schema read.

        The session stays: starting one takes long, and somebody else may be using it.
        """
        self.project.connections.close()

    @property
    def ledger(self) -> LedgerVerbs:
        """What was done, signed and provable by anyone."""
        from ebbtide.app.ledger_verbs import LedgerVerbs

        return LedgerVerbs(self.project)

    @property
    def erase(self) -> EraseVerbs:
        """Requests of people, what is held of them, and the proof that nothing is left."""
        from ebbtide.app.erase_verbs import EraseVerbs

        return EraseVerbs(self.project)

    @property
    def tier(self) -> TierVerbs:
        """PostgreSQL in front of the lake: chunks, their mirror, and what drops them."""
        from ebbtide.app.tier_verbs import TierVerbs

        return TierVerbs(self.project)

    @verb
    def scan(
        self,
        *,
        history_only: bool = False,
        full: bool = False,
        verify: bool = False,
        context: RunContext | None = None,
    ) -> ScanResult:
        """Bring the inventory up to date; only what changed is read, unless `full`. `verify` reads everything, too, and
        names the datasets of which a commit says something else than it did (`changed_in_place`).

        `history_only` leaves out partitions and files: quicker, good for looking only. Tables whose contract says
        `enforce: true` are repaired where their settings differ from it.
        """
        from ebbtide.app.contracts import after_scan
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.governance import Drift, Repair
        from ebbtide.app.results.lake import ScanResult
        from ebbtide.app.scan import scan_project
        from ebbtide.formats.base import Depth

        depth = Depth.HISTORY if history_only else Depth.FILES
        scanned = scan_project(
            self.project, now=datetime.now(UTC), depth=depth, full=full, verify=verify, context=context
        )
        agreed = after_scan(self.project)
        entries = scanned.current.entries
        return ScanResult(
            scan_id=scanned.current.scan_id,
            scanned_at=scanned.current.scanned_at,
            datasets=len(entries),
            read=scanned.read,
            gone=scanned.gone,
            locked={entry.table_id: tuple(entry.locked_by) for entry in entries.values() if entry.locked_by},
            errors=self.errors(),
            drift=built_rows(Drift, agreed["drift"]),
            repaired=built_rows(Repair, agreed["repaired"]),
            changed_in_place=scanned.in_place,
            warnings=tuple(agreed["mislabelled"]),
        )

    @verb
    def tables(self) -> ResultRows[Table]:
        """Every dataset with its branches, transactions, files and bytes."""
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.lake import Table
        from ebbtide.app.tables import list_tables

        return built_rows(Table, list_tables(self.project))

    @verb
    def history(self, dataset: str) -> History:
        """The transactions of a dataset, branch by branch, from oldest to newest."""
        from ebbtide.app.history import dataset_history
        from ebbtide.app.results.built import built
        from ebbtide.app.results.lake import History

        return built(History, dataset_history(self.project, dataset))

    @verb
    def labels(self) -> LabelsResult:
        """The labels of every table."""
        from ebbtide.app.labels import list_labels
        from ebbtide.app.results.built import built
        from ebbtide.app.results.governance import LabelsResult

        return built(LabelsResult, list_labels(self.project))

    @verb
    def explain_labels(self, table: str) -> LabelExplanation:
        """The labels of one table and of its columns, with the way that each label took."""
        from ebbtide.app.labels import table_labels
        from ebbtide.app.results.built import built
        from ebbtide.app.results.governance import LabelExplanation

        return built(LabelExplanation, table_labels(self.project, table))

    @verb
    def lineage(self, *, table: str | None = None) -> LineageResult:
        """The edges of all lineage, or those into and out of one table, and what could not be told."""
        from ebbtide.app.lineage import list_lineage
        from ebbtide.app.results.built import built
        from ebbtide.app.results.governance import LineageResult

        return built(LineageResult, list_lineage(self.project, table=table))

    @verb
    def incremental(
        self,
        table: str,
        *,
        since: str | None = None,
        branch: str = "main",
        allow_retention: bool = False,
        allow_marked: bool = False,
    ) -> DataFrame:
        """The rows that a branch of a table gained after the transaction `since`, which may lie before its fork.

        Raises `FullReadNeededError` when retention removed what lies between, unless `allow_retention`, and
        `MarkedError` when a transaction of it is scheduled for deletion, unless `allow_marked`.
        """
        from ebbtide.app.incremental import read_incremental

        rows = read_incremental(
            self.project, table, since=since, branch=branch, allow_retention=allow_retention, allow_marked=allow_marked
        )
        return self._handed_over(rows)

    @verb
    def orphans(self, *, context: RunContext | None = None) -> OrphansResult:
        """List the storage, scan, and tell what nothing references, and which tables no catalog lists."""
        from ebbtide.app.orphans import list_orphans
        from ebbtide.app.results.built import built
        from ebbtide.app.results.lake import OrphansResult

        return built(OrphansResult, list_orphans(self.project, now=datetime.now(UTC), context=context))

    @verb
    def condemn(
        self, path: str, *, unsafe: bool = False, dry_run: bool = False, context: RunContext | None = None
    ) -> CondemnedTable:
        """Let policies treat a table that no catalog lists as orphans."""
        from ebbtide.app.orphans import condemn
        from ebbtide.app.results.built import built
        from ebbtide.app.results.lake import CondemnedTable

        found = condemn(self.project, path, now=datetime.now(UTC), unsafe=unsafe, dry_run=dry_run, context=context)
        return built(CondemnedTable, found)

    @verb
    def suggest_labels(self, *tables: str) -> SuggestionsResult:
        """PII labels for columns that look personal: of the named tables, or of all."""
        from ebbtide.app.classify import suggest_labels
        from ebbtide.app.results.built import built
        from ebbtide.app.results.governance import SuggestionsResult

        return built(SuggestionsResult, suggest_labels(self.project, tables))

    @verb
    def create_tables(self, *tables: str, dry_run: bool = False) -> list[str]:
        """Create the tables of contracts that are missing, or the named ones; gives their names."""
        from ebbtide.app.contracts import create_tables

        return create_tables(self.project, tables, dry_run=dry_run)

    @verb
    def contract_drift(self) -> ResultRows[Drift]:
        """Where tables differ from their contracts, by the last scan."""
        from ebbtide.app.contracts import check_contracts
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.governance import Drift

        return built_rows(Drift, check_contracts(self.project))

    @verb
    def repair_tables(self, *tables: str, dry_run: bool = False) -> ResultRows[Repair]:
        """Repair settings of the named tables, or of those with `enforce: true`."""
        from ebbtide.app.contracts import repair_tables
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.governance import Repair

        return built_rows(Repair, repair_tables(self.project, tables, dry_run=dry_run))

    @verb
    def departed(self, *, file: bool = False, dry_run: bool = False, as_of: datetime | None = None) -> DepartedResult:
        """Who left and is still in a table, as counts; with `file` as erasure requests in the state, too."""
        from ebbtide.app.departed import departed_users
        from ebbtide.app.results.built import built
        from ebbtide.app.results.governance import DepartedResult

        return built(DepartedResult, departed_users(self.project, file=file, dry_run=dry_run, as_of=as_of))

    @verb
    def check(
        self, *names: str, now: datetime | None = None, time_limit: float = 600, context: RunContext | None = None
    ) -> ResultRows[CheckResult]:
        """Run checks, all or the named ones. A check that passed has no rows."""
        from ebbtide.app.checks import as_json, run_checks
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.governance import CheckResult

        found = run_checks(self.project, names, now=time_asked(now), time_limit=time_limit, context=context)
        return built_rows(CheckResult, map(as_json, found))

    @verb
    def report(
        self, name: str, *, day: date | None = None, time_limit: float = 600, context: RunContext | None = None
    ) -> ResultRows[Mapping[str, Any]]:
        """The rows of a report for one day, today unless it is named. Their columns are the report's own."""
        from ebbtide.app.checks import run_report
        from ebbtide.app.results.shown import ResultRows

        now = datetime.now(UTC)
        found = run_report(self.project, name, [day or now.date()], now=now, time_limit=time_limit, context=context)
        return ResultRows(row for _, result in found for row in result.rows)

    @verb
    def errors(self) -> ResultRows[ScanError]:
        """Catalogs that did not answer the last scan, and datasets that could not be read."""
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.lake import ScanError
        from ebbtide.inventory.information_schema import Inventory

        return built_rows(ScanError, Inventory.open(self.project.inventory).errors())

    @verb
    def runs(self, *, limit: int | None = 20) -> ResultRows[RunRow]:
        """What runs now, on whatever host, and how the last runs ended; the newest first."""
        from ebbtide.app.results.built import built_rows
        from ebbtide.app.results.lake import RunRow
        from ebbtide.app.runs import list_runs

        return built_rows(RunRow, list_runs(self.project, now=datetime.now(UTC), limit=limit))

    @verb
    def cancel_run(self, run_id: str, *, context: RunContext | None = None) -> RunRow:
        """Ask a run to stop at its next boundary; nothing is left half done."""
        from ebbtide.app.results.built import built
        from ebbtide.app.results.lake import RunRow
        from ebbtide.app.runs import cancel_run
        from ebbtide.run import quiet

        return built(RunRow, cancel_run(self.project, run_id, quiet(context)))

    def upgrade_state(self, *, dry_run: bool = False) -> StateUpgrade:
        """Bring the state's tables to the layout that this Ebbtide works with."""
        from ebbtide.app.results.lake import StateUpgrade
        from ebbtide.app.state import upgrade_state

        done = upgrade_state(self.project, dry_run=dry_run)
        return StateUpgrade(done.before, done.after, dry_run)

    def keep_lineage_event(self, body: bytes) -> Path:
        """Keep one OpenLineage event, as `lineage listen` does with those that jobs post."""
        from ebbtide.app.listen import store_event

        return store_event(self.project, body)

    @verb
    def information_schema(self, section: str, *, now: datetime | None = None) -> DataFrame:
        """A section of the information schema as checks and reports see it, with labels and what policies make of it.

        A DataFrame of the project's session, or of the one that it was opened beside, which can be read until `close`.
        """
        from ebbtide.app.information_schema import section as section_of

        project = self.project
        frame = section_of(project, section, lambda: project.connections.folder(project.inventory), now=time_asked(now))
        return self._handed_over(frame)

    def _handed_over(self, frame: DataFrame) -> DataFrame:
        from ebbtide.spark.foreign import handed_over

        return frame if self.project.theirs is None else handed_over(frame, self.project.theirs)
