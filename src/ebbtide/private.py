"""Files for their owner only: they name tables, partitions and files, and say what is marked, held and asked for.

A folder that is there keeps its rights. Where somebody made it writable for a group, what is made in it `like` it is
the group's too: driver and executors of a cluster may be different users.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ebbtide.errors import EbbtideError, InputError

_GROUP_WRITES = 0o020


@contextmanager
def writing(path: Path, *, hint: str, asked: bool = False) -> Iterator[None]:
    """Say of a place that belongs to the project that it cannot be written, with the system's words.

    Wrong input where somebody just `asked` for that place, and a failure where it is the project's own.
    """
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or type(error).__name__}"
        raise (InputError if asked else EbbtideError)(message, hint=hint) from None


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
