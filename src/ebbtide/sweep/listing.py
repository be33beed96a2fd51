"""What is left of files: asked of the store by listing, never of whoever was to remove them (spec §2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from ebbtide.storage.files import open_store

_LISTERS = 16


def still_there(paths: Collection[str], options: Mapping[str, str]) -> set[str]:
    """Which of these files a listing of their folders shows. A folder that cannot be listed raises."""
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folders[path.rpartition("/")[0]].add(path)

    def look(folder: str) -> set[str]:
        listed = {entry.path for entry in open_store(folder, options).list(folder) if not entry.is_folder}
        return folders[folder] & listed

    with ThreadPoolExecutor(_LISTERS) as pool:
        return set().union(*pool.map(look, sorted(folders)))
