"""Files for their owner only: they name tables, partitions and files, and say what is marked, held and asked for.

A folder that is there keeps its rights. Where somebody made it writable for a group, what is made in it `like` it is
the group's too: driver and executors of a cluster may be different users.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_GROUP_WRITES = 0o020


def private_folder(path: Path, *, like: Path | None = None) -> Path:
    """The folder; made where it is missing, and so are those around it."""
    if not path.exists():
        private_folder(path.parent)
        with suppress(FileExistsError):  # somebody else was faster
            path.mkdir(mode=0o700)
            if is_shared(like):
                path.chmod(0o770)
    return path


def private_file(path: Path, *, like: Path | None = None) -> Path:
    """The file, empty, for whoever writes it by its path. One that was there keeps its rights."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        descriptor = os.open(path, os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC)
    else:
        if is_shared(like):
            os.fchmod(descriptor, 0o660)
    os.close(descriptor)
    return path


def is_shared(like: Path | None) -> bool:
    """Whether somebody made the folder writable for a group."""
    return like is not None and bool(like.stat().st_mode & _GROUP_WRITES)
