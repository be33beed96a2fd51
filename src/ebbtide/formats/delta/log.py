"""What lies in a table's `_delta_log`, told from names alone, and its commits as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ebbtide.errors import UnreadableError
from ebbtide.formats.delta.actions import Actions, parse_commit
from ebbtide.model.dataset import Role
from ebbtide.model.paths import local_path
from ebbtide.storage.files import Store, StoredObject

FOLDER = "_delta_log"
_COMMIT = re.compile(r"^(\d{20})\.json$")
_COMPACTED = re.compile(r"^\d{20}\.\d{20}\.compacted\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(?:parquet|json)$")
_UNPUBLISHED = re.compile(r"^(\d{20})\.[0-9a-fA-F-]{36}\.json$")
# What writers rename into place, `.00000000000000000012.json.<uuid>.tmp`, and Hadoop's checksum of it.
_TEMPORARY = re.compile(r"(?s)^.+\.tmp(?:\.crc)?$")
_VERSION = re.compile(r"(?s)^\.?(\d{20})\.")
_REMOTE_READERS = 16

_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """The files of a `_delta_log`. `checkpoints` holds complete ones only, each as the parts that make it up.

    `unpublished` are versions that a commit coordinator holds and that are no commit file of the log yet.
    """

    entries: tuple[StoredObject, ...]
    commits: Mapping[int, StoredObject]
    checkpoints: Mapping[int, tuple[StoredObject, ...]]
    unpublished: tuple[int, ...]

    @property
    def head(self) -> int | None:
        return max((*self.commits, *self.checkpoints), default=None)

    @property
    def folder(self) -> str:
        return next(e.path for e in self.entries).rsplit(f"/{FOLDER}/", 1)[0] + f"/{FOLDER}"


def list_log(store: Store, location: str) -> DeltaLog:
    """One listing of the log, with its sidecars; empty where there is no such folder."""
    folder = f"{location}/{FOLDER}"
    entries = tuple(e for e in store.list(folder, recursive=True) if not e.is_folder)
    direct = [e for e in entries if e.path == f"{folder}/{e.name}"]
    commits = {int(match.group(1)): e for e in direct if (match := _COMMIT.match(e.name))}
    unpublished = {int(match.group(1)) for e in entries if (match := _UNPUBLISHED.match(e.name))} - commits.keys()
    return DeltaLog(entries, commits, _checkpoints(direct), tuple(sorted(unpublished)))


def _checkpoints(entries: Iterable[StoredObject]) -> dict[int, tuple[StoredObject, ...]]:
    """Complete checkpoints by version. Of several at one version any will do; the classic single file comes first."""
    whole: dict[int, tuple[StoredObject, ...]] = {}
    parts: dict[tuple[int, int], list[StoredObject]] = {}
    for entry in entries:
        if match := _CHECKPOINT.match(entry.name):
            version = int(match.group(1))
            if match.group(3):
                parts.setdefault((version, int(match.group(3))), []).append(entry)
            elif version not in whole or match.group(4) is None:
                whole[version] = (entry,)
    for (version, wanted), found in parts.items():
        if len(found) == wanted:
            whole.setdefault(version, tuple(found))
    return whole


def version_of(entry: StoredObject) -> int | None:
    """The version that a file directly in the log is of, what writers left of it included; None of any other file."""
    match = _VERSION.match(entry.name) if entry.path.endswith(f"/{FOLDER}/{entry.name}") else None
    return int(match.group(1)) if match else None


def is_checkpoint(entry: StoredObject) -> bool:
    """Whether it is a checkpoint, or a part of one, but no sidecar."""
    return bool(_CHECKPOINT.match(entry.name))


def role_of(entry: StoredObject) -> Role:
    """What a file of the log is: commits and their compactions, checkpoints with sidecars, what comes and goes, the
    rest.
    """
    if _TEMPORARY.match(entry.name):
        return Role.TEMPORARY
    if entry.path.endswith(f"/_sidecars/{entry.name}") and entry.name.endswith(".parquet"):
        return Role.CHECKPOINT
    if _CHECKPOINT.match(entry.name):
        return Role.CHECKPOINT
    if _COMMIT.match(entry.name) or _COMPACTED.match(entry.name) or _UNPUBLISHED.match(entry.name):
        return Role.LOG
    return Role.METADATA


def read_commits(store: Store, location: str, log: DeltaLog, subject: str) -> dict[int, Actions]:
    """Every commit of the log, by version. One that cannot be read or parsed raises `UnreadableError`."""

    def read(version: int) -> Actions:
        entry = log.commits[version]
        try:
            return parse_commit(store.read(entry.path), location)
        except UnreadableError as error:
            raise UnreadableError(subject, error.message, hint="scan again; log cleanup may run") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise corrupt(subject, entry.path, error) from error

    versions = sorted(log.commits)
    return dict(zip(versions, in_parallel(location, read, versions), strict=True))


def in_parallel(location: str, call: Callable[[_In], _Out], items: Sequence[_In]) -> list[_Out]:
    """Call for every item, in order. A remote store answers slowly and many at once; a local disk does not wait."""
    if local_path(location) is not None or len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(_REMOTE_READERS) as pool:
        return list(pool.map(call, items))


def corrupt(subject: str, path: str, error: Exception) -> UnreadableError:
    """A metadata file that is not what it should be. Values are left out: they may be personal data."""
    what = f"lacks {error}" if isinstance(error, KeyError) else type(error).__name__
    return UnreadableError(subject, f"{path} is corrupt ({what})", hint="restore the file from a backup")
