"""Folders for what one piece of work writes where tasks of a session reach it, too: below the inventory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ebbtide.private import is_shared, private_file

if TYPE_CHECKING:
    from filelock import BaseFileLock

_PREFIXES = ("plan-", "orphans-", "views-")
_LOCK = ".lock"
_PATIENCE = 60
"""Seconds. Others hold the lock of the whole place for as long as it takes to make a folder, and to remove a few."""


class WorkFolder(TemporaryDirectory[str]):
    """A private folder, gone when somebody cleans it up or the process ends. What a process that was killed left is
    gone when the next one is made: the kernel took its lock back.
    """

    def __init__(self, inside: Path, prefix: str) -> None:
        assert prefix in _PREFIXES, "nobody would remove it"
        with _only_one(inside):
            for path in inside.iterdir():
                if path.name.startswith(_PREFIXES) and path.is_dir() and not path.is_symlink():
                    _remove_where_abandoned(path)
            # 0700: it names people's tables and files. Whatever cannot be removed now goes with the next one.
            super().__init__(prefix=prefix, dir=inside, ignore_cleanup_errors=True)
            if is_shared(inside):
                self.path.chmod(0o770)
            self._lock = _lock(self.path / _LOCK)
            self._lock.acquire(blocking=False)

    @property
    def path(self) -> Path:
        return Path(self.name)

    def cleanup(self) -> None:
        super().cleanup()
        self._lock.release()


def _remove_where_abandoned(folder: Path) -> None:
    from filelock import Timeout

    if not (folder / _LOCK).exists():
        # Nobody is at it between making it and locking it, so this process died there; or its version knew no locks.
        with suppress(OSError):
            folder.rmdir()
        return
    lock = _lock(folder / _LOCK)
    try:
        lock.acquire(blocking=False)
    except (Timeout, OSError):
        return
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()


@contextmanager
def _only_one(inside: Path) -> Iterator[None]:
    with _lock(private_file(inside / "work.lock", like=inside)).acquire(timeout=_PATIENCE):
        yield


def _lock(file: Path) -> BaseFileLock:
    from filelock import FileLock

    # A frame may be closed by another thread than the one that asked for it.
    return FileLock(file, fallback_to_soft=False, thread_local=False)
