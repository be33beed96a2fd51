"""`Ebbtide.incremental`: what is new in a table since a transaction (spec §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.app.new_rows import incremental
from ebbtide.app.scan import start_session
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_incremental(
    project: Project, table: str, *, since: str | None, branch: str, allow_retention: bool, allow_marked: bool
) -> DataFrame:
    """The table as its catalog has it now, and the marks as the state has them now: no inventory is needed."""
    id_ = DatasetId.parse(table)
    catalog = project.catalogs.get(id_.catalog)
    if catalog is None:
        raise InputError(f"no catalog {id_.catalog!r} in the project", hint=f"one of {', '.join(project.catalogs)}")
    answers = load_format(catalog.format).discover(catalog)
    found = next((answer for answer in answers if isinstance(answer, TableHandle) and answer.id == id_), None)
    if found is None:
        raise InputError(f"catalog {id_.catalog} has no table {id_}", hint="`ebbtide tables` lists them")
    with open_state(project).reader() as state:
        marked = {m.key.object for m in state.marks(datasets=[str(id_)]) if m.key.target == "transactions"}
    return incremental(
        start_session(project), found, catalog, since=since, branch=branch, marked=marked,
        allow_retention=allow_retention, allow_marked=allow_marked,
    )  # fmt: skip
