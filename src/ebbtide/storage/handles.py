"""Local folders by handles that are opened name by name and follow no link (hazard 37).

A path is only a way to a file: a folder on it that becomes a link after it was listed leads to somebody else's file
under the same name. So whoever removes walks the way itself. Links at a dataset's folder and above it are part of how
a lake is laid out: they are resolved once, when a sweep begins (`place_of`), and must lead to the same folder later.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable
from types import TracebackType

from ebbtide.model.paths import is_inside, local_path, normalise
from ebbtide.model.removal import CheckedFolder

# O_PATH: going through a folder needs no right to list it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK = "a link lies on the way to it, which is not followed"
_MOVED = "its folder is reached through other links than when the sweep began"


class LinkError(OSError):
    """A link lies where there was a folder, or leads elsewhere than before."""

    def __init__(self, why: str = _LINK) -> None:
        super().__init__(errno.ELOOP, why)


def place_of(location: str) -> CheckedFolder:
    """The folder as it is now. What is not local has no links, and stays as it is."""
    place = local_path(location)
    return CheckedFolder(normalise(location), "" if place is None else os.path.realpath(place))


def places_around(homes: Iterable[str]) -> tuple[CheckedFolder, ...]:
    """The folders of a dataset, and those that they lie in: a folder is removed from the one around it."""
    folders = dict.fromkeys(each for home in homes for each in (home, home.rpartition("/")[0]))
    return tuple(place_of(folder) for folder in folders if local_path(folder) is not None)


def led_elsewhere(places: Iterable[CheckedFolder]) -> str | None:
    """Which of the folders is another one now; None where each is the same."""
    return next((place.location for place in places if place_of(place.location) != place), None)


def behind_links(paths: Collection[str], places: Collection[CheckedFolder]) -> dict[str, str]:
    """Which of these files are links now, or lie behind one; for whoever cannot remove by handles."""
    found: dict[str, str] = {}
    with Folders(places) as folders:
        for path in sorted(path for path in paths if local_path(path) is not None):
            try:
                folders.refuse_link(path)
            except LinkError as error:
                found[path] = error.strerror or ""
            except OSError:
                continue  # not there, or for the removal to say
    return found


class Folders:
    """Handles of the folders on the way to a path, kept while the next path goes the same way: ask in order."""

    def __init__(self, places: Iterable[CheckedFolder]) -> None:
        # The innermost place first. Where there is none, nothing on the way may be a link.
        self._places = sorted(places, key=lambda place: len(place.location), reverse=True)
        self._moved = {place.location for place in self._places if place_of(place.location) != place}
        self._names: list[str] = []
        self._handles: list[int] = []

    def __enter__(self) -> Folders:
        self._handles.append(os.open("/", _FOLDER))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        while self._handles:
            os.close(self._handles.pop())

    def open(self, folder: str) -> int:
        """A handle of the folder, good until the next one is asked for. Raises what the system says of the way."""
        names = [name for name in self._real(folder).split("/") if name]
        same = next((n for n, (a, b) in enumerate(zip(names, self._names, strict=False)) if a != b), None)
        same = min(len(names), len(self._names)) if same is None else same
        while len(self._names) > same:
            self._names.pop()
            os.close(self._handles.pop())
        for name in names[same:]:
            self._handles.append(self._step(name))
            self._names.append(name)
        return self._handles[-1]

    def refuse_link(self, path: str) -> int:
        """The handle of a path's folder, where the path itself is no link."""
        folder, _, name = path.rpartition("/")
        handle = self.open(folder)
        if stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            raise LinkError("it is a link itself, and what it leads to would stay")
        return handle

    def _step(self, name: str) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=self._handles[-1])
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            # A file where a folder was: nothing lies below it any more. Anything else is, or was just now, a link.
            if stat.S_ISREG(os.stat(name, dir_fd=self._handles[-1], follow_symlinks=False).st_mode):
                raise
            raise LinkError from None

    def _real(self, folder: str) -> str:
        for place in self._places:
            if is_inside(folder, place.location):
                if place.location in self._moved:
                    raise LinkError(_MOVED)
                return place.real + folder.removeprefix(place.location)
        return local_path(folder) or "/"
