"""What people do with the ledger: one function a verb of `ebbtide ledger` (`check` is in `ledger_check.py`).

Every command that reads the state opens its ledger: what a single verb needs is loaded by that verb.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.app.opened import database_of
from ebbtide.config import Project, load_project
from ebbtide.errors import InputError, RefusedError
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.ledger import Clock, Home
from ebbtide.ledger.ledger import Ledger as Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint, Note, VerifierKey
from ebbtide.ledger.tree import leaf_hash
from ebbtide.model.times import parse_time
from ebbtide.private import writing
from ebbtide.run import RunContext
from ebbtide.state.keys import KeyFolder

if TYPE_CHECKING:
    from ebbtide.ledger.audit import AuditReport
    from ebbtide.ledger.proof import TlogProof
    from ebbtide.ledger.prune import Pruning

_HASHES_READ_TOGETHER = 4096


@dataclass(frozen=True, slots=True)
class AppendedEntry:
    """An entry: its exact bytes, and their leaf hash."""

    leaf: bytes
    leaf_hash: bytes


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote: the number of new files, and the first index whose entry is served (the minimum index)."""

    written: int
    minimum_index: int


def open_ledger(project: Project | Path, *, as_of: datetime | None = None) -> Ledger:
    """The ledger of a project. Nothing is made before something is written or its key is asked for."""
    project = project if isinstance(project, Project) else load_project(project)
    if as_of and project.clock != "simulated":
        raise RefusedError(
            "what is written carries the real time", hint="only a project with `clock: simulated` takes --as-of here"
        )
    checkpoint = Path(project.ledger.checkpoint) if project.ledger.checkpoint else None
    database = database_of(project)
    if checkpoint and database.folder and checkpoint.resolve().is_relative_to(database.folder.resolve()):
        raise InputError(
            f"ledger.checkpoint lies in {database.folder}, beside the state",
            where=str(project.path),
            hint="a backup of that folder would bring both back; name a place outside of it",
        )
    home = Home(
        keys=key_folder(project),
        folder=_user_state_folder() / "ebbtide",
        project=project.name,
        origin=project.ledger.origin,
        checkpoint=checkpoint,
    )
    return Ledger(database, home, Clock(lambda: as_of or datetime.now(UTC), project.clock == "simulated"))


def key_folder(project: Project) -> KeyFolder:
    """Where the ledger's keys are, and those of holds and requests."""
    return KeyFolder(project.root / ".ebbtide" / "keys")


def open_for_writing(project: Project, context: RunContext) -> tuple[Ledger, datetime]:
    """The ledger, and the time that counts: the real one, or `--as-of` where the project's clock is simulated."""
    ledger = open_ledger(project, as_of=context.clock.as_of)
    return ledger, ledger.clock.now()


def init(ledger: Ledger, *, origin: str | None = None) -> VerifierKey:
    """Make the ledger: origin, key and first entry. Done before, it only says which key signs."""
    if origin is not None:
        if ledger.home.origin not in (None, origin):
            raise InputError(
                f"the project file says that the origin is {ledger.home.origin}", hint="an origin is set once"
            )
        ledger.home = replace(ledger.home, origin=origin)
    return ledger.open()


def keys(ledger: Ledger) -> Trust:
    """Every key of the ledger, the present one last; on first use it is made."""
    ledger.open()
    with ledger.reading() as log:
        return log.trust()


def checkpoint(ledger: Ledger, *, adopt: bool = False, up_to: int | None = None) -> Note:
    """The signed checkpoint of everything that was appended. `adopt` lets a host begin that has no copy of one."""
    if not adopt:
        if up_to is not None:
            raise InputError("--up-to says how much is adopted", hint="give it together with --adopt")
        ledger.open()
        return ledger.sign()
    with _existing(ledger):
        pass
    return ledger.adopt(up_to=up_to)


def entry(ledger: Ledger, index: int) -> AppendedEntry:
    """One entry as it was appended: its bytes are held against the tree before they are handed out."""
    with _existing(ledger):
        pass
    with ledger.verified() as log:
        leaf, head = log.leaf(index), log.frontier()
        log.prove(index, head.size, head.root)
        return AppendedEntry(leaf, leaf_hash(leaf))


def prove(ledger: Ledger, index: int) -> TlogProof:
    """The proof that an entry is in the ledger, under its last checkpoint; checked before it is handed out."""
    from ebbtide.ledger.proof import TlogProof

    with _existing(ledger) as log:
        if not 0 <= index < log.size:
            raise InputError(f"no entry {index} in a ledger of {log.size}", hint="indexes count from 0")
    note = ledger.sign()
    head = Checkpoint.parse(note.text)
    with ledger.reading() as log:
        return TlogProof(index, log.prove(index, head.size, head.root), note)


def rotate(ledger: Ledger) -> VerifierKey:
    """Let a new key sign from now on."""
    return ledger.rotate()


def audit(ledger: Ledger) -> AuditReport:
    """Everything in the database against everything that was signed."""
    from ebbtide.ledger.audit import audit as audit_ledger

    with _existing(ledger):
        pass
    return audit_ledger(ledger)


def witness(ledger: Ledger, url: str, key: str) -> Note:
    """Ask a witness for its cosignature on the last checkpoint."""
    from ebbtide.ledger.witness import ask_witness

    parsed = VerifierKey.parse(key)
    ledger.open()
    return ask_witness(ledger, url, parsed)


def prune(ledger: Ledger, before: str, *, dry_run: bool = False) -> Pruning:
    """Remove bodies from before a date or an instant, or say which would go."""
    from ebbtide.ledger.prune import plan_pruning
    from ebbtide.ledger.prune import prune as prune_ledger

    moment = parse_time(before, needs_zone=True)
    with _existing(ledger):
        pass
    return plan_pruning(ledger, before=moment) if dry_run else prune_ledger(ledger, before=moment)


def export(ledger: Ledger, folder: Path) -> Exported:
    """Write the ledger as a folder of tiles, each checked before it is written."""
    from ebbtide.ledger import tiles
    from ebbtide.ledger.prune import served_bodies

    with _existing(ledger):
        pass
    note = ledger.sign()
    size = Checkpoint.parse(note.text).size
    with ledger.database.reader() as state:
        log = LedgerLog(state.connection, read_together=_HASHES_READ_TOGETHER)
        begin = tiles.minimum_index(log.last_pruned(tiles.full_bundles(size)))
        bodies = served_bodies(log, size)
        with writing(folder, hint="name a folder that can be written", asked=True):
            written = tiles.export(folder, note, bodies, log.get, log.signed_sizes(), minimum_index=begin)
    return Exported(written, begin)


@contextmanager
def _existing(ledger: Ledger) -> Iterator[LedgerLog]:
    """The log of a ledger that was made before; one that was lost is refused as such."""
    with ledger.reading() as log:
        if log.size == 0:
            ledger.check_never_signed()
        log.trust()
        yield log


def _user_state_folder() -> Path:
    # The base directory specification: a relative path there is to be ignored.
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".local" / "state"
