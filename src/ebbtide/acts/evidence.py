"""What is left of files: asked of the store by listing, never of whoever was to remove them (spec §2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ebbtide.acts.act import ActResult
from ebbtide.errors import told
from ebbtide.storage.files import open_store
from ebbtide.storage.handles import behind_links

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


def with_listing(result: ActResult) -> ActResult:
    """What a listing shows of the act's files. One that fails is this act's error, and tells nothing of any file."""
    act, paths = result.act, result.act.paths
    try:
        # What a link hides may still be there, wherever its folder went.
        hidden = behind_links(paths, act.places)
        return replace(result, there=frozenset({*still_there(paths, act.catalog.options), *hidden}))
    except Exception as error:
        return replace(result, there=frozenset(paths), error=result.error or told(error))
