"""The files that an act named, in plain words: a crash may leave them, and the ledger holds keyed forms only (spec §5).

A list lies in parts, so that one of millions of files is never one row: a path and a size a line, a tab between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, delete, select

from ebbtide.state.bulk import insert_rows
from ebbtide.state.tables import act_files, erasure_acts, marks, paused_acts

_LINES_PER_PART = 5000


def keep(connection: Connection, act: str, files: Mapping[str, int]) -> None:
    """Keep the list of an act, in place of the one that was kept."""
    connection.execute(delete(act_files).where(act_files.c.act == act))
    lines = [f"{path}\t{size}\n" for path, size in sorted(files.items())]
    parts = [lines[start : start + _LINES_PER_PART] for start in range(0, len(lines), _LINES_PER_PART)]
    insert_rows(connection, act_files, [(act, number, "".join(part).encode()) for number, part in enumerate(parts)])


def load(connection: Connection, act: str) -> dict[str, int]:
    """The files with their sizes; none where no list is kept."""
    query = select(act_files.c.body).where(act_files.c.act == act).order_by(act_files.c.part)
    return read(connection.execute(query).scalars())


def read(parts: Iterable[bytes]) -> dict[str, int]:
    """The files of a list, of which parts may end inside of a line."""
    # By the line feed alone: a path may hold what Unicode also calls the end of a line.
    lines = (line.rpartition("\t") for line in b"".join(parts).decode().split("\n") if line)
    return {path: int(size) for path, _, size in lines}


def forget(connection: Connection) -> None:
    """Drop the lists of acts that are not paused, under which no open mark was begun, and that are no erasure whose
    files are still to go: nothing is left to do.
    """
    needed = select(marks.c.act).where(marks.c.closed_at.is_(None), marks.c.act.is_not(None))
    paused = select(paused_acts.c.act)
    erasing = select(erasure_acts.c.act)
    done = (act_files.c.act.not_in(each) for each in (needed, paused, erasing))
    connection.execute(delete(act_files).where(*done))
