"""What the tests of a folder took, and what they may take.

A run that has a name (`pytest --timed-as test-lake`) leaves the seconds of every folder in pytest's cache, over all its
workers. `python -m tests.budgets test-fast test-lake …` compares them with `tests/budgets.toml` and fails for a folder
that took more than twice its budget: growth is then a decision.

Machines differ by half from day to day. So every worker times a fixed piece of work once a minute, and seconds are
compared as if it had taken what it took where the budgets were set.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

BUDGETS = Path(__file__).with_name("budgets.toml")
SESSION = "start of a session"
"""Which folder's test is the first to ask for one is chance: it counts for itself."""
_CACHED = "durations"
_TOO_MUCH = 2.0
_OFTEN = 60.0


@dataclass(frozen=True)
class Run:
    """The seconds of one run by folder, and those of the fixed piece of work beside it."""

    seconds: Mapping[str, float]
    pace: float

    @classmethod
    def load(cls, path: Path) -> Run:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True)
class Line:
    run: str
    folder: str
    seconds: float
    adjusted: float
    budget: float | None

    @property
    def too_much(self) -> bool:
        return self.budget is None or self.adjusted > _TOO_MUCH * self.budget


def pace() -> float:
    """The seconds of a fixed piece of work: what Python, a hash and the memory make of it, and no disk."""
    began = time.perf_counter()
    rows = [{"id": number, "name": hashlib.sha256(b"%d" % number).hexdigest()} for number in range(20_000)]
    json.loads(json.dumps(sorted(rows, key=lambda row: str(row["name"]))))
    return time.perf_counter() - began


class Stopwatch:
    """The plugin of a run that has a name."""

    def __init__(self, config: pytest.Config, run: str) -> None:
        self._config, self._run = config, run
        self._seconds: Counter[str] = Counter()
        self._paces: list[float] = []
        self._timed_at = float("-inf")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.argname == "spark":
                request._pyfuncitem.user_properties.append((SESSION, time.perf_counter() - began))

    def pytest_runtest_logfinish(self) -> None:
        if self._runs_tests() and time.monotonic() - self._timed_at >= _OFTEN:
            self._paces.append(pace())
            self._timed_at = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        started = sum(float(str(value)) for name, value in report.user_properties if name == SESSION)
        in_session = started if report.when == "setup" else 0.0
        folder = report.nodeid.partition("::")[0].split("/")[1]
        self._seconds += Counter({folder: report.duration - in_session, SESSION: in_session})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._paces += getattr(node, "workeroutput", {}).get(_CACHED, [])

    def pytest_sessionfinish(self) -> None:
        of_worker = getattr(self._config, "workeroutput", None)
        if of_worker is not None:
            of_worker[_CACHED] = self._paces
        elif self._paces:
            assert self._config.cache is not None
            told = {"seconds": dict(self._seconds), "pace": fmean(self._paces)}
            (self._config.cache.mkdir(_CACHED) / f"{self._run}.json").write_text(json.dumps(told))

    def _runs_tests(self) -> bool:
        """The process that only hears of its workers' tests has an idle core."""
        return hasattr(self._config, "workeroutput") or not self._config.getoption("numprocesses", None)


def compare(budgets: Mapping[str, Any], runs: Mapping[str, Run]) -> list[Line]:
    """Every folder of every run, beside its budget."""
    return [
        Line(name, folder, seconds, seconds * budgets["pace"] / run.pace, budgets.get(name, {}).get(folder))
        for name, run in runs.items()
        for folder, seconds in sorted(run.seconds.items())
    ]


def table(lines: list[Line]) -> str:
    """The lines for people, with a sum per run."""
    shown = [f"{'run':14} {'folder':20} {'seconds':>8} {'adjusted':>8} {'budget':>8}"]
    for run in dict.fromkeys(line.run for line in lines):
        mine = [line for line in lines if line.run == run]
        for line in mine:
            budget = "none" if line.budget is None else f"{line.budget:.0f}"
            note = "  too much" if line.too_much else ""
            shown.append(f"{run:14} {line.folder:20} {line.seconds:8.0f} {line.adjusted:8.0f} {budget:>8}{note}")
        seconds, adjusted = sum(line.seconds for line in mine), sum(line.adjusted for line in mine)
        shown.append(
            f"{run:14} {'all':20} {seconds:8.0f} {adjusted:8.0f} {sum(line.budget or 0 for line in mine):8.0f}"
        )
    return "\n".join(shown)


def main(names: list[str], cache: Path = Path(".pytest_cache/d") / _CACHED, budgets: Path = BUDGETS) -> int:
    missing = [name for name in names if not (cache / f"{name}.json").exists()]
    if missing:
        sys.stdout.write(f"no durations of {', '.join(missing)}: run `make {' '.join(missing)}` first\n")
        return 1
    runs = {name: Run.load(cache / f"{name}.json") for name in names}
    lines = compare(tomllib.loads(budgets.read_text()), runs)
    sys.stdout.write(table(lines) + "\n")
    wrong = [line for line in lines if line.too_much]
    if wrong:
        sys.stdout.write("make these folders quicker, or decide on more for them in tests/budgets.toml\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
