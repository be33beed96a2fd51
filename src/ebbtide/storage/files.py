"""Listing and reading objects of a store, through pyarrow's file systems: local disk and S3.

Options of a catalog carry what a store needs (`s3.endpoint`, `s3.access-key-id`, …), spelled as Iceberg spells them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from ebbtide.errors import UnreadableError, kind_of
from ebbtide.model.paths import local_path, normalise


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object or folder as the store lists it. `path` is normalised; `modified` is by the store's clock."""

    path: str
    is_folder: bool
    bytes: int
    modified: datetime | None

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Store:
    """Read-only access to the objects of one scheme."""

    def __init__(self, filesystem: fs.FileSystem, prefix: str) -> None:
        self._fs, self._prefix = filesystem, prefix

    def _plain(self, path: str) -> str:
        return normalise(path).removeprefix(self._prefix)

    def list(self, folder: str, *, recursive: bool = False) -> list[StoredObject]:
        """What lies in a folder, sorted by path; empty where the folder does not exist."""
        selector = fs.FileSelector(self._plain(folder), allow_not_found=True, recursive=recursive)
        try:
            infos = self._fs.get_file_info(selector)
        except OSError as error:
            raise UnreadableError(normalise(folder), f"cannot be listed: {kind_of(error)}") from error
        return sorted((self._entry(info) for info in infos), key=lambda entry: entry.path)

    def read(self, path: str) -> bytes:
        try:
            with self._fs.open_input_stream(self._plain(path)) as stream:
                content: bytes = stream.read()
                return content
        except OSError as error:
            raise UnreadableError(normalise(path), f"cannot be read: {kind_of(error)}") from error

    def open(self, path: str) -> pa.NativeFile:
        """The object for reading where one likes: footers, without the rest."""
        try:
            return self._fs.open_input_file(self._plain(path))
        except OSError as error:
            raise UnreadableError(normalise(path), f"cannot be read: {kind_of(error)}") from error

    def stat(self, path: str) -> StoredObject | None:
        """The object or folder at a path, or None where there is nothing."""
        try:
            info = self._fs.get_file_info(self._plain(path))
        except OSError as error:
            raise UnreadableError(normalise(path), f"cannot be looked at: {kind_of(error)}") from error
        return None if info.type == fs.FileType.NotFound else self._entry(info)

    def _entry(self, info: fs.FileInfo) -> StoredObject:
        folder = info.type == fs.FileType.Directory
        modified = None if info.mtime_ns is None else datetime.fromtimestamp(info.mtime_ns / 1e9, UTC)
        return StoredObject(self._prefix + info.path.rstrip("/"), folder, 0 if folder else info.size, modified)


def without_links(path: str) -> str:
    """The path by the file's own name: links are followed where it is local. What is empty or not local stays."""
    place = local_path(path) if path else None
    return path if place is None else f"file://{os.path.realpath(place)}"


def open_store(location: str, options: Mapping[str, str] | None = None) -> Store:
    """The store that a location lies in."""
    scheme = normalise(location).partition("://")[0]
    if scheme == "file":
        return Store(fs.LocalFileSystem(), "file://")
    if scheme == "s3":
        wanted = {key: value for key, value in (options or {}).items() if key.startswith(("s3.", "client."))}
        return Store(_s3(tuple(sorted(wanted.items()))), "s3://")
    raise UnreadableError(location, f"scheme {scheme!r} is not supported", hint="local paths and s3:// work")


@lru_cache(maxsize=8)
def _s3(options: tuple[tuple[str, str], ...]) -> fs.S3FileSystem:
    given = dict(options)
    return fs.S3FileSystem(
        access_key=given.get("s3.access-key-id"),
        secret_key=given.get("s3.secret-access-key"),
        session_token=given.get("s3.session-token"),
        region=given.get("client.region") or given.get("s3.region"),
        endpoint_override=given.get("s3.endpoint"),
    )
