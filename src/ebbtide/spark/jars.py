"""The jars of each Spark profile: which ones, their checksums, and where they are kept.

`python -m ebbtide.spark.jars PROFILE` fetches what is missing through Spark's own resolver into a cache outside the
work tree and verifies every file against the lock file beside this module; `--lock` rewrites that file. Sessions use
the verified files and never resolve anything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import SetupError
from ebbtide.spark.java import launch_environment
from ebbtide.spark.trust import java_options

_JDBC = ("org.xerial:sqlite-jdbc:3.50.3.0", "org.postgresql:postgresql:42.7.14")

COORDINATES = {
    "spark35": (
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "io.delta:delta-spark_2.12:3.3.3",
        "io.delta:delta-storage:3.3.3",
        "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
        "org.apache.paimon:paimon-spark-3.5:0.9.0",
        *_JDBC,
    ),
    "spark41": (
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        "io.delta:delta-storage:4.4.0",
        *_JDBC,
    ),
    # No profile of ours: what jobs that post their lineage run with. Tests fetch it.
    "openlineage": ("io.openlineage:openlineage-spark_2.12:1.53.0",),
}


@dataclass(frozen=True, slots=True)
class LockedJar:
    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"


def cache_dir() -> Path:
    if configured := os.environ.get("EBBTIDE_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebbtide"


def lock_file(profile: str) -> Path:
    return Path(__file__).with_name(f"jars-{profile}.lock")


def locked(profile: str) -> list[LockedJar]:
    lines = lock_file(profile).read_text().split("\n")
    return [LockedJar(line.split()[1], line.split()[0]) for line in lines if line.strip()]


def paths(profile: str) -> list[Path]:
    """The verified jar files of a profile; an error with a hint where set-up has not run."""
    found = [cache_dir() / "jars" / jar.file_name for jar in locked(profile)]
    missing = [path.name for path in found if not path.exists()]
    if missing:
        raise SetupError(f"jars are missing: {', '.join(missing)}", hint="run `make setup`")
    return found


def fetch(profile: str) -> None:
    """Bring every locked jar into the cache, verified. Needs the network only for what is missing."""
    target = cache_dir() / "jars"
    target.mkdir(parents=True, exist_ok=True)
    wanted = locked(profile)
    for jar in wanted:
        path = target / jar.file_name
        if path.exists() and _sha256(path) != jar.sha256:
            path.unlink()
    missing = [jar for jar in wanted if not (target / jar.file_name).exists()]
    if not missing:
        return
    with tempfile.TemporaryDirectory(dir=cache_dir()) as ivy:
        resolved = resolve([jar.coordinate for jar in missing], Path(ivy))
        for jar in missing:
            found = _sha256(resolved[jar.coordinate])
            if found != jar.sha256:
                raise SetupError(
                    f"checksum of {jar.coordinate} is {found}, expected {jar.sha256}",
                    hint="the registry served another file than the locked one: do not use it",
                )
            # A rename inside one file system: another clone's set-up never sees half a file.
            resolved[jar.coordinate].replace(target / jar.file_name)


def resolve(coordinates: list[str], ivy: Path) -> dict[str, Path]:
    """Let Spark's own resolver download the coordinates into `ivy`, and nothing that they depend on."""
    program = (
        "import sys; from pyspark.sql import SparkSession\n"
        "SparkSession.builder.master('local[1]').config('spark.jars.packages', sys.argv[1])"
        ".config('spark.jars.ivy', sys.argv[2]).config('spark.ui.enabled', 'false').getOrCreate().stop()"
    )
    env = os.environ | launch_environment() | {"JAVA_TOOL_OPTIONS": java_options(ivy)}
    answer = subprocess.run(
        [sys.executable, "-c", program, ",".join(coordinates), str(ivy)], env=env, capture_output=True, text=True
    )
    found = {c: ivy / "jars" / LockedJar(c, "").file_name for c in coordinates}
    if missing := [c for c, path in found.items() if not path.exists()]:
        raise SetupError(
            f"could not fetch {', '.join(missing)}\n{answer.stderr[-1500:]}",
            hint="the first set-up needs the Maven registry; later runs work offline",
        )
    return found


def write_lock(profile: str) -> None:
    with tempfile.TemporaryDirectory() as ivy:
        found = resolve(list(COORDINATES[profile]), Path(ivy))
        lines = [f"{_sha256(found[c])}  {c}\n" for c in COORDINATES[profile]]
        lock_file(profile).write_text("".join(lines))
        target = cache_dir() / "jars"
        target.mkdir(parents=True, exist_ok=True)
        for coordinate, path in found.items():
            shutil.copy(path, target / LockedJar(coordinate, "").file_name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    if "--lock" in sys.argv:
        write_lock(sys.argv[1])
    else:
        fetch(sys.argv[1])
