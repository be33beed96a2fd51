"""Pages as a reader walks them: files are written, commands run in a scratch project, and what is shown must come.

- A `yaml` block that begins with a comment of a path (`# policies/retention.yml`) is that file of the project.
- In a `console` block a line `$ ebbtide …` is run as it stands, and exits with 0, or as a comment behind it says
  (`# exits 10`). The lines below it are its data; of a command that has none, what it says on stderr.
- Ids, times, sizes and digests differ from lake to lake and are not compared, nor is the width of columns; a line `…`
  stands for any number of lines, and a command with no lines below it may print what it likes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.command import ebbtide

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.yml)\n")
_EXITS = re.compile(r"\s+# exits (\d+)$")
_PROGRESS = re.compile(r" \d+ s so far$")
_MASKS = (
    (re.compile(r"sha256:[0-9a-f]{64}|\b[0-9a-f]{32}\b|\b\d{15,19}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\b\d+ min ago"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? [KM]?i?B\b"), "SIZE"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, with the lines that the page shows below it."""

    command: str
    exits: int
    shown: tuple[str, ...]


def walk(page: Path) -> Iterator[tuple[str, str] | Step]:
    """Files, as path and text, and commands, in the order of the page."""
    for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            yield from _steps(text)
        elif named := _FILE.match(text):
            yield named[1], text


def steps(page: Path) -> list[Step]:
    return [step for step in walk(page) if isinstance(step, Step)]


def follow(page: Path, project: Path, *, headings_only: bool = False) -> list[str]:
    """Walk the page in the project; what came otherwise than it says. `headings_only`: of output, its first line."""
    wrong = []
    for step in walk(page):
        if isinstance(step, Step):
            wrong += _differences(step, project, headings_only)
        else:
            path = project / step[0]
            path.parent.mkdir(exist_ok=True)
            path.write_text(step[1])
    return wrong


def _steps(text: str) -> Iterator[Step]:
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        exits = _EXITS.search(command)
        yield Step(_EXITS.sub("", command), int(exits[1]) if exits else 0, tuple(shown))


def _differences(step: Step, project: Path, headings_only: bool) -> list[str]:
    program, *arguments = shlex.split(step.command)
    assert program == "ebbtide", f"only Ebbtide's own commands are run: {step.command}"
    done = ebbtide(*arguments, cwd=project)
    if done.returncode != step.exits:
        return [f"{step.command}: exits {done.returncode}, not {step.exits}: {done.stderr}"]
    came = [masked(line) for line in (done.stdout or done.stderr).splitlines() if not _PROGRESS.search(line)]
    shown = [masked(line) for line in step.shown]
    if headings_only:
        came, shown = came[:1], shown[:1]
    return [f"{step.command}: shown {shown}, came {came}"] if shown and not alike(shown, came) else []


def masked(line: str) -> str:
    for pattern, name in _MASKS:
        line = pattern.sub(name if name == " " else f"<{name}>", line)
    return line.strip()


def alike(shown: list[str], came: list[str]) -> bool:
    """The lines that came are those shown, where `…` stands for any number."""
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in came)) is not None
