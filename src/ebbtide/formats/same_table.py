"""No statement that changes a table is believed by its name (hazard 31).

A name is text before it is a name: a session may substitute in it, know another catalog by it, or find a table there
that somebody made since. So before and after everything that changes a table, whoever finds it by that name must find
the table that was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ebbtide.errors import RefusedError
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def same_table(found: TableHandle, catalog: Catalog, spark: SparkSession, *, goes: bool = False) -> Iterator[None]:
    """Refuse to begin, or say so at the end, where the session finds another table by the dataset's name.

    `goes` says that the table itself is to go: then it may be gone before and after.
    """
    if not found.identity:
        raise RefusedError(
            f"{found.id}: nothing tells it from another table of its name; nothing was changed",
            hint="scan again; an Iceberg table of an old version gets an id by an upgrade to format version 2",
        )
    _refuse_another(found, catalog, spark, "nothing was changed", goes=goes)
    yield
    _refuse_another(found, catalog, spark, "look at what changed there", goes=goes)


def _refuse_another(found: TableHandle, catalog: Catalog, spark: SparkSession, what: str, *, goes: bool) -> None:
    now = load_format(catalog.format).identity(found.id, catalog, spark)
    if now == found.identity or (now is None and goes):
        return
    reason = "there is no such table any more" if now is None else "the session finds another table by that name"
    hint = "scan again; if it stays, the session knows another catalog by the name of this one"
    raise RefusedError(f"{found.id}: {reason}; {what}", hint=hint)
