"""Files that are whole or not there: what must outlive a crash is on disk before anybody relies on it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replace a file; it is on disk when this returns, and the old one or the new one at every moment.

    An OSError is the caller's to tell: only it knows what the file was for.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
