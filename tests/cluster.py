"""A standalone Spark cluster on loopback: a master and two workers, each a process of its own.

Their working directories are not the driver's, so that nothing can lean on it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ebbtide.spark.java import launch_environment

WORKERS = 2
_DEADLINE = 60.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start the cluster, give its address, and end its processes."""
    home = Path(pyspark.__file__).parent
    port = _free_port()
    env = os.environ | launch_environment() | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        place = folder / name
        place.mkdir(parents=True)
        with (place / "log").open("wb") as log:
            command = [str(home / "bin" / "spark-class"), *arguments]
            started.append(subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=log))

    try:
        start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
              "--webui-port", str(_free_port()))  # fmt: skip
        address = f"spark://127.0.0.1:{port}"
        _wait_for(port)
        for n in range(WORKERS):
            start(f"worker{n}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1",
                  "--memory", "1g", "--webui-port", str(_free_port()), "--work-dir", str(folder / f"work{n}"),
                  address)  # fmt: skip
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + _DEADLINE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"no master on port {port} after {_DEADLINE} s")
