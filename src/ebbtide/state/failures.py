"""What a database's failure is called, and what helps against it.

The words of a statement that failed hold no parameters; only their first line is told, because the next ones may quote
rows. Those of a server that could not be reached are replaced by ours (`model/unreachable.py`).
"""

from __future__ import annotations

from ebbtide.model.unreachable import why_unreachable

_LOCKED = "database is locked"
_HINTS = {
    _LOCKED: "another process writes to it: `ebbtide runs list` shows which; try again when it is done",
    "lock timeout": "another process writes to it: `ebbtide runs list` shows which; try again when it is done",
    "not a database": "the file was overwritten, or `state:` names another one: bring back a backup and run "
    "`ebbtide ledger audit`",
    "malformed": "the file is damaged: bring back a backup and run `ebbtide ledger audit`",
    "readonly": "let the user who runs Ebbtide write to the file and to its folder",
    "unable to open": "let the user who runs Ebbtide read and write the file and its folder",
    "full": "make room on its disk",
    "disk I/O": "look at its disk, and at the system's log",
    "permission denied": "grant the user of `state:` the rights on its tables",
}


def is_locked(error: BaseException | None) -> bool:
    """Whether SQLite gave up waiting for another process."""
    return _LOCKED in str(error)


def reason_and_hint(error: BaseException | None) -> tuple[str, str]:
    """What may be told of a driver's error, and what to do."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if type(error).__module__.startswith("psycopg") and getattr(error, "sqlstate", None) is None:
        assert error is not None
        return why_unreachable(
            error
        ), "check `state:` in ebbtide.yml, and that the server runs and can be reached from here"
    hint = next(
        (hint for words, hint in _HINTS.items() if words in said), "look at the database's own log, and try again"
    )
    return said, hint
