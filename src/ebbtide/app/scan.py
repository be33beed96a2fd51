"""`ebbtide scan`: bring the inventory up to date."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.app.opened import Opened
from ebbtide.config import Project
from ebbtide.errors import SetupError
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import ScanReport, Watcher, scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Unwatched:
    """Nobody looks on."""

    def begin(self, datasets: int, to_read: int) -> None: ...

    def advance(self, datasets: int) -> None: ...


def start_session(project: Project) -> SparkSession:
    """The project's Spark session, after a look whether it can run the project's formats."""
    from ebbtide.spark.session import formats_of_session, profile, session

    for catalog in project.catalogs.values():
        if catalog.format not in formats_of_session():
            raise SetupError(
                f"catalog {catalog.name}: {catalog.format} does not run on the profile {profile()}",
                hint="use the default profile, Spark 3.5",
            )
    theirs = project.theirs if isinstance(project, Opened) else None
    return session(project.catalogs.values(), master=project.spark.master, conf=project.spark.conf, theirs=theirs)


def start_plan_session(project: Project, inventory: Inventory) -> SparkSession:
    """A session beside the project's for questions about the inventory, prepared for few rows where there are few."""
    from ebbtide.spark.session import plan_session

    return plan_session(start_session(project), few_rows=inventory.is_small)


def run_scan(
    project: Project, *, now: datetime, depth: Depth = Depth.FILES, full: bool = False, watcher: Watcher | None = None
) -> ScanReport:
    """Scan all catalogs of the project."""
    return scan(
        list(project.catalogs.values()),
        project.inventory,
        lambda: start_session(project),
        now=now,
        depth=depth,
        full=full,
        watcher=watcher or Unwatched(),
    )
