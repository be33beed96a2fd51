"""Listing everything under a folder, for the search for files that nothing references.

Unlike `files.py` it never follows a symbolic link and never tidies a name: an object whose name is not its normalised
path (a key with `//`, say) is listed as not `exact`, and whoever removes by path must leave it alone (hazards 1, 4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ebbtide.errors import UnreadableError, kind_of
from ebbtide.model.paths import local_path, normalise
from ebbtide.storage.s3 import s3_client


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object. `path` is normalised; `exact` says that it is also the object's own name, and no link leads to it."""

    path: str
    bytes: int
    modified: datetime
    exact: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies directly in a folder."""

    objects: list[ListedObject]
    folders: list[str]


Answer = Iterator[list[ListedObject]]


def list_folder(folder: str, options: Mapping[str, str]) -> Folder:
    """One folder, not what is below it; empty where there is none."""
    place = local_path(folder)
    with _errors(folder):
        return _local_folder(place) if place is not None else _s3_folder(folder, options)


def list_below(folder: str, options: Mapping[str, str]) -> Answer:
    """Everything below a folder, some thousand objects at a time."""
    place = local_path(folder)
    with _errors(folder):
        yield from _local_below(place) if place is not None else _s3_below(folder, options)


def clock_of(folder: str, options: Mapping[str, str]) -> datetime:
    """What time it is by the store's own clock: the one that modification times come from (hazard 22)."""
    if local_path(folder) is not None:
        return datetime.now(UTC)
    with _errors(folder):
        answer = s3_client(options).list_objects_v2(Bucket=_split(folder)[0], MaxKeys=1)
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).astimezone(UTC)


@contextmanager
def _errors(folder: str) -> Iterator[None]:
    """Whatever a store says becomes an error that names the folder."""
    if not normalise(folder).startswith(("file:///", "s3://")):
        raise UnreadableError(folder, "its scheme is not supported", hint="local paths and s3:// work")
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.startswith("botocore"):
            raise UnreadableError(normalise(folder), f"cannot be listed: {kind_of(error)}") from error
        raise


def _local_folder(place: str) -> Folder:
    found = Folder([], [])
    direct = os.path.realpath(place) == place
    try:
        entries = os.scandir(place)
    except FileNotFoundError:
        return found
    with entries:
        for entry in entries:
            path, exact = f"file://{place}/{entry.name}", direct
            try:
                if entry.is_dir(follow_symlinks=False):
                    found.folders.append(path)
                    continue
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since its folder was listed
            try:
                path.encode()
            except UnicodeEncodeError:
                path, exact = path.encode("utf-8", "replace").decode(), False
            modified = datetime.fromtimestamp(facts.st_mtime_ns // 1000 / 1e6, UTC)
            found.objects.append(ListedObject(path, facts.st_size, modified, exact and not entry.is_symlink()))
    return found


def _local_below(place: str) -> Answer:
    waiting = [place]
    while waiting:
        found = _local_folder(waiting.pop())
        waiting += [folder.removeprefix("file://") for folder in found.folders]
        if found.objects:
            yield found.objects


def _split(folder: str) -> tuple[str, str]:
    bucket, _, key = normalise(folder).removeprefix("s3://").partition("/")
    return bucket, f"{key}/" if key else ""


def _s3_folder(folder: str, options: Mapping[str, str]) -> Folder:
    bucket, prefix = _split(folder)
    found = Folder([], [])
    for page in _pages(bucket, prefix, options, Delimiter="/"):
        found.objects.extend(_objects(bucket, page))
        for below in page.get("CommonPrefixes", ()):
            path = f"s3://{bucket}/{below['Prefix'][:-1]}"
            if normalise(path) == path:
                found.folders.append(path)
            else:  # an empty segment: no path leads there, so its objects are taken here
                for more in _pages(bucket, below["Prefix"], options):
                    found.objects.extend(_objects(bucket, more))
    return found


def _s3_below(folder: str, options: Mapping[str, str]) -> Answer:
    bucket, prefix = _split(folder)
    for page in _pages(bucket, prefix, options):
        yield _objects(bucket, page)


def _pages(bucket: str, prefix: str, options: Mapping[str, str], **more: str) -> Iterator[dict[str, Any]]:
    pages: Iterator[dict[str, Any]] = iter(
        s3_client(options).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **more)
    )
    return pages


def _objects(bucket: str, page: Mapping[str, Any]) -> list[ListedObject]:
    found = []
    for entry in page.get("Contents", ()):
        if entry["Key"].endswith("/"):
            continue  # stands for a folder, and holds nothing
        raw = f"s3://{bucket}/{entry['Key']}"
        path = normalise(raw)
        found.append(ListedObject(path, entry["Size"], entry["LastModified"].astimezone(UTC), path == raw))
    return found
