"""`make nightly`: the property test over thousands of histories, a process a core, and one record of all of them.

Each process runs the same test as `make test`, on lakes of its own, and leaves what it saw beside the record.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.property.alone import PROTECTIONS
from tests.property.judge import Outcome
from tests.property.record import record

_A_LAKE = 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--record", type=Path, required=True)
    asked = parser.parse_args()
    begin, lakes = time.monotonic(), -(-asked.histories // _A_LAKE)
    processes = max(1, min(os.cpu_count() or 1, lakes))
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{number}.pickle" for number in range(processes)]
        running, first, left = [], 0, asked.histories
        for number, part in enumerate(parts):
            mine = lakes // processes + (number < lakes % processes)
            size = min(left, mine * _A_LAKE)
            running.append(_start(asked.seed + first, size, part))
            first, left = first + mine, left - size
        while any(process.poll() is None for process in running):
            time.sleep(5)
            _write(asked.record, parts, asked.seed, time.monotonic() - begin)
        _write(asked.record, parts, asked.seed, time.monotonic() - begin)
        whole = _together(parts)
    alone = [name for name in PROTECTIONS if not whole.alone.counts()[name]]
    for name in alone:
        sys.stderr.write(f"{name} alone saved nothing\n")
    return int(bool(alone or whole.wrong) or any(process.returncode for process in running))


def _start(seed: int, histories: int, part: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ, "EBBTIDE_HISTORIES": str(histories), "EBBTIDE_SEED": str(seed), "EBBTIDE_OUTCOME": str(part),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-W", "ignore", "tests/property/test_property.py"]
    return subprocess.Popen(command, env=environment)


def _together(parts: list[Path]) -> Outcome:
    whole = Outcome()
    for part in parts:
        if part.exists():
            whole.add(pickle.loads(part.read_bytes()))  # noqa: S301 (our own, of this run)
    return whole


def _write(to: Path, parts: list[Path], seed: int, seconds: float) -> None:
    if (whole := _together(parts)).histories:
        to.write_text(record(whole, seed, seconds))


if __name__ == "__main__":
    sys.exit(main())
