"""The datasets that OpenLineage events name: by what the project says, by location, by symlinks, by name (spec §3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ebbtide.lineage.names import Names
from ebbtide.lineage.values import LineageProblem, ProblemKind

Key = tuple[str, str]
"""Namespace and name, as the producer writes them."""

_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")


def key_of(dataset: Mapping[str, Any]) -> Key:
    return str(dataset.get("namespace") or ""), str(dataset.get("name") or "")


def facet_of(dataset: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    facets = dataset.get("facets")
    found = facets.get(name) if isinstance(facets, dict) else None
    return found if isinstance(found, dict) else {}


def known_ids(
    said: Iterable[tuple[str, Mapping[str, Any]]], names: Names
) -> tuple[dict[Key, str], list[LineageProblem]]:
    """The table of every dataset that is `said` somewhere, and a problem for each that matches nothing.

    A dataset is taken from wherever it is told best: its symlinks may stand in one event of many.
    """
    found: dict[Key, str | None] = {}
    first: dict[Key, str] = {}
    for where, dataset in said:
        key = key_of(dataset)
        found[key] = found.get(key) or _dataset_id(dataset, names)
        first.setdefault(key, where)
    problems = sorted(_unmatched(first[key], key) for key, table_id in found.items() if table_id is None)
    return {key: table_id or "/".join(key) for key, table_id in found.items()}, problems


def _dataset_id(dataset: Mapping[str, Any], names: Names) -> str | None:
    """By what the project says, by location, by symlinks, by name."""
    namespace, name = key_of(dataset)
    if found := names.mapped(f"{namespace}/{name}") or names.mapped(name):
        return found
    if found := _at(namespace, name, names):
        return found
    for link in facet_of(dataset, "symlinks").get("identifiers") or ():
        link_namespace, link_name = key_of(link)
        found = names.mapped(link_name) or _at(link_namespace, link_name, names) or _named(link_name, names)
        if found:
            return found
    return _named(name, names)


def _named(name: str, names: Names) -> str | None:
    return None if "/" in name else names.find(name.split("."))


def _at(namespace: str, name: str, names: Names) -> str | None:
    if namespace == "file":
        return names.at(f"file:{name}")
    return names.at(f"{namespace.rstrip('/')}/{name.lstrip('/')}") if _URI.match(namespace) else None


def _unmatched(where: str, key: Key) -> LineageProblem:
    text = "/".join(key)
    hint = f"map it under `lineage: names:` as {text!r}"
    return LineageProblem(ProblemKind.UNMATCHED, where, text, f"nothing is known of {text}", hint)
