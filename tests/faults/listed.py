"""Which files an intent lists: the ledger holds keyed names only, and the state their salt."""

from __future__ import annotations

from collections.abc import Iterable

from ebbtide.ledger.attachments import attachment
from ebbtide.ledger.entries import Intent, salted
from ebbtide.state.reader import StateReader


def named_in(state: StateReader, intent: Intent, paths: Iterable[str]) -> set[str]:
    """Those of the paths that the list of an intent names."""
    act = state.act(intent.act)
    if intent.files is None or act is None:
        return set()
    lines = b"".join(attachment(state.connection, intent.files.digest)).decode().splitlines()
    listed = {line.split("\t")[0] for line in lines}
    return {path for path in paths if salted(act.salt, path) in listed}
