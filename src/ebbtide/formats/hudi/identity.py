"""What tells a Hudi table from another one in the same folder: its name, and the first commit that it ever had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.formats.hudi.discover import META_FOLDER
from ebbtide.formats.hudi.timeline import Timeline, read_timeline
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.storage.files import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def identity_of(timeline: Timeline) -> str:
    """Commits are archived, never forgotten: the archive is part of the timeline here."""
    first = min((commit.id for commit in timeline.commits), default="")
    return f"{timeline.properties.get('hoodie.table.name', '')}@{first}"


def identity_at(found: TableHandle, catalog: Catalog, spark: SparkSession) -> str | None:
    """The identity of the table that Hudi opens there now; None where nothing is."""
    if open_store(found.location, catalog.options).stat(f"{found.location}/{META_FOLDER}") is None:
        return None
    return identity_of(read_timeline(found, spark))
