"""`Ebbtide`: the library's front door. Every method is a verb of the command line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.config import Project, load_project
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import ScanReport, Watcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Ebbtide:
    """One project."""

    def __init__(self, project: str | Path | Project = "ebbtide.yml") -> None:
        self.project = project if isinstance(project, Project) else load_project(Path(project))

    def scan(self, *, history_only: bool = False, full: bool = False, watcher: Watcher | None = None) -> ScanReport:
        """Bring the inventory up to date; only what changed is read, unless `full`.

        `history_only` leaves out partitions and files: quicker, good for looking only.
        """
        from ebbtide.app.scan import run_scan

        depth = Depth.HISTORY if history_only else Depth.FILES
        return run_scan(self.project, now=datetime.now(UTC), depth=depth, full=full, watcher=watcher)

    def tables(self) -> list[dict[str, Any]]:
        from ebbtide.app.tables import list_tables

        return list_tables(self.project)

    def history(self, dataset: str) -> dict[str, Any]:
        from ebbtide.app.history import dataset_history

        return dataset_history(self.project, dataset)

    def labels(self, table: str | None = None) -> dict[str, Any]:
        """The labels of every table, or of one with the way that each label took."""
        from ebbtide.app.labels import list_labels, table_labels

        return list_labels(self.project) if table is None else table_labels(self.project, table)

    def lineage(self, *, table: str | None = None) -> dict[str, Any]:
        """The edges of all lineage, or those into and out of one table, and what could not be told."""
        from ebbtide.app.lineage import list_lineage

        return list_lineage(self.project, table=table)

    def incremental(
        self, table: str, *, since: str | None = None, allow_retention: bool = False, allow_marked: bool = False
    ) -> DataFrame:
        """The rows that a table's main branch gained after the transaction `since`.

        Raises `FullReadNeededError` when retention removed what lies between, unless `allow_retention`, and
        `MarkedError` when a transaction of it is scheduled for deletion, unless `allow_marked`.
        """
        from ebbtide.app.incremental import read_incremental

        return read_incremental(
            self.project, table, since=since, allow_retention=allow_retention, allow_marked=allow_marked
        )

    def check(self, *names: str, now: datetime | None = None, time_limit: float = 600) -> list[dict[str, Any]]:
        """Run checks, all or the named ones. A check that passed has no rows."""
        from ebbtide.app.checks import as_json, run_checks

        found = run_checks(self.project, names, now=now or datetime.now(UTC), time_limit=time_limit)
        return [as_json(outcome) for outcome in found]

    def report(self, name: str, *, day: date | None = None, time_limit: float = 600) -> list[dict[str, Any]]:
        """The rows of a report for one day, today unless it is named."""
        from ebbtide.app.checks import run_report

        days = [day or datetime.now(UTC).date()]
        return [row for _, result in run_report(self.project, name, days, time_limit=time_limit) for row in result.rows]

    def errors(self) -> list[dict[str, Any]]:
        """The rows of `scan_errors` of the last scan."""
        return list(Inventory.open(self.project.inventory).errors())

    def information_schema(self, section: str) -> DataFrame:
        """A section of the information schema as a DataFrame of the project's session."""
        from ebbtide.app.scan import start_session

        return Inventory.open(self.project.inventory).frame(start_session(self.project), section)
