"""Bring jars into the cache: from a folder, or through Spark's own resolver, so that no address stands here.

1. Nothing but a file with the locked checksum gets into the cache, by a rename: nobody ever sees half a jar there, and
   one that is another stays until the right one has come.
2. What has come whole is kept, whatever ends a fetch: the next one brings only what is missing.
3. One fetch at a time brings jars into a cache; another one waits for it, and finds its jars there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ebbtide.errors import SetupError
from ebbtide.private import writing
from ebbtide.run import RunContext, quiet
from ebbtide.spark.jars import COORDINATES, LockedJar, cache_dir, jar_folder, lock_file, look_at, sha256
from ebbtide.spark.java import launch_environment
from ebbtide.spark.trust import java_options

_LOOKS_EVERY = 0.2
_MIB = 1 << 20
_PROGRAM = (
    "import sys; from pyspark.sql import SparkSession\n"
    "SparkSession.builder.master('local[1]').config('spark.jars.packages', sys.argv[1])"
    ".config('spark.jars.ivy', sys.argv[2]).config('spark.ui.enabled', 'false').getOrCreate().stop()"
)


def missing_of(wanted: Iterable[LockedJar]) -> list[LockedJar]:
    """Those that are not in the cache, or are there as another file."""
    return [jar for jar in wanted if look_at(jar) != "verified"]


def fetch(
    wanted: Sequence[LockedJar], *, source: Path | None = None, context: RunContext | None = None
) -> list[LockedJar]:
    """Bring every wanted jar into the cache, verified, and say which ones came.

    From `source` nothing is asked of the network. Otherwise it is needed for what is missing, and only then.
    """
    context = quiet(context)
    missing = missing_of(wanted)
    if not missing:
        return []
    with writing(jar_folder(), hint="set EBBTIDE_CACHE to a folder that can be written", asked=True):
        jar_folder().mkdir(parents=True, exist_ok=True)
        if source is not None:
            _copy(missing, source, context)
            return missing
        with FileLock(cache_dir() / "fetching.lock"):
            return _download(missing_of(missing), cache_dir() / "fetching", context)


def resolve(coordinates: Sequence[str], room: Path, context: RunContext, *, size: int | None = None) -> None:
    """Let Spark's own resolver download the coordinates into `room`; an error where it brings one of them not."""
    options = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {java_options(room)}".strip()
    env = os.environ | launch_environment() | {"JAVA_TOOL_OPTIONS": options}
    context.step(f"fetching {len(coordinates)} jars", None if size is None else -(-size // _MIB), unit="MiB")
    log = room / "resolver.log"
    command = [sys.executable, "-c", _PROGRAM, ",".join(coordinates), str(room)]
    with log.open("wb") as told, _ended(
        # A group of its own: the resolver's Java is to end with it, wherever it is.
        subprocess.Popen(command, env=env, stdout=told, stderr=told, stdin=subprocess.DEVNULL, start_new_session=True)
    ) as process:  # fmt: skip
        came = 0
        while process.poll() is None:
            time.sleep(_LOOKS_EVERY)
            now = _bytes_in(room / "cache") // _MIB
            context.advance(max(0, now - came))
            came = max(came, now)
    if missing := [c for c in coordinates if _arrived(room, c) is None]:
        raise SetupError(
            f"could not fetch {', '.join(missing)}\n{log.read_text(errors='replace')[-1500:]}",
            hint="this needs the network once; without one, `ebbtide setup --from FOLDER` takes jars from a folder",
        )


def write_lock(profile: str) -> None:
    """Resolve the profile's coordinates, and write down what came."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        resolve(COORDINATES[profile], room, quiet())
        lines = []
        for coordinate in COORDINATES[profile]:
            path = _arrived(room, coordinate)
            assert path is not None
            lines.append(f"{sha256(path)}  {path.stat().st_size:>9}  {coordinate}\n")
        lock_file(profile).write_text("".join(lines))


def refuse_source(missing: Sequence[LockedJar], source: Path) -> None:
    """What a copy from this folder would refuse, by reading alone."""
    copies = _copies(missing, source)
    for jar, path in copies.items():
        _check(jar, path)
    _refuse_absent(missing, copies, source)


def _copy(missing: Sequence[LockedJar], source: Path, context: RunContext) -> None:
    copies = _copies(missing, source)
    context.step(f"copying {len(copies)} jars", len(copies), unit="jars")
    for jar, path in copies.items():
        _check(jar, path)
        partial = jar.path.with_suffix(".part")
        shutil.copyfile(path, partial)
        _check(jar, partial)
        partial.replace(jar.path)
        context.advance()
    _refuse_absent(missing, copies, source)


def _copies(missing: Sequence[LockedJar], source: Path) -> dict[LockedJar, Path]:
    return {jar: path for jar in missing for path in _names(source, jar) if path.is_file()}


def _refuse_absent(missing: Sequence[LockedJar], copies: Collection[LockedJar], source: Path) -> None:
    if absent := [jar.file_name for jar in missing if jar not in copies]:
        raise SetupError(
            f"{source} lacks {', '.join(absent)}",
            hint="copy the folder `jars` of the cache of a machine where `ebbtide setup` ran",
        )


def _names(source: Path, jar: LockedJar) -> tuple[Path, ...]:
    """As our cache names it, and as everybody else does."""
    _, artifact, version = jar.coordinate.split(":")
    return source / f"{artifact}-{version}.jar", source / jar.file_name


def _download(missing: list[LockedJar], room: Path, context: RunContext) -> list[LockedJar]:
    came = _keep_whole(missing, room)  # what a fetch that was killed had brought
    _clear(room)
    if left := [jar for jar in missing if jar not in came]:
        room.mkdir()
        try:
            resolve([jar.coordinate for jar in left], room, context, size=sum(jar.size for jar in left))
            for jar in left:
                path = _arrived(room, jar.coordinate)
                assert path is not None
                _check(jar, path)
        finally:
            _keep_whole(left, room)
            _clear(room)
    return missing


def _keep_whole(jars: Sequence[LockedJar], room: Path) -> list[LockedJar]:
    """Move those into the cache that have come as they were locked."""
    kept = []
    for jar in jars:
        path = _arrived(room, jar.coordinate)
        if path is not None and sha256(path) == jar.sha256:
            path.replace(jar.path)
            kept.append(jar)
    return kept


def _arrived(room: Path, coordinate: str) -> Path | None:
    """Where the resolver has put a jar: at the end in a folder of all, before that in a folder of its own."""
    group, artifact, version = coordinate.split(":")
    found = [room / "jars" / LockedJar(coordinate, "", 0).file_name]
    found += (room / "cache" / group / artifact).glob(f"*/{artifact}-{version}.jar")
    return next((path for path in found if path.is_file()), None)


def _check(jar: LockedJar, path: Path) -> None:
    if (found := sha256(path)) != jar.sha256:
        raise SetupError(
            f"checksum of {jar.coordinate} is {found}, expected {jar.sha256}",
            hint="this is another file than the locked one: do not use it",
        )


def _clear(room: Path) -> None:
    """Remove what is the resolver's. A link in its place is somebody else's, and refused."""
    if room.is_symlink():
        raise SetupError(f"{room} is a link", hint="remove it yourself: jars are resolved in a folder of that name")
    if room.exists():
        shutil.rmtree(room)


def _bytes_in(folder: Path) -> int:
    """Of jars alone, whole or in part. What is renamed meanwhile counts the next time."""
    total = 0
    for path in folder.rglob("*.jar*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """After the block nothing of the process is left, however the block ends."""
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    write_lock(sys.argv[1])
