"""`ebbtide doctor`: what is missing, and what to type. Starts no JVM, changes nothing, and shows no secret.

A setting that may hold one (an address, a key, what a variable stands for) is never part of a row: rows name things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ebbtide.app.doctor_machine import LEAST_FREE, look_at_machine, room, size
from ebbtide.app.finding import Health, HealthRow, broken, missing, ok
from ebbtide.app.ledger import key_folder
from ebbtide.config import Project, load_project
from ebbtide.config.environment import is_set, names_in
from ebbtide.config.yaml import plain_values
from ebbtide.errors import EbbtideError, told
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog
from ebbtide.state.database import Database
from ebbtide.state.migrations import LATEST

_UPGRADE = "ebbtide state upgrade"


def examine(path: Path) -> Iterator[HealthRow]:
    """This machine first, then the project, as far as it can be read. A row as soon as it is known."""
    yield from look_at_machine()
    file = path / "ebbtide.yml" if path.is_dir() else path
    if not file.exists():
        yield missing("project", f"no {file.absolute()}", "ebbtide init  # or name one with --project")
        return
    yield from _variables(file)
    try:
        project = load_project(file)
    except EbbtideError as error:
        yield broken("project", error.message, _to_type(error, f"edit {file}"))
        return
    yield ok("project", f"{project.name} at {project.path}")
    yield from _project(project)


def _project(project: Project) -> Iterator[HealthRow]:
    yield room("project folder", project.root / ".ebbtide", f"make room for {size(LEAST_FREE)} in {project.root}")
    if project.inventory.parent != project.root / ".ebbtide":
        yield room("inventory", project.inventory, f"make room for {size(LEAST_FREE)} in {project.inventory}")
    for catalog in project.catalogs.values():
        yield _catalog(catalog, project.path)
    yield from _packages(project.catalogs.values())
    yield _state(project)
    yield from _keys(key_folder(project).path)


def _variables(file: Path) -> Iterator[HealthRow]:
    """The variables that connections in the project's files ask for: a load of the project stops at the first."""
    asked: dict[str, None] = {}
    for each in (file, *sorted((file.parent / "hottier").glob("*.yml"))):
        try:
            values = plain_values(each)
        except EbbtideError:  # told when the project is loaded
            continue
        for text in _connections(values):
            asked |= dict.fromkeys(names_in(text))
    for name in asked:
        if is_set(name):
            yield ok(f"variable {name}", "is set")
        else:
            yield missing(f"variable {name}", "is empty or not set", f"export {name}=…")


def _connections(values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        for key in ("state", "catalogs", "server"):
            yield from _texts(values.get(key))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)


def _catalog(catalog: Catalog, file: Path) -> HealthRow:
    """Asked as a scan would, up to its first table."""
    what = f"catalog {catalog.name}"
    try:
        first = next(iter(load_format(catalog.format).discover(catalog)), None)
    except EbbtideError as error:
        return broken(what, error.message, _to_type(error, f"edit {file}"))
    except Exception as error:  # whatever a driver raises: its words may quote an address
        return broken(what, f"does not answer: {told(error)}", f"edit {file}")
    return ok(what, f"{catalog.format}, answers" + ("; it has no table yet" if first is None else ""))


def _packages(catalogs: Iterable[Catalog]) -> Iterator[HealthRow]:
    """Optional packages, of which a project that has something on S3 needs one."""
    places = [text for catalog in catalogs for text in (catalog.warehouse, *catalog.options.values())]
    on_s3 = any(place.startswith(("s3://", "s3a://")) for place in places)
    for package, extra, needed in (("boto3", "s3", on_s3), ("s3fs", "s3", on_s3), ("stdnum", "suggest", False)):
        what, command = f"package {package}", f"pip install 'ebbtide[{extra}]'"
        if find_spec(package):
            yield ok(what, "is installed")
        elif needed:
            yield missing(what, "the project has catalogs on S3", command)
        else:
            used = "catalogs on S3" if extra == "s3" else "`ebbtide classify --suggest`"
            yield HealthRow(what, Health.OPTIONAL, f"for {used}", command)


def _state(project: Project) -> HealthRow:
    try:
        with closing(Database(project.state)) as database:
            version = database.version()
            name = database.name
    except EbbtideError as error:
        return broken("state", error.message, _to_type(error, f"edit {project.path}"))
    if version == 0:
        return ok("state", f"{name}: none yet, the first verb that writes makes it")
    if version < LATEST:
        return broken("state", f"{name}: layout {version}, this Ebbtide works with {LATEST}", _UPGRADE)
    if version > LATEST:
        return broken("state", f"{name}: layout {version} is of a newer Ebbtide", "pip install --upgrade ebbtide")
    return ok("state", f"{name}, layout {version}")


def _keys(folder: Path) -> Iterator[HealthRow]:
    """The ledger refuses a key that others may read; who may write into the folder can take another one's place."""
    if not folder.exists():
        yield ok("ledger keys", f"none yet in {folder}")
        return
    try:
        keys = sorted(each for each in folder.iterdir() if each.suffix in (".key", ".keys"))
        open_ = [f"chmod 600 {key}" for key in keys if key.stat().st_mode & 0o077]
        if folder.stat().st_mode & 0o022:
            open_.append(f"chmod 700 {folder}")
    except OSError as error:
        yield broken("ledger keys", f"{folder} cannot be read: {error.strerror}", f"chmod 700 {folder}")
        return
    for command in open_:
        yield broken("ledger keys", f"others may use {command.split()[-1]}", command)
    if not open_:
        yield ok("ledger keys", f"{len(keys)} in {folder}, for their owner only")


def _to_type(error: EbbtideError, otherwise: str) -> str:
    return error.hint or otherwise
