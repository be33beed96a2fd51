"""`ebbtide lineage listen`: keep the OpenLineage events that jobs post, as files that `lineage` reads."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.lineage.labelled import events_folder
from ebbtide.lineage.openlineage import EventError, parse_event

_FACETS = ("columnLineage", "symlinks", "schema", "dataSource")


def store_event(project: Project, body: bytes) -> Path:
    """Check one event and keep what lineage needs of it. The same event twice is one file."""
    try:
        value = json.loads(body)
        parse_event(value, "posted")
        # Text of queries and plans is left out: it may hold values of people, and lineage does not need it.
        text = json.dumps(_needed(value), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        known = isinstance(error, EventError)
        reason = str(error) if known else "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise InputError(f"the event is refused: {reason}", hint="post OpenLineage events of version 1 or 2") from None
    folder = events_folder(project)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"
    draft = path.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return path


def _needed(event: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {
        key: event[key] for key in ("schemaURL", "eventTime", "eventType", "producer") if key in event
    }
    if "job" in event:
        kept["job"] = {key: event["job"].get(key) for key in ("namespace", "name")}
    if "dataset" in event:
        kept["dataset"] = _dataset(event["dataset"])
    for side in ("inputs", "outputs"):
        kept[side] = [_dataset(dataset) for dataset in event.get(side) or ()]
    return kept


def _dataset(dataset: dict[str, Any]) -> dict[str, Any]:
    facets = dataset.get("facets") or {}
    return {
        "namespace": dataset.get("namespace"),
        "name": dataset["name"],
        "facets": {key: facets[key] for key in _FACETS if key in facets},
    }
