"""A project with what one `Ebbtide` holds for it. Every verb takes a plain project, too, and opens what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.config import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.kernel.work_folder import WorkFolder
    from ebbtide.state.database import Database


class Connections:
    """What is opened when somebody asks for it, once."""

    def __init__(self) -> None:
        self._database: Database | None = None
        self._folders: list[WorkFolder] = []

    def folder(self, inside: Path) -> Path:
        """A new folder for what a DataFrame reads, until somebody closes this or the process ends.

        Not until nobody holds this any more: the DataFrame does not.
        """
        from ebbtide.kernel.work_folder import WorkFolder

        made = WorkFolder(inside, "views-")
        self._folders.append(made)
        _FOLDERS.append(made)
        return made.path

    def database(self, address: str) -> Database:
        if self._database is None:
            from ebbtide.state.database import Database

            self._database = Database(address)
        return self._database

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        while self._folders:
            made = self._folders.pop()
            _FOLDERS.remove(made)
            made.cleanup()


_FOLDERS: list[WorkFolder] = []


@dataclass(frozen=True, slots=True)
class OpenedProject(Project):
    theirs: SparkSession | None = field(default=None, repr=False, compare=False)
    """Somebody else's session, beside which ours is made."""
    connections: Connections = field(default_factory=Connections, repr=False, compare=False)


def opened(project: Project, theirs: SparkSession | None = None) -> OpenedProject:
    """The project as it is, with the session that it was opened beside."""
    if isinstance(project, OpenedProject) and theirs is None:
        return project
    return OpenedProject(**{each.name: getattr(project, each.name) for each in fields(Project)}, theirs=theirs)


def database_of(project: Project) -> Database:
    """The project's state: the one that is open, or a new one for this verb alone."""
    connections = project.connections if isinstance(project, OpenedProject) else Connections()
    return connections.database(project.state)
