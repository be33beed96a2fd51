"""How a format is read, and nothing that changes it: all of a format that `verify` is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Reader:
    """The reading side of one format. It cannot commit and cannot delete: who judges a removal cannot make one."""

    discover: Callable[[Catalog], Iterable[TableHandle | NotFound]]
    """As `Format.discover`."""
    read_files: Callable[[TableHandle, Catalog, SparkSession | None], Reading]
    """One dataset down to its files; what cannot be read whole raises `UnreadableError`."""


def load_reader(name: str) -> Reader:
    format_ = load_format(name)
    return Reader(
        discover=format_.discover,
        read_files=lambda found, catalog, spark: format_.read(found, catalog, Depth.FILES, spark),
    )
