"""Removing objects of a store by their exact paths. Local files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ebbtide.errors import RefusedError
from ebbtide.model.paths import local_path


def remove_files(
    paths: Collection[str], options: Mapping[str, str], before_batch: Callable[[], None]
) -> dict[str, str]:
    """Remove exactly these files; for each that may still be there, the store's own error."""
    failed: dict[str, str] = {}
    before_batch()
    for path in sorted(paths):
        place = local_path(path)
        if place is None:
            raise RefusedError(f"{path} is no local file")
        folder, _, name = place.rpartition("/")
        for each in (place, f"{folder}/.{name}.crc"):
            try:
                Path(each).unlink(missing_ok=True)
            except OSError as error:
                failed[path] = str(error)
                break
    return failed
