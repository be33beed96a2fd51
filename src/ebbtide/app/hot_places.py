"""Hot tables as places where a person may lie: nobody looks at their rows, and each is named for it."""

from __future__ import annotations

from ebbtide.config import Project
from ebbtide.config.hottier import names_of_hot_tables
from ebbtide.model.ids import written
from ebbtide.state.database import Database
from ebbtide.state.hottier import HotReader


def hot_places(project: Project, database: Database) -> tuple[str, ...]:
    """Those of `hottier/*.yml`, and those that were added and that no file names any more: rows stay."""
    named = names_of_hot_tables(project.root)
    ids = {written(name) for name in named}
    with database.reader() as state:
        left = [record.id for record in HotReader(state.connection).tables() if record.id not in ids]
    return (*named, *left)
