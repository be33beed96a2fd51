"""`make bench [ONLY=scan]`: run the benchmarks and write `RESULTS.md`.

`make bench-smoke`: some of them on small lakes, which write nothing, and fail where one is below half of its bar.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks import (
    commands,
    erase_filing,
    erase_find,
    erase_run,
    erase_verify,
    first_plan,
    hottier_clients,
    hottier_drain,
    hottier_gate,
    labels,
    ledger_append,
    ledger_check,
    nightly,
    orphans,
    plan,
    scan,
)
from benchmarks.results import Result

BENCHMARKS: dict[str, Callable[[Path], Iterator[Result]]] = {
    "scan": scan.main,
    "ledger-append": ledger_append.main,
    "ledger-check": ledger_check.main,
    "erase-filing": erase_filing.main,
    "labels": labels.main,
    "plan": plan.main,
    "commands": commands.main,
    "first-plan": first_plan.main,
    "nightly": nightly.main,
    "orphans": orphans.main,
    "erase-find": erase_find.main,
    "erase-verify": erase_verify.main,
    "erase-run": erase_run.main,
    "hottier-drain": hottier_drain.main,
    "hottier-clients": hottier_clients.main,
    "hottier-gate": hottier_gate.main,
}
SMOKE: dict[str, Callable[[Path], Iterator[Result]]] = {
    "commands": commands.smoke,
    "plan": plan.smoke,
    "scan": scan.smoke,
    "orphans": orphans.smoke,
    "nightly": nightly.smoke,
    "erase-find": erase_find.smoke,
    "erase-verify": erase_verify.smoke,
}
_FILE = Path(__file__).with_name("RESULTS.md")
_HEAD = """\
# Results

Written by `make bench`. Every line is a ratio in one run against what a user would do instead, on the machine named;
sessions' start is excluded; baselines are measured on 50 random items and extrapolated linearly.
"""


def section(name: str, results: list[Result]) -> str:
    memory = psutil.virtual_memory().total / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    lines = "\n".join(result.line() for result in results)
    return (
        f"## {name}\n\n{datetime.now(UTC):%Y-%m-%d}, {machine}.\n\n"
        f"| what | Ebbtide | against | ratio | bar | |\n|---|---|---|---|---|---|\n{lines}\n"
    )


def run(name: str, benchmark: Callable[[Path], Iterator[Result]]) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix=f"ebbtide-bench-{name}-") as folder:
        results = []
        for result in benchmark(Path(folder)):
            print(result.line(), flush=True)
            results.append(result)
    return results


def smoke(wanted: list[str]) -> None:
    began = time.monotonic()
    missed = [result for name in wanted or SMOKE for result in run(name, SMOKE[name]) if not result.half_met]
    print(f"{time.monotonic() - began:.0f} s; below half of the bar: {len(missed)}")
    for result in missed:
        print(result.line())
    sys.exit(1 if missed else 0)


def main() -> None:
    if sys.argv[1:2] == ["--smoke"]:
        smoke(sys.argv[2:])
    wanted = sys.argv[1:] or list(BENCHMARKS)
    text = _FILE.read_text() if _FILE.exists() else _HEAD
    for name in wanted:
        results = run(name, BENCHMARKS[name])
        text = re.sub(rf"\n*## {name}\n.*?(?=\n+## |\Z)", "", text, flags=re.DOTALL).rstrip()
        text += "\n\n" + section(name, results)
        _FILE.write_text(text)


if __name__ == "__main__":
    main()
