"""Everything that a store keeps below a folder, for whoever must look at each byte: on S3 every version of every
object, every delete marker and every upload that nobody finished, on local disk every file, and folders with nothing in
them, whose names may say something.

Names are as the store has them, links are listed and not followed, and nothing is left out.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from ebbtide.errors import UnreadableError, kind_of
from ebbtide.model.paths import local_path, normalise
from ebbtide.storage.listing import list_folder
from ebbtide.storage.s3 import s3_client

_PART = 8 << 20


class VersionKind(StrEnum):
    OBJECT = "object"
    DELETE_MARKER = "delete marker"
    FOLDER = "empty folder"
    UNLISTED = "folder that cannot be listed"
    UPLOAD = "unfinished upload"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One object, or one version of it where its bucket keeps versions. `checksum` is what the store says of it,
    `latest` whether that is what a reader gets who asks for no version.
    """

    path: str
    bytes: int
    kind: VersionKind = VersionKind.OBJECT
    version: str | None = None
    checksum: str | None = None
    latest: bool = True


def list_versions(folder: str, options: Mapping[str, str]) -> Iterator[StoredVersion]:
    """All that lies below a folder, or the one file that it is. What cannot be listed raises `UnreadableError`."""
    place = local_path(folder)
    try:
        yield from _below_s3(folder, options) if place is None else _below_local(place)
    except Exception as error:
        if isinstance(error, UnreadableError):
            raise
        if isinstance(error, OSError) or type(error).__module__.startswith("botocore"):
            raise UnreadableError(normalise(folder), f"cannot be listed: {kind_of(error)}") from error
        raise


def open_version(stored: StoredVersion, options: Mapping[str, str]) -> BinaryIO:
    """The object as it was listed, for reading where one likes."""
    if local_path(stored.path) is not None:
        return Path(stored.path.removeprefix("file://")).open("rb")
    return io.BufferedReader(_Ranges(stored, options), _PART)


def kept_beside(opened: BinaryIO) -> list[str]:
    """The texts that the store keeps of an object beside its bytes, asked of what `open_version` opened."""
    raw = getattr(opened, "raw", None)
    return raw.beside() if isinstance(raw, _Ranges) else []


def _below_local(place: str) -> Iterator[StoredVersion]:
    if Path(place).is_file():
        yield StoredVersion(f"file://{place}", Path(place).stat().st_size)
        return
    waiting = [place] if Path(place).is_dir() else []
    while waiting:
        here = waiting.pop()
        try:
            listed = list_folder(f"file://{here}", {})
        except UnreadableError:
            if here == place:
                raise
            yield StoredVersion(_shown(here), 0, VersionKind.UNLISTED)
            continue
        if not listed.objects and not listed.folders:
            yield StoredVersion(_shown(here), 0, VersionKind.FOLDER)
        waiting += [folder.removeprefix("file://") for folder in listed.folders]
        yield from (StoredVersion(each.path, each.bytes) for each in listed.objects)


def _shown(folder: str) -> str:
    """A folder as files are listed: what of its name is no UTF-8 becomes question marks."""
    return f"file://{folder}".encode("utf-8", "replace").decode()


def _below_s3(folder: str, options: Mapping[str, str]) -> Iterator[StoredVersion]:
    bucket, _, key = normalise(folder).removeprefix("s3://").partition("/")
    client, prefix = s3_client(options), f"{key}/" if key else ""
    if key:  # an object may be called what others have for their folder
        yield from _versions(client, bucket, key, only=key)
    yield from _versions(client, bucket, prefix)
    try:
        pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=key)
        uploads = [(each["Key"], each["UploadId"]) for page in pages for each in page.get("Uploads", ())]
    except Exception as error:
        if type(error).__module__.startswith("botocore"):
            why = f"its unfinished uploads cannot be listed: {kind_of(error)}"
            raise UnreadableError(normalise(folder), why) from error
        raise
    for name, upload in uploads:
        if name == key or name.startswith(prefix):
            yield StoredVersion(f"s3://{bucket}/{name}", 0, VersionKind.UPLOAD, upload, latest=False)


def _versions(client: Any, bucket: str, prefix: str, only: str | None = None) -> Iterator[StoredVersion]:
    """Every version and delete marker below a prefix; with `only`, those of one key, which comes before longer ones."""
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        markers = page.get("DeleteMarkers", ())
        listed = (*page.get("Versions", ()), *markers)
        for each in page.get("Versions", ()):
            if only in (None, each["Key"]):
                yield _of_s3(bucket, each)
        for each in markers:
            if only in (None, each["Key"]):
                path, latest = f"s3://{bucket}/{each['Key']}", bool(each.get("IsLatest"))
                yield StoredVersion(path, 0, VersionKind.DELETE_MARKER, each.get("VersionId"), latest=latest)
        if only is not None and any(each["Key"] != only for each in listed):
            return


def _of_s3(bucket: str, each: Mapping[str, Any]) -> StoredVersion:
    version = each.get("VersionId")
    # A bucket that never kept versions calls each of its objects' only one "null".
    version = None if version == "null" and each.get("IsLatest") else version
    etag = each.get("ETag", "").strip('"')
    checksum = f"etag:{etag}" if etag else None
    path, latest = f"s3://{bucket}/{each['Key']}", bool(each.get("IsLatest"))
    return StoredVersion(path, each["Size"], VersionKind.OBJECT, version, checksum, latest)


class _Ranges(io.RawIOBase):
    """One version of an object on S3, by ranges of it."""

    def __init__(self, stored: StoredVersion, options: Mapping[str, str]) -> None:
        bucket, _, key = stored.path.removeprefix("s3://").partition("/")
        self._which = {"Bucket": bucket, "Key": key, **({"VersionId": stored.version} if stored.version else {})}
        self._client, self._size, self._at = s3_client(options), stored.bytes, 0
        self._answer: Mapping[str, Any] | None = None

    def beside(self) -> list[str]:
        """What the store keeps of the object beside its bytes: names and values of its own metadata and of its tags."""
        try:
            answer = self._answer or self._client.head_object(**self._which)
            tagged = self._answer is None or answer.get("TagCount")  # not every store counts them where nothing is read
            tags = self._client.get_object_tagging(**self._which)["TagSet"] if tagged else []
        except Exception as error:
            raise _without_words(error) from None
        texts = [text for pair in (answer.get("Metadata") or {}).items() for text in pair]
        return texts + [text for tag in tags for text in (tag["Key"], tag["Value"])]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        try:
            answer = self._client.get_object(**self._which, Range=f"bytes={self._at}-{self._at + wanted - 1}")
            got = answer["Body"].read()
            self._answer = answer
        except Exception as error:
            raise _without_words(error) from None
        buffer[: len(got)] = got
        self._at += len(got)
        return len(got)


def _without_words(error: Exception) -> OSError:
    """What the store says, without its words: they name the key, which may be a person's."""
    code = str(getattr(error, "response", {}).get("Error", {}).get("Code") or "")
    if code in ("NoSuchKey", "NoSuchVersion", "404"):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if code in ("AccessDenied", "403", "InvalidObjectState"):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return OSError(errno.EIO, os.strerror(errno.EIO))
