"""Whose a metadata file is, by what it says. Names do not tell: a view's looks like a table's, and another table may
lie in a folder that one has left (spec §2, "no other table's marker between"; hazards 3, 9, 34).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.errors import UnreadableError
from ebbtide.inventory.current import Current, DatasetEntry
from ebbtide.inventory.ownership import SHAPES, options_near
from ebbtide.kernel.engine import literal
from ebbtide.model.dataset import Catalog
from ebbtide.storage.files import open_store
from ebbtide.storage.unpack import gunzip

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READERS = 8
_HEAD = 4096
_VIEW, _TABLE = "view-uuid", "table-uuid"


def are_views(paths: Iterable[str], catalogs: Mapping[str, Catalog]) -> list[bool | None]:
    """Whether each metadata file is that of a view, which no list of tables has; None where nobody can tell."""

    def is_view(path: str) -> bool | None:
        # Writers say first whose it is; only where they do not, all of it is read.
        if f'"{_TABLE}"'.encode() in (_content(path, catalogs, _HEAD) or b""):
            return False
        content = _content(path, catalogs)
        return None if content is None else f'"{_VIEW}"'.encode() in content

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(is_view, paths))


def without_views(files: pa.Table, catalogs: Mapping[str, Catalog]) -> pa.Table:
    """Files that nothing references, but for metadata of views: a view may have the folder of a table, where that was
    renamed or moved and the view has its name now. What cannot be read may be one.
    """
    paths = sorted(path for path in files["path"].to_pylist() if re.search(SHAPES["iceberg"], path, re.DOTALL))
    kept = [path for path, is_view in zip(paths, are_views(paths, catalogs), strict=True) if is_view is not False]
    return files.filter(pc.invert(pc.is_in(files["path"], pa.array(kept, pa.string())))) if kept else files


def without_taken(engine: DuckDBPyConnection, current: Current, catalogs: Mapping[str, Catalog]) -> Current:
    """The datasets with those of their former folders alone that no other table took: what lies there may be its.

    Asks `listed` and `in_files`.
    """
    left = {place: entry for entry in current.entries.values() for place in entry.was_at}
    if not left:
        return current
    inside = " OR ".join(f"starts_with(path, {literal(f'{place}/')})" for place in left)
    shaped = " OR ".join(f"regexp_matches(path, {literal(f'(?s){pattern}')})" for pattern in SHAPES.values())
    rows = engine.execute(
        f"SELECT path FROM listed WHERE ({inside}) AND ({shaped}) AND path NOT IN (SELECT path FROM in_files)"
    ).fetchall()
    markers = [(path, left[place]) for (path,) in rows for place in _marked(path) if place in left]
    with ThreadPoolExecutor(_READERS) as pool:
        own = pool.map(lambda marker: _is_own(marker[0], marker[1], catalogs), markers)
        foreign = [path for (path, _), is_own in zip(markers, own, strict=True) if not is_own]
    taken = {place for path in foreign for place in _marked(path)}
    entries = {
        table_id: replace(entry, was_at=tuple(place for place in entry.was_at if place not in taken))
        for table_id, entry in current.entries.items()
    }
    return replace(current, entries=entries)


def _marked(path: str) -> set[str]:
    """The folders that a file makes look like a table."""
    found = (re.search(pattern, path, re.DOTALL) for pattern in SHAPES.values())
    return {match.group(1) for match in found if match is not None}


def _is_own(path: str, entry: DatasetEntry, catalogs: Mapping[str, Catalog]) -> bool:
    """Whether a marker is of the table itself, or of a view, which owns nothing but its own metadata."""
    if not re.search(SHAPES["iceberg"], path, re.DOTALL):
        return False
    try:
        said: Any = json.loads(_content(path, catalogs) or b"null")
    except ValueError:
        return False
    return isinstance(said, dict) and (_VIEW in said or (bool(entry.identity) and said.get(_TABLE) == entry.identity))


def _content(path: str, catalogs: Mapping[str, Catalog], most: int | None = None) -> bytes | None:
    """What a metadata file says, or what its first bytes do; None where it cannot be read."""
    try:
        with open_store(path, options_near(path, catalogs.values())).open(path) as file:
            content: bytes = file.read(most)
        # Views' metadata is compressed by default, and its name says so only where the writer is Iceberg itself.
        if not content.startswith(b"\x1f\x8b"):
            return content
        return gunzip(content) if most is None else zlib.decompressobj(31).decompress(content)
    except (UnreadableError, OSError, ValueError, zlib.error):
        return None
