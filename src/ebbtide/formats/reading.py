"""How a format is read, and nothing that changes it: all of a format that `verify` is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, Found, NotFound, Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Reader:
    """The reading side of one format. It has no commit and no free: who judges a removal cannot make one."""

    discover: Callable[[Catalog], Iterable[Found | NotFound]]
    """As `Format.discover`."""
    read_files: Callable[[Found, Catalog, SparkSession | None], Reading]
    """One dataset down to its files; what cannot be read whole raises `UnreadableError`."""


def load_reader(name: str) -> Reader:
    format_ = load_format(name)
    return Reader(
        discover=format_.discover,
        read_files=lambda found, catalog, spark: format_.read(found, catalog, Depth.FILES, spark),
    )
