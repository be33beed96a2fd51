"""The jars of each Spark profile: which ones, their checksums and sizes, and where they are kept.

`ebbtide setup` brings what is missing into a cache outside the work tree (`fetch.py`), verified against the lock file
beside this module. Sessions use the verified files and never resolve anything. `python -m ebbtide.spark.fetch PROFILE`
writes a lock file anew.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ebbtide.errors import SetupError

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
    size: int

    @property
    def file_name(self) -> str:
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"

    @property
    def path(self) -> Path:
        """Where sessions take it from."""
        return jar_folder() / self.file_name


def cache_dir() -> Path:
    if configured := os.environ.get("EBBTIDE_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebbtide"


def jar_folder() -> Path:
    return cache_dir() / "jars"


def lock_file(profile: str) -> Path:
    return Path(__file__).with_name(f"jars-{profile}.lock")


def locked(profile: str) -> list[LockedJar]:
    lines = [line.split() for line in lock_file(profile).read_text().splitlines() if line.strip()]
    return [LockedJar(coordinate, digest, int(size)) for digest, size, coordinate in lines]


def look_at(jar: LockedJar) -> Literal["verified", "missing", "another"]:
    """Read a jar in the cache: whether it is the locked one."""
    if not jar.path.exists():
        return "missing"
    return "verified" if sha256(jar.path) == jar.sha256 else "another"


def paths(profile: str) -> list[Path]:
    """The verified jar files of a profile; an error with a hint where set-up has not run."""
    wanted = locked(profile)
    missing = [jar.file_name for jar in wanted if not jar.path.exists()]
    if missing:
        raise SetupError(f"jars are missing: {', '.join(missing)}", hint="run `ebbtide setup`")
    return [jar.path for jar in wanted]


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
