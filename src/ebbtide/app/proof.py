"""The proof after a run: every file that the touched datasets reference is there and can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebbtide.config import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prove(project: Project, spark: SparkSession, touched: Sequence[str]) -> dict[str, list[str]]:
    """What is wrong with each of these datasets, by who knows nothing of what was done to them."""
    from ebbtide.inventory.information_schema import Inventory
    from ebbtide.verify.after_sweep import check_datasets

    inventory = Inventory.open(project.inventory)
    work = [
        (project.catalogs[handle.id.catalog], handle)
        for dataset in touched
        if (handle := inventory.found(dataset)) is not None
    ]
    findings = check_datasets(work, spark)
    told: dict[str, list[str]] = {str(handle.id): [] for _, handle in work}
    for missing in findings.missing:
        told[missing.dataset].append("a referenced file is missing")
    for unread in findings.unreadable:
        told[unread.dataset].append(unread.reason)
    return told
