"""What Paimon and Hudi tables hold, told by their files: snapshots, manifests, savepoints.

The other half of the oracle of the property test (`lake_by_hand` has Iceberg and Delta). Rows are read by the formats
themselves; here are the files that each version needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.oracle.lake_by_hand import Seen, avro, files_under

_ADDED = 0


def paimon(warehouse: Path) -> dict[str, Seen]:
    """Every Paimon table of the warehouse by name. A version is a snapshot, or what a tag keeps of one.

    Manifests must not be packed in a way that needs another library: `avro.codec` is `deflate`.
    """
    return {schema.parent.name: paimon_table(schema.parent) for schema in sorted(warehouse.glob("*.db/*/schema"))}


def paimon_table(folder: Path) -> Seen:
    seen = Seen(here=files_under(folder))
    # Names are random: a file is known by its name, whatever the folder of its partition is called.
    by_name = {path.name: path for path in seen.here}
    newest = 0
    for file in (*folder.glob("snapshot/snapshot-*"), *folder.glob("tag/tag-*")):
        told = json.loads(file.read_text())
        version, name = f"main/{told['id']}", file.name.removeprefix("tag-")
        seen.versions[version] = seen.versions.get(version, frozenset()) | {file} | _needed(folder, told, by_name)
        if file.parent.name == "tag":
            seen.heads[f"tag:{name}"] = version
        else:
            newest = max(newest, told["id"])
    seen.heads["branch:main"] = f"main/{newest}"
    seen.lost = {version: frozenset(seen.missing(version)) for version in seen.versions}
    return seen


def _needed(folder: Path, told: Mapping[str, Any], by_name: Mapping[str, Path]) -> frozenset[Path]:
    """What reading this snapshot (or tag) opens, its changelog and its statistics."""
    manifests, needed = folder / "manifest", {folder / "schema" / f"schema-{told['schemaId']}"}
    alive: set[str] = set()
    # A base is read before its delta, and entries of a delta may take out what the base has.
    for key in ("baseManifestList", "deltaManifestList"):
        for entry in _entries(manifests / told[key], manifests, needed):
            (alive.add if entry["_KIND"] == _ADDED else alive.discard)(entry["_FILE"]["_FILE_NAME"])
    if changes := told.get("changelogManifestList"):
        alive |= {entry["_FILE"]["_FILE_NAME"] for entry in _entries(manifests / changes, manifests, needed)}
    if index := told.get("indexManifest"):
        needed.add(manifests / index)
        alive |= {entry["_FILE_NAME"] for entry in _avro(manifests / index)}
    if statistics := told.get("statistics"):
        needed.add(folder / "statistics" / statistics)
    return frozenset(needed | {by_name.get(name, folder / "missing" / name) for name in alive})


def _entries(listed: Path, manifests: Path, needed: set[Path]) -> Iterable[dict[str, Any]]:
    needed.add(listed)
    for manifest in _avro(listed):
        path = manifests / manifest["_FILE_NAME"]
        needed.add(path)
        yield from _avro(path)


def hudi(warehouse: Path) -> dict[str, Seen]:
    """Every Hudi table of the warehouse by name, with the files that its savepoints pin."""
    return {hoodie.parent.name: hudi_table(hoodie.parent) for hoodie in sorted(warehouse.glob("*/*/.hoodie"))}


def hudi_table(folder: Path) -> Seen:
    seen = Seen(here=files_under(folder))
    for savepoint in folder.glob(".hoodie/timeline/*.savepoint"):
        name = f"tag:{savepoint.name.partition('_')[0]}"
        pinned = [
            folder / part["partitionPath"] / file
            for told in _avro(savepoint)
            for part in told["partitionMetadata"].values()
            for file in part["savepointDataFile"]
        ]
        seen.heads[name], seen.versions[name] = name, frozenset({savepoint, *pinned})
    seen.lost = {version: frozenset(seen.missing(version)) for version in seen.versions}
    return seen


def _avro(path: Path) -> list[dict[str, Any]]:
    """The entries of a file; none where it is missing, which is for the caller to notice."""
    return avro(path) if path.exists() else []
