"""What a lake holds, told by its files: catalog database, metadata, manifests, log and Parquet, each read as its
specification has it.

The oracle of the property test of sweeps. It shares nothing with what it checks: no line of the package under test, and
no library of a table format (`test_oracle` makes sure).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import fastavro
import pyarrow.parquet as pq

Row = tuple[Any, ...]
_POSITION_DELETES = 1


@dataclass
class Seen:
    """One table as it lies there: what each name points at, the files that each version needs, the rows of each head.

    `lost` are the files that each version needs and has not, at the time of looking; `lists_what_went` says that old
    versions stay listed when their files are gone (Delta's log).
    """

    heads: dict[str, str] = field(default_factory=dict)
    versions: dict[str, frozenset[Path]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    here: frozenset[Path] = frozenset()
    lost: dict[str, frozenset[Path]] = field(default_factory=dict)
    lists_what_went: bool = False

    def missing(self, version: str) -> set[Path]:
        """Files that the version needs and that are not there now."""
        return {path for path in self.versions[version] if not path.exists()}


def iceberg(database: Path, catalog: str) -> dict[str, Seen]:
    """Every Iceberg table of a JDBC catalog, by name; heads are `branch:…` and `tag:…`."""
    with sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True) as connection:
        found = connection.execute(
            "SELECT table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ?", (catalog,)
        ).fetchall()
    return {name: _iceberg_table(_local(location)) for name, location in found}


def _local(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def _iceberg_table(metadata_file: Path) -> Seen:
    metadata = json.loads(metadata_file.read_text())
    seen = Seen(here=files_under(_local(metadata["location"])))
    manifests: dict[str, tuple[int, list[str]]] = {}
    contents: dict[str, list[tuple[int, str]]] = {}
    for snapshot in metadata.get("snapshots", []):
        id_ = str(snapshot["snapshot-id"])
        listed = _local(snapshot["manifest-list"])
        needed, content = {metadata_file, listed}, []
        if listed.exists():
            for entry in avro(listed):
                path = entry["manifest_path"]
                needed.add(_local(path))
                if path not in manifests and _local(path).exists():
                    manifests[path] = (entry.get("content") or 0, _live_entries(_local(path)))
                kind, files = manifests.get(path, (0, []))
                content += [(kind, file) for file in files]
        seen.versions[id_] = frozenset(needed | {_local(file) for _, file in content})
        contents[id_] = content
    seen.lost = {version: frozenset(seen.missing(version)) for version in seen.versions}
    names = metadata.get("refs") or {}
    seen.heads = {f"{ref['type']}:{name}": str(ref["snapshot-id"]) for name, ref in names.items()}
    read: dict[Path, list[Row]] = {}
    for name, id_ in seen.heads.items():
        seen.rows[name] = sorted(_iceberg_rows(contents[id_], read), key=repr)
    return seen


def avro(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as stream:
        found: list[Any] = list(fastavro.reader(stream))
        return found


def _live_entries(path: Path) -> list[str]:
    deleted = 2
    return [entry["data_file"]["file_path"] for entry in avro(path) if entry["status"] != deleted]


def _iceberg_rows(content: Iterable[tuple[int, str]], read: dict[Path, list[Row]]) -> Iterable[Row]:
    gone: dict[Path, set[int]] = {}
    for kind, name in content:
        if kind == _POSITION_DELETES:
            for row in pq.read_table(_local(name), partitioning=None).to_pylist():
                gone.setdefault(_local(row["file_path"]), set()).add(row["pos"])
    for kind, name in content:
        if kind == 0:
            path = _local(name)
            dead = gone.get(path, set())
            yield from (row for n, row in enumerate(_parquet(path, read)) if n not in dead)


def _parquet(path: Path, read: dict[Path, list[Row]]) -> list[Row]:
    if path not in read and not path.exists():
        read[path] = [("missing", str(path))]
    if path not in read:
        columns = pq.ParquetFile(path).read().to_pydict()
        read[path] = list(zip(*(columns[name] for name in sorted(columns)), strict=True))
    return read[path]


def delta(warehouse: Path) -> dict[str, Seen]:
    """Every Delta table of the warehouse by name, replayed from the JSON commits of its log."""
    return {log.parent.name: _delta_table(log.parent) for log in sorted(warehouse.glob("*/*/_delta_log"))}


def _delta_table(folder: Path) -> Seen:
    seen = Seen(here=files_under(folder))
    live: dict[str, Mapping[str, Any]] = {}
    newest = ""
    for commit in sorted(folder.glob("_delta_log/*.json")):
        if not commit.stem.isdigit():
            continue
        actions = [json.loads(line) for line in commit.read_text().splitlines() if line.strip()]
        for action in actions:
            if remove := action.get("remove"):
                live.pop(remove["path"], None)
        for action in actions:
            if add := action.get("add"):
                assert "deletionVector" not in add or add["deletionVector"] is None, "not read by hand"
                live[add["path"]] = add
        newest = str(int(commit.stem))
        seen.versions[newest] = frozenset({commit, *(folder / unquote(path) for path in live)})
    seen.heads = {"branch:main": newest}
    seen.lists_what_went = True
    seen.lost = {version: frozenset(seen.missing(version)) for version in seen.versions}
    found: list[Row] = []
    for path, add in live.items():
        if not (folder / unquote(path)).exists():
            found.append(("missing", path))
            continue
        columns = pq.ParquetFile(folder / unquote(path)).read().to_pydict()
        length = len(next(iter(columns.values())))
        columns |= {name: [value] * length for name, value in (add.get("partitionValues") or {}).items()}
        found += zip(*(columns[name] for name in sorted(columns)), strict=True)
    seen.rows["branch:main"] = sorted(found, key=repr)
    return seen


def files_under(folder: Path) -> frozenset[Path]:
    return frozenset(path for path in folder.rglob("*") if path.is_file())
