"""A dbt project as models: `manifest.json` names them and holds their compiled SQL, `catalog.json` has the columns.

A manifest has no column lineage (spec §3), so the compiled code is traced like any other SQL. Labels stand in
`meta.ebbtide.labels` of a model, source or seed, and of its columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebbtide.errors import InputError
from ebbtide.lineage.models import Model
from ebbtide.lineage.names import Parts, written
from ebbtide.lineage.values import LineageProblem, ProblemKind

_VERSION = re.compile(r"/manifest/v(\d+)\.json$")
_OLDEST, _NEWEST = 7, 12  # `compiled_code` came with 7
_DIALECTS = {"sqlserver": "tsql", "glue": "spark", "spark": "spark"}
_VIEWS = {"view", "ephemeral", "materialized_view"}
_FILLED = {"model", "snapshot"}


@dataclass(frozen=True, slots=True)
class DbtLabels:
    """What `meta.ebbtide` says of one relation."""

    where: str
    relation: Parts
    labels: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Dbt:
    """One dbt project. `columns` are those of relations that the inventory may not have, by relation."""

    models: tuple[Model, ...] = ()
    columns: Mapping[Parts, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[DbtLabels, ...] = ()
    problems: tuple[LineageProblem, ...] = ()


def read_dbt(path: Path) -> Dbt:
    """Read the manifest (a file, its folder, or the project around `target/`) and the catalog beside it."""
    manifest_path = _find(path)
    manifest = _json(manifest_path)
    metadata = manifest.get("metadata") or {}
    version = _VERSION.search(str(metadata.get("dbt_schema_version")))
    if version is None or not _OLDEST <= int(version[1]) <= _NEWEST:
        found = f"version {version[1]}" if version else "no version"
        raise InputError(
            f"a dbt manifest with {found} is not known", where=str(manifest_path),
            hint=f"versions {_OLDEST} to {_NEWEST} are: run `dbt docs generate` with a dbt from 1.3 on",
        )  # fmt: skip
    dialect = _dialect(str(metadata.get("adapter_type") or "spark"))
    catalog_path = manifest_path.with_name("catalog.json")
    catalog = _json(catalog_path) if catalog_path.exists() else {}
    described = {**(catalog.get("nodes") or {}), **(catalog.get("sources") or {})}
    models: list[Model] = []
    problems: list[LineageProblem] = []
    labels: list[DbtLabels] = []
    columns: dict[Parts, tuple[str, ...]] = {}
    for key, node in sorted({**(manifest.get("nodes") or {}), **(manifest.get("sources") or {})}.items()):
        relation = _relation(node, dialect)
        where = f"{node.get('original_file_path') or manifest_path.name} ({key})"
        if relation is None:
            continue  # ephemeral models live on as CTEs in what reads them; tests and analyses fill nothing
        if key in described:
            columns[relation] = tuple(described[key].get("columns") or ())
        elif node.get("columns"):
            columns[relation] = tuple(node["columns"])
        if declared := _declared(node, where, relation, problems):
            labels.append(declared)
        if node.get("resource_type") in _FILLED:
            code = node.get("compiled_code")
            if code and node.get("language", "sql") == "sql":
                is_view = (node.get("config") or {}).get("materialized") in _VIEWS
                models.append(Model(where, f"dbt:{key}", code, relation, dialect, is_view))
            else:
                what = "is not compiled" if node.get("language", "sql") == "sql" else "is not SQL"
                problems.append(
                    LineageProblem(
                        ProblemKind.UNREADABLE, where, written(relation), f"{key} {what}", "run `dbt compile`"
                    )
                )
    return Dbt(tuple(models), columns, tuple(labels), tuple(problems))


def _find(path: Path) -> Path:
    for candidate in (path, path / "manifest.json", path / "target" / "manifest.json"):
        if candidate.is_file():
            return candidate
    raise InputError(f"no manifest.json in {path}", hint="run `dbt compile`, or correct `lineage: dbt:`")


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    if not isinstance(found, dict):
        raise InputError("not a JSON object", where=str(path))
    return found


def _dialect(adapter: str) -> str:
    from sqlglot.dialects.dialect import Dialect  # the parser takes a while to load

    name = _DIALECTS.get(adapter, adapter)
    return name if name in Dialect.classes else ""


def _relation(node: Mapping[str, Any], dialect: str) -> Parts | None:
    if node.get("resource_type") not in {*_FILLED, "seed", "source"}:
        return None
    if name := node.get("relation_name"):
        import sqlglot

        return tuple(part.name for part in sqlglot.to_table(name, dialect=dialect).parts)
    return None


def _declared(node: Mapping[str, Any], where: str, relation: Parts, problems: list[LineageProblem]) -> DbtLabels | None:
    labels = _labels(node, where, relation, problems)
    columns = {
        name: found
        for name, column in (node.get("columns") or {}).items()
        if (found := _labels(column, where, relation, problems))
    }
    return DbtLabels(where, relation, labels, columns) if labels or columns else None


def _labels(thing: Mapping[str, Any], where: str, relation: Parts, problems: list[LineageProblem]) -> tuple[str, ...]:
    found: list[str] = []
    for meta in _metas(thing):
        ours = meta.get("ebbtide")
        if ours is None:
            continue
        labels = ours.get("labels") if isinstance(ours, dict) else None
        if not isinstance(labels, list) or set(ours) - {"labels"}:
            hint = "write meta: {ebbtide: {labels: [Classifier.label]}}"
            problems.append(
                LineageProblem(ProblemKind.LABEL, where, written(relation), "meta.ebbtide is not understood", hint)
            )
            continue
        found += [str(label) for label in labels]
    return tuple(dict.fromkeys(found))


def _metas(thing: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for holder in (thing, thing.get("config") or {}):
        if isinstance(meta := holder.get("meta"), dict):
            yield meta
