"""Who runs this process."""

from __future__ import annotations

import getpass
import os


def actor() -> str:
    """A name for the state; the ledger only ever knows an opaque id."""
    return os.environ.get("EBBTIDE_ACTOR") or getpass.getuser()
