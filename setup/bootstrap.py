"""Set up one work tree: uv, the locked environment, Java and jars. Standard library only.

`make setup` runs it with whatever `python3` there is. It is quick when nothing changed: a stamp in the environment
holds a hash of everything that set-up depends on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROFILES = {
    "spark35": ".venv",
    "spark41": ".venv-spark41",
    "dbt": ".venv-dbt",
    "airflow": ".venv-airflow",
    "dagster": ".venv-dagster",
}
TOOLS = {"dbt", "airflow", "dagster"}
"""Environments of programs that tests call: without Ebbtide and its jars, whose versions they would fight with."""


def cache_dir() -> Path:
    """Where downloads live: outside the work tree, shared by all clones (the same rule as `ebbtide.spark.jars`)."""
    if configured := os.environ.get("EBBTIDE_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebbtide"


def certificates() -> dict[str, str]:
    """Let pip and uv trust what the machine trusts, where nobody said otherwise: both bring lists of their own."""
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    return {"SSL_CERT_FILE": bundle, "PIP_CERT": bundle} if Path(bundle).is_file() else {}


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, **env: str) -> None:
    result = subprocess.run([str(part) for part in command], cwd=ROOT, env={**certificates(), **os.environ, **env})
    if result.returncode:
        raise SystemExit(f"setup: failed with exit {result.returncode}: {' '.join(map(str, command))}")


def find_uv() -> Path:
    if found := shutil.which("uv"):
        return Path(found)
    tools = cache_dir() / "tools"
    uv = tools / "bin" / "uv"
    if not uv.exists():
        say("installing uv")
        run(sys.executable, "-m", "venv", tools)
        run(tools / "bin" / "python", "-m", "pip", "install", "--quiet", "uv")
    return uv


def fingerprint(profile: str) -> str:
    parts = [ROOT / "requirements" / f"{profile}.txt", Path(__file__)]
    if profile not in TOOLS:
        parts += [ROOT / "pyproject.toml", *sorted((ROOT / "src" / "ebbtide" / "spark").glob("jars*"))]
    digest = hashlib.sha256(str(ROOT).encode())
    for part in parts:
        digest.update(part.read_bytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="spark35")
    profile = parser.parse_args().profile
    venv = ROOT / PROFILES[profile]
    python, stamp = venv / "bin" / "python", venv / ".ebbtide-setup"
    wanted = fingerprint(profile)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    uv = find_uv()
    env = {"UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(venv), "UV_NO_PROGRESS": "1"}
    # Python would do it when it first loads a module, but not where PYTHONDONTWRITEBYTECODE is set, as in many images:
    # there every process, every worker of a test among them, compiles all that it loads, half of its start.
    env["UV_COMPILE_BYTECODE"] = "1"
    if not python.exists():
        run(uv, "venv", "--quiet", "--python", sys.executable, venv, **env)
    say(f"installing the locked environment into {venv.name}/")
    run(uv, "pip", "sync", "--quiet", "--require-hashes", f"requirements/{profile}.txt", **env)
    if profile not in TOOLS:
        run(uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ".", **env)
        say("preparing Java and jars (the first run downloads about 200 MB)")
        run(venv / "bin" / "ebbtide", "setup")
    stamp.write_text(wanted)
    say("done")


if __name__ == "__main__":
    main()
