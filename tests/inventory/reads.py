"""Counting which files are opened, whoever opens them: Python, C++ or a child process (Linux inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_OPEN, _IN_ISDIR = 0x20, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def opened_files(root: Path) -> Iterator[list[str]]:
    """Collect the names of the files under `root` that are opened meanwhile; the list is filled at the end."""
    queue = _libc.inotify_init1(os.O_NONBLOCK)
    assert queue >= 0, os.strerror(ctypes.get_errno())
    opened: list[str] = []
    try:
        folders = {}
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            watch = _libc.inotify_add_watch(queue, str(folder).encode(), _IN_OPEN)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            folders[watch] = folder
        yield opened
        while True:
            try:
                data = os.read(queue, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                watch, mask, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                if not mask & _IN_ISDIR:
                    opened.append(str(folders[watch] / name))
                at += 16 + length
    finally:
        os.close(queue)
