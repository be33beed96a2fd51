"""The keys of erasure requests: one file of 64-byte slots, beside the ledger's keys (spec §4).

1. A slot is written once, at the end, and is on disk when `append` returns; what refers to it is committed after that.
   A write that a crash cut leaves a slot, or a part of one, that nothing refers to: the next one goes behind it.
2. A record holds a tag of its request and a checksum: a slot of another request, or one that was half written, is
   refused, never used.
3. Destroyed is one slot, alone: behind the tag its bytes are zero, on disk when `destroy` returns. The tag stays, so
   that a slot that was another request's is never taken for this one's. A slot never crosses a sector.
4. Whether the file is the one that a database refers to is told by the tags. One that is not is neither written to nor
   read, and only `append` makes the file.
5. Reading a key is one read at its place, however many there are. Only who appends or destroys takes the lock.

The file lies in the key folder and never in the database, a backup of it, or a log. (On storage that keeps old blocks,
overwriting is not enough: keep the folder on an encrypted volume, and out of backups.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ebbtide.errors import RefusedError, StateError, UnreadableError
from ebbtide.private import private_folder
from ebbtide.state.keys import KEY_BYTES

SLOT_BYTES = 64
TAG_BYTES = _CHECK_BYTES = 16
_HEADER = b"ebbtide request keys 1\n".ljust(SLOT_BYTES, b".")
_DESTROYED = bytes(SLOT_BYTES - TAG_BYTES)
_ANSWER_SECONDS = 60
_SCAN = 4096


class RequestKeys:
    """The file. It prints its path, never what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"RequestKeys({self.path})"

    def append(self, requests: Sequence[str], keys: Sequence[bytes] | None = None) -> tuple[range, Sequence[bytes]]:
        """New keys, one a request, in slots one after the other; or those that lay elsewhere until now."""
        if keys is None:
            fresh = os.urandom(KEY_BYTES * len(requests))
            keys = [fresh[start : start + KEY_BYTES] for start in range(0, len(fresh), KEY_BYTES)]
        with self._locked(os.O_RDWR | os.O_CREAT) as descriptor:
            first = self._end(descriptor)
            slots = range(first, first + len(requests))
            records = [_record(*item) for item in zip(slots, requests, keys, strict=True)]
            _write(descriptor, b"".join(records), _place(first))
            os.fsync(descriptor)
        return slots, keys

    def read(self, slot: int, request: str) -> bytes:
        """The key of a request."""
        with self.reading() as keys:
            return keys.key(slot, request)

    @contextmanager
    def reading(self) -> Iterator[OpenKeys]:
        """The open file, for whoever reads many keys; refused when others could read it as well."""
        descriptor = self._open(os.O_RDONLY)
        try:
            yield OpenKeys(descriptor)
        finally:
            os.close(descriptor)

    def destroy(self, slots: Iterable[tuple[int, str]]) -> None:
        """Overwrite the keys of requests. Destroying one that is gone changes nothing; another request's is refused."""
        wanted = sorted(slots)
        if not wanted:
            return
        with self._locked(os.O_RDWR) as descriptor:
            for slot, request in wanted:
                _check_owner(descriptor, slot, request)
            for slot, _ in wanted:
                _write(descriptor, _DESTROYED, _place(slot) + TAG_BYTES)
            os.fsync(descriptor)

    def behind(self, last: tuple[int, str] | None) -> range:
        """The slots behind the last one that a request refers to, if any of them holds a key.

        Refused where that one is not the request's: the file is not the one that the database refers to.
        """
        if last is None and not self.path.exists():
            return range(0)
        descriptor = self._open(os.O_RDONLY)
        try:
            if last is not None:
                _check_owner(descriptor, *last)
            first, end = 0 if last is None else last[0] + 1, _slots_in(descriptor)
            return range(first, end) if any(_keys_from(descriptor, first, end)) else range(0)
        finally:
            os.close(descriptor)

    def destroy_all(self, slots: range) -> None:
        """Overwrite what lies in slots that nothing refers to, whole or half written, for whoever knows that."""
        if slots:
            with self._locked(os.O_RDWR) as descriptor:
                self._end(descriptor)
                _write(descriptor, bytes(SLOT_BYTES * len(slots)), _place(slots.start))
                os.fsync(descriptor)

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The file for writing, for one process at a time."""
        from filelock import FileLock, Timeout

        private_folder(self.path.parent)
        try:
            with FileLock(self.path.with_name(f"{self.path.name}.lock"), mode=0o600, timeout=_ANSWER_SECONDS):
                descriptor = self._open(flags)
                try:
                    yield descriptor
                finally:
                    os.close(descriptor)
        except Timeout:
            raise StateError(
                f"{self.path} is locked by another process", hint="look whether one hangs, and try again"
            ) from None
        except OSError as error:
            raise StateError(f"the requests' keys could not be kept at {self.path}: {error.strerror}") from None

    def _open(self, flags: int) -> int:
        try:
            # Not through a link: what it leads to may be no keys at all.
            descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise UnreadableError(
                "the requests' keys", "the file is not here", hint=f"it belongs to {self.path.parent}"
            ) from None
        except OSError as error:
            raise UnreadableError("the requests' keys", error.strerror or "cannot be read") from None
        if os.fstat(descriptor).st_mode & 0o077:
            os.close(descriptor)
            raise RefusedError("others may read the requests' keys", hint=f"run `chmod 600 {self.path}`")
        return descriptor

    def _end(self, descriptor: int) -> int:
        """The first slot that nobody ever wrote to. What a crash cut short counts as written."""
        size = os.fstat(descriptor).st_size
        if size < SLOT_BYTES:
            _write(descriptor, _HEADER, 0)
            os.fsync(descriptor)
            _sync(self.path.parent)
            return 0
        if os.pread(descriptor, SLOT_BYTES, 0) != _HEADER:
            raise UnreadableError(
                "the requests' keys", f"{self.path} is no such file", hint="bring back the one that was"
            )
        return _slots_in(descriptor)


class OpenKeys:
    """Keys out of the open file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def key(self, slot: int, request: str) -> bytes:
        """The key of a request; refused when it was destroyed, is another's, or was not written whole."""
        record = _read(self._descriptor, slot, 1)
        key = _key_in(record, slot, request)
        if key is None:
            gone = record == _tag(request) + _DESTROYED
            raise UnreadableError(
                f"key of request {request}",
                "it was destroyed" if gone else f"slot {slot} does not hold it",
                hint="nobody can open its identifiers any more" if gone else _OTHER_HOST,
            )
        return key


_OTHER_HOST = "the file is another host's, or was cut or replaced: bring back the one that was beside the ledger's keys"


def _record(slot: int, request: str, key: bytes) -> bytes:
    content = _tag(request) + key
    return content + sha256(slot.to_bytes(8) + content).digest()[:_CHECK_BYTES]


def _tag(request: str) -> bytes:
    return sha256(request.encode()).digest()[:TAG_BYTES]


def _check_owner(descriptor: int, slot: int, request: str) -> None:
    """Refuse a slot that is not, and was not, of the request."""
    record = _read(descriptor, slot, 1)
    if len(record) != SLOT_BYTES or record[:TAG_BYTES] != _tag(request):
        raise RefusedError(f"slot {slot} of the requests' keys is not of request {request}", hint=_OTHER_HOST)


def _slots_in(descriptor: int) -> int:
    return -(-os.fstat(descriptor).st_size // SLOT_BYTES) - 1


def _keys_from(descriptor: int, first: int, end: int) -> Iterator[bool]:
    """Whether anything is left in each slot."""
    for start in range(first, end, _SCAN):
        raw = _read(descriptor, start, min(_SCAN, end - start))
        yield from (any(raw[at + TAG_BYTES : at + SLOT_BYTES]) for at in range(0, len(raw), SLOT_BYTES))


def _key_in(record: bytes, slot: int, request: str) -> bytes | None:
    key = record[TAG_BYTES : TAG_BYTES + KEY_BYTES]
    return key if len(record) == SLOT_BYTES and record == _record(slot, request, key) else None


def _place(slot: int) -> int:
    return SLOT_BYTES * (slot + 1)


def _read(descriptor: int, slot: int, count: int) -> bytes:
    return os.pread(descriptor, SLOT_BYTES * count, _place(slot))


def _write(descriptor: int, content: bytes, place: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
