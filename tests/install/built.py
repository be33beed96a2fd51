"""The wheel, as a release would be, and an environment with nothing else: for tests, and for a benchmark.

The wheel is built from this tree by what the lock has. Packages come from uv's cache, which set-up filled: no network
is asked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from importlib.metadata import requires
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ebbtide.spark.jars import cache_dir

ROOT = Path(__file__).parents[2]
_KEPT = ("PATH", "LANG", "JAVA_HOME", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Somebody's machine: an environment, an empty home and an empty folder."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "work"

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        home = {"HOME": str(self.root / "home"), "COLUMNS": "200"}
        env = {name: os.environ[name] for name in _KEPT if name in os.environ} | home
        command = [str(self.root / "env" / "bin" / words[0]), *words[1:]]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, root: Path) -> Newcomer:
    """As `pip install` of it, with the versions and hashes of the lock."""
    for name in ("home", "work"):
        (root / name).mkdir(parents=True)
    needed = root / "needed.txt"
    needed.write_text(_locked(asked_by(wheel)))
    uv = shutil.which("uv") or str(cache_dir() / "tools" / "bin" / "uv")
    env = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "VIRTUAL_ENV": str(root / "env")}
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(root / "env")],
        ["pip", "sync", "--quiet", "--offline", "--require-hashes", str(needed)],
        ["pip", "install", "--quiet", "--offline", "--no-deps", str(wheel)],
        ["pip", "check", "--quiet"],  # what the wheel asks for is there, in versions that it takes
    ):
        done = subprocess.run([uv, *words], cwd=root, env=os.environ | env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return Newcomer(root)


def metadata_of(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def asked_by(wheel: Path) -> list[str]:
    """What the wheel requires, extras included, as it is written there."""
    return metadata_of(wheel).get_all("Requires-Dist", [])


def _locked(first: list[str]) -> str:
    """The part of the lock that these need, and nothing of what only tests do. Without a network nobody could resolve
    it: uv's cache knows what was installed, and no registry's lists.
    """
    needed, asked = set[tuple[str, str]](), _wanted(first, "")
    while asked:
        each = asked.pop()
        if each not in needed:
            needed.add(each)
            asked += _wanted(requires(each[0]) or (), each[1])
    names = {name for name, _ in needed}
    entries = re.split(r"(?m)^(?=\S)", (ROOT / "requirements" / "spark35.txt").read_text())
    return "".join(each for each in entries if re.split(r"[=\[]", each, maxsplit=1)[0] in names)


def _wanted(written: Iterable[str], extra: str) -> list[tuple[str, str]]:
    """Packages by name, each by itself and with every extra that is asked of it."""
    return [
        (canonicalize_name(requirement.name), more)
        for requirement in map(Requirement, written)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        for more in ("", *requirement.extras)
    ]
