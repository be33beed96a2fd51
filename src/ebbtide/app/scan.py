"""`ebbtide scan`: bring the inventory up to date."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.app.opened import OpenedProject
from ebbtide.app.storage_history import record_stored
from ebbtide.config import Project
from ebbtide.errors import SetupError
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import ScanReport, scan
from ebbtide.run import RunContext, keep_handlers, quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(project: Project) -> SparkSession:
    """The project's Spark session, after a look whether it can run the project's formats."""
    from ebbtide.spark.session import formats_of_session, profile, session

    for catalog in project.catalogs.values():
        if catalog.format not in formats_of_session():
            raise SetupError(
                f"catalog {catalog.name}: {catalog.format} does not run on the profile {profile()}",
                hint="use the default profile, Spark 3.5",
            )
    theirs = project.theirs if isinstance(project, OpenedProject) else None
    with keep_handlers():
        return session(project.catalogs.values(), master=project.spark.master, conf=project.spark.conf, theirs=theirs)


def start_plan_session(project: Project, inventory: Inventory) -> SparkSession:
    """A session beside the project's for questions about the inventory, prepared for few rows where there are few."""
    from ebbtide.spark.session import plan_session

    return plan_session(start_session(project), few_rows=inventory.is_small)


def scan_project(
    project: Project,
    *,
    now: datetime,
    depth: Depth = Depth.FILES,
    full: bool = False,
    verify: bool = False,
    context: RunContext | None = None,
) -> ScanReport:
    """`ebbtide scan`, as a run that others can watch."""
    from ebbtide.app.runs import watched

    with watched(quiet(context), project, "scan") as run:
        report = run_scan(project, now=now, depth=depth, full=full, verify=verify, context=run.context)
        broken = report.current.error_count
        run.ended(
            4 if broken else 1 if report.in_place else 0,
            f"{len(report.read)} of {len(report.current.entries)} read, {broken} errors",
        )
        if depth is Depth.FILES:
            record_stored(project, now=now)
        return report


def run_scan(
    project: Project,
    *,
    now: datetime,
    depth: Depth = Depth.FILES,
    full: bool = False,
    verify: bool = False,
    context: RunContext | None = None,
) -> ScanReport:
    """Scan all catalogs of the project."""
    context = quiet(context)
    # Until one rename makes it current, nobody sees anything of a scan.
    with context.cancellation.at_once():
        return scan(
            list(project.catalogs.values()),
            project.inventory,
            lambda: start_session(project),
            now=now,
            depth=depth,
            full=full,
            given_up={each.dataset for each in project.ignore if each.is_catalog},
            verify=verify,
            context=context,
        )
