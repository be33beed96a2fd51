"""Where the log of this process goes: stderr or a file, as text or as JSON, a line an event.

Only Ebbtide's own loggers are touched, never the root. What they say holds no personal data (`errors.trace_of`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from ebbtide.cli.visible import json_visible, visible
from ebbtide.errors import InputError


def configure(*, form: str, verbose: bool, quiet: bool, file: Path | None) -> None:
    """A file gets everything, stderr what was asked for: all with `verbose`, only errors with `quiet`."""
    if form not in ("text", "json"):
        raise InputError(f"there is no log format {form!r}", hint="text or json")
    if verbose and quiet:
        raise InputError("--verbose and --quiet contradict each other", hint="give one of them")
    logger = logging.getLogger("ebbtide")
    for handler in logger.handlers[:]:  # of a verb before it in the same process
        logger.removeHandler(handler)
        handler.close()
    shown = logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING
    _add(logger, _Stderr(), shown, form if form == "json" or verbose else "note")
    if file is not None:
        _add(logger, _opened(file), logging.DEBUG, form)
    logger.setLevel(logging.DEBUG if file is not None else shown)


def _add(logger: logging.Logger, handler: logging.Handler, level: int, form: str) -> None:
    handler.setLevel(level)
    handler.setFormatter({"json": _Json, "text": _Text, "note": _Note}[form]())
    logger.addHandler(handler)


def _opened(path: Path) -> logging.Handler:
    try:
        return _OwnersLog(path)
    except OSError as error:
        raise InputError(f"no log can be written to {path}: {error.strerror}", hint="name another file") from None


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


class _OwnersLog(logging.FileHandler):
    """For its owner only, and after what is there."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        lines = record.getMessage().splitlines() or [""]
        head = f"{_time(record)} {record.levelname.lower()} {record.name}: {visible(lines[0])}"
        return "\n".join([head, *(f"  {visible(line)}" for line in lines[1:])])


class _Note(logging.Formatter):
    """For who asked for no log: what there is to know, as a verb says it."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {visible(record.getMessage())}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": _time(record), "level": record.levelname.lower(), "logger": record.name,
            "place": f"{record.module}:{record.lineno}", "message": record.getMessage(),
            "run": getattr(record, "run", None),
        }  # fmt: skip
        return json_visible(json.dumps(said, ensure_ascii=False))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
