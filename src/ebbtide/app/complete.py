"""Names that a shell proposes. It never fails, and never waits for a catalog."""

from __future__ import annotations

from pathlib import Path

from ebbtide.config import Project, load_project
from ebbtide.errors import EbbtideError


def table_names(project: Path, begin: str) -> list[str]:
    """The last scan's tables."""
    from ebbtide.inventory import current

    try:
        loaded = _loaded(project)
        found = None if loaded is None else current.load(loaded.inventory)
    except Exception:  # somebody types a command: whatever is wrong is told when it runs
        return []
    return [] if found is None else [name for name in sorted(found.entries) if name.startswith(begin)]


def selections(project: Path, begin: str) -> list[str]:
    """What `--select` takes."""
    from ebbtide.config.policies import EVERY_TARGET, load_policies

    try:
        loaded = _loaded(project)
        policies = () if loaded is None else load_policies(loaded.root, unsafe=True).policies
    except EbbtideError:
        policies = ()
    words = [*(f"policy:{policy.name}" for policy in policies), *(f"target:{name}" for name in EVERY_TARGET)]
    return [word for word in words if word.startswith(begin)] + table_names(project, begin)


def _loaded(project: Path) -> Project | None:
    try:
        return load_project(project)
    except (EbbtideError, OSError):
        return None
