"""How much a project stored, scan by scan: a line each beside the inventory, for the overview's curve.

It is for looking at: nothing is decided by it, and what cannot be read or written of it is left out.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc

from ebbtide.config import Project
from ebbtide.errors import InputError, told
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.times import as_text, parse_time

_FILE = "storage.jsonl"
_MOST = 2_000
"""Lines that are shown: five years of a scan a day."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Bytes when a scan was: what a branch shows, and what only older versions reference."""

    at: datetime
    live: int
    kept: int


def stored_now(inventory: Inventory, *, now: datetime) -> StoredBytes:
    """As the inventory has it. A file counts once, whoever references it."""
    files = inventory.table("files").select(["path", "bytes", "live"])
    once = files.group_by("path").aggregate([("bytes", "max"), ("live", "max")])
    live = pc.sum(once.filter(pc.fill_null(once["live_max"], fill_value=False))["bytes_max"]).as_py() or 0
    every = pc.sum(once["bytes_max"]).as_py() or 0
    return StoredBytes(inventory.current.scanned_at or now, live, every - live)


def record_stored(project: Project, *, now: datetime) -> None:
    """Add a line for the last scan, unless it has one."""
    try:
        inventory, before = Inventory.open(project.inventory), stored_before(project)
        if before and before[-1].at >= (inventory.current.scanned_at or now):
            return
        found = stored_now(inventory, now=now)
        line = json.dumps({**asdict(found), "at": as_text(found.at)}) + "\n"
        path = project.inventory / _FILE
        handle = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(line)
    except Exception as error:  # who only looks on ends nothing
        _logger.debug("no line of what is stored: %s", told(error))


def stored_before(project: Project) -> list[StoredBytes]:
    """The lines that are there, the oldest first; one that somebody broke is left out."""
    path: Path = project.inventory / _FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[-_MOST:]
    except (OSError, UnicodeDecodeError):
        return []
    found = [stored for line in lines if (stored := _read(line)) is not None]
    return sorted(found, key=lambda stored: stored.at)


def _read(line: str) -> StoredBytes | None:
    try:
        said: Mapping[str, object] = json.loads(line)
        return StoredBytes(parse_time(str(said["at"])), int(str(said["live"])), int(str(said["kept"])))
    except (ValueError, KeyError, TypeError, InputError):
        return None
