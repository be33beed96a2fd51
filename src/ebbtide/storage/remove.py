"""Removing objects of a store, by their exact paths, many at a time. Everything that Ebbtide removes itself goes here.

1. Paths are normalised, name one object each, and are never a folder: anything else is refused before the first one.
2. Nothing is matched: no pattern, no prefix, no recursion.
3. An answer is read for every path. A store that does not mention a path has not removed it (hazards 27, 29).
4. On local disk folders are opened one by one and files removed in them: no link on the way is followed (hazard 37).
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ebbtide.errors import RefusedError, UnreadableError, keep_trace, kind_of
from ebbtide.model.paths import is_inside, local_path, normalise
from ebbtide.model.removal import CheckedFolder
from ebbtide.storage.handles import Folders, LinkError
from ebbtide.storage.s3 import CALLS_AT_ONCE, s3_client

_logger = logging.getLogger(__name__)
_BATCH = 1000  # what S3 takes in one call
_MARKER = "only hidden by a delete marker: the bucket keeps versions, and the bytes are still there"
_NO_ANSWER = "the store did not answer for it"


def remove_files(
    paths: Collection[str],
    options: Mapping[str, str],
    before_batch: Callable[[], None],
    places: Collection[CheckedFolder] = (),
) -> dict[str, str]:
    """Remove exactly these files; for each that may still be there, the store's own error.

    A path that is not in the answer is gone, or was never there. `before_batch` is called on this thread before each
    batch, and ends everything when it raises: what was begun is finished, nothing new begins. On local disk Hadoop's
    checksum `.name.crc` goes with its file. A file that is a link stays, and so does one behind a link, unless that is
    how one of the `places` was reached all along.
    """
    local, keys = _sorted_out(paths)
    failed = dict(_in_batches(local, lambda batch: _unlink(batch, places), before_batch))
    for bucket in sorted(keys):
        client = s3_client(options)

        def delete(batch: Sequence[str], bucket: str = bucket, client: Any = client) -> dict[str, str]:
            return _delete_objects(client, bucket, batch)

        failed |= _in_batches(keys[bucket], delete, before_batch)
    _logger.debug("%d objects removed by their paths, %d refused", len(set(paths)) - len(failed), len(failed))
    return failed


def remove_empty_folders(folders: Collection[str], root: str, places: Collection[CheckedFolder] = ()) -> dict[str, str]:
    """Remove these folders where they are empty, then the empty ones above them, up to `root`, which stays.

    A folder with anything in it stays: `rmdir` decides that in one step, so a file that a writer puts there meanwhile
    is safe. So does a link, and what lies behind one. Gives the error of each folder that is empty and could not be
    removed. S3 has no folders.
    """
    for folder in folders:
        if normalise(folder) != folder or not is_inside(folder, normalise(root)):
            raise RefusedError(f"{folder} does not lie in {root}: no folder was removed")
    failed: dict[str, str] = {}
    with Folders(places) as opened:
        for folder in sorted(folders, key=lambda each: (-len(each), each)):
            here = folder
            while here != normalise(root) and local_path(here) is not None:
                around, _, name = here.rpartition("/")
                try:
                    os.rmdir(name, dir_fd=opened.open(around))
                except FileNotFoundError:
                    pass
                except LinkError:
                    break
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                        failed[here] = _said(error)
                    break
                here = around
    return failed


def _sorted_out(paths: Collection[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Local paths, and S3 paths by bucket; refuses all when one of them is not exactly one object."""
    local: list[str] = []
    keys: dict[str, list[str]] = {}
    for path in sorted(set(paths)):
        if normalise(path) != path:
            raise RefusedError(f"{path} is not a normalised path: nothing was removed")
        if (place := local_path(path)) is not None:
            if Path(place).is_dir():
                raise RefusedError(f"{path} is a folder: nothing was removed")
            local.append(path)
        elif path.startswith("s3://"):
            bucket, _, key = path.removeprefix("s3://").partition("/")
            if not key:
                raise RefusedError(f"{path} is a whole bucket: nothing was removed")
            keys.setdefault(bucket, []).append(path)
        else:
            raise UnreadableError(path, "its scheme is not supported", hint="local paths and s3:// work")
    return local, keys


def _in_batches(
    paths: Sequence[str], remove: Callable[[Sequence[str]], dict[str, str]], before_batch: Callable[[], None]
) -> dict[str, str]:
    failed: dict[str, str] = {}
    running: set[Future[dict[str, str]]] = set()
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        for batch in _batches(paths):
            if len(running) == CALLS_AT_ONCE:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    failed |= future.result()
            before_batch()
            running.add(pool.submit(remove, batch))
    for future in running:
        failed |= future.result()
    return failed


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH))


def _unlink(paths: Sequence[str], places: Collection[CheckedFolder]) -> dict[str, str]:
    failed: dict[str, str] = {}
    with Folders(places) as opened:
        for path in paths:
            folder, _, name = path.rpartition("/")
            # The checksum last: without its file it says nothing, without it the file cannot be read by Hadoop.
            for each in (name, f".{name}.crc"):
                try:
                    os.unlink(each, dir_fd=opened.refuse_link(f"{folder}/{each}"))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    failed[f"{folder}/{each}"] = _said(error)
                    break
    return failed


def _said(error: OSError) -> str:
    if isinstance(error, LinkError):
        return str(error.strerror)
    return f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})"


def _delete_objects(client: Any, bucket: str, paths: Sequence[str]) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError, ClientError

    start = f"s3://{bucket}/"
    wanted = {path.removeprefix(start): path for path in paths}
    # Not quiet: a quiet answer lists errors only, and a key that was overlooked would count as removed.
    order = {"Objects": [{"Key": key} for key in wanted], "Quiet": False}
    try:
        answer = client.delete_objects(Bucket=bucket, Delete=order)
    except (BotoCoreError, ClientError) as error:
        keep_trace(error)
        said: Mapping[str, Any] = getattr(error, "response", {})
        return dict.fromkeys(paths, _code(said.get("Error", {})) or kind_of(error))
    failed = dict.fromkeys(paths, _NO_ANSWER)
    for gone in answer.get("Deleted", ()):
        failed.pop(wanted.get(gone["Key"], ""), None)
        if gone.get("DeleteMarker") and "VersionId" not in gone:
            failed[wanted[gone["Key"]]] = _MARKER
    for refused in answer.get("Errors", ()):
        path = wanted.get(refused.get("Key", ""))
        if path is None:
            continue
        if refused.get("Code") == "NoSuchKey":
            failed.pop(path, None)
        else:
            failed[path] = _code(refused) or _NO_ANSWER
    return failed


def _code(refused: Mapping[str, Any]) -> str:
    """What the store says by its code alone: its words name keys, which may hold values, and who asked."""
    return str(refused.get("Code") or "")
