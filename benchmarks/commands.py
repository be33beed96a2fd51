"""How long commands take that start no JVM, against what loading pyarrow takes in the same run, interleaved; `--help`
against loading what shows it.

Measured as people have them: with compiled bytecode, which Python writes when it first loads a module (images often
forbid that by PYTHONDONTWRITEBYTECODE), on a lake with a state and a ledger.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.app.plan import make_plan
from ebbtide.config.project import load_project

FEW, COMMITS = 8, 5
"""Few tables for what a person asks for and reads, many for plans in a process that runs."""
PROJECT = """\
project: bench
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
POLICIES = """\
policies:
  - {name: all, select: {tables: ["**"]}, transactions: {older_than: 1d}, versions: {older_than: 1d, keep_min: 2}}
"""


def build(root: Path, tables: int) -> None:
    """A project with tables, scanned."""
    write_lake(root, tables)
    ebbtide(root, "scan")


def write_lake(root: Path, tables: int) -> None:
    """A project's two files, and tables of five commits."""
    from pyiceberg.catalog.sql import SqlCatalog

    (root / "policies").mkdir(parents=True)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies" / "all.yml").write_text(POLICIES)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    for number in range(tables):
        table = catalog.create_table(f"db.t{number}", rows.schema)
        for _ in range(COMMITS):
            table.append(rows)


def ebbtide(root: Path, *arguments: str) -> bytes:
    return process(root, "-m", "ebbtide.cli.main", *arguments)


def process(root: Path, *arguments: str) -> bytes:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(root.parent / "bytecode"), "XDG_STATE_HOME": str(root.parent / "home")}
    return subprocess.run([sys.executable, *arguments], cwd=root, check=True, capture_output=True, env=env).stdout


def main(root: Path) -> Iterator[Result]:
    return measure(root, tables=100, rounds=7)


def smoke(root: Path) -> Iterator[Result]:
    return measure(root, tables=20, rounds=3)


def measure(root: Path, *, tables: int, rounds: int) -> Iterator[Result]:
    large, root = root / "large", root / "small"
    build(large, tables)
    build(root, FEW)
    project, now = load_project(large), datetime.now(UTC) + timedelta(days=9)

    def plan() -> str:
        with make_plan(project, now=now) as made:
            assert made.counts["mark"] > 0
            return made.digest

    ebbtide(root, "hold", "add", "lake.db.t0", "--owner", "counsel", "--reason", "case 7")
    row = json.loads(ebbtide(root, "plan", "--json"))["objects"][0]
    object_ = f"{row['dataset']}#{row['target']}:{row['object']}"
    commands = {"plan": ["plan"], "explain": ["explain", object_], "tables": ["tables"]}
    work: dict[str, Callable[[], object]] = {
        "import": lambda: process(root, "-c", "import pyarrow"),
        "import of help": lambda: process(root, "-c", "import typer, rich"),
        "help": lambda: ebbtide(root, "--help"),
        "warm": plan,
        **{name: partial(ebbtide, root, *arguments) for name, arguments in commands.items()},
    }
    for each in work.values():  # once before it counts: whatever is compiled or loaded for the first time
        each()
    took: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, each in work.items():
            took[name].append(timed(each)[0])
    median = {name: statistics.median(seconds) for name, seconds in took.items()}
    for name, what, bar in (
        ("warm", f"warm plan of {tables} tables", 5), ("plan", f"cold `ebbtide plan` of {FEW} tables", 6),
        ("explain", "cold `ebbtide explain`", 6), ("tables", "cold `ebbtide tables`", 3),
    ):  # fmt: skip
        share = median[name] / median["import"]
        yield Result.limit(f"{what}, per cent of `import pyarrow` ({median['import']:.2f} s)", share * 100, bar * 100)
    help_, shows = median["help"], median["import of help"]
    yield Result.limit(
        f"`ebbtide --help`, per cent of importing typer and rich ({shows:.2f} s)", help_ / shows * 100, 300
    )
