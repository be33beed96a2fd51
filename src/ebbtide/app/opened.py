"""A project with what one `Ebbtide` holds for it. Every verb takes a plain project, too, and opens what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ebbtide.config import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Opened(Project):
    theirs: SparkSession | None = field(default=None, repr=False, compare=False)
    """Somebody else's session, beside which ours is made."""


def opened(project: Project, theirs: SparkSession | None = None) -> Opened:
    """The project as it is, with the session that it was opened beside."""
    return Opened(**{each.name: getattr(project, each.name) for each in fields(Project)}, theirs=theirs)
