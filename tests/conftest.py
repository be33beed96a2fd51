"""One Spark session per pytest worker, with one catalog per format under a folder of its own.

With `--cluster` the session talks to a standalone cluster of separate processes on loopback instead.

Tiers are marks: `jvm` is put on every test that asks for `spark`, and by hand on those that start a JVM in another way;
`deep` is by hand, on variants beyond one per format. The Makefile says which tier runs which.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import FEW_ROWS, formats_of_session, session
from tests.budgets import Stopwatch
from tests.cluster import standalone_cluster
from tests.places import ODD, ODD_FOR_PAIMON

# Sessions of tests live for minutes: the optimising compiler and a parallel collector cost more than they bring.
# Without that compiler Java would reserve 48 MiB for code, which 300 histories fill.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m")

# Every commit of a state or a ledger waits for the disk (`synchronous = FULL`, `fsync`), two fifths of what their tests
# take. Here a process dies and never the machine, and what it leaves is the same in memory. `make nightly` writes more
# than memory should hold, and stays on the disk.
_MEMORY, _ROOM = Path("/dev/shm"), 4 << 30
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", action="store_true", help="run against a standalone cluster (use with -m cluster)")
    parser.addoption(
        "--timed-as", metavar="RUN", help="keep the seconds of each folder under this name (tests/budgets.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    if run := config.getoption("--timed-as"):
        config.pluginmanager.register(Stopwatch(config, run))


class ByLake(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share a lake stay on one worker: those of a file, and of files that share one a format, a format's.

    xdist's own groups do not reach its scheduler with this pytest, so that every shared lake was built twice.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """What the tests have in common that share a lake with this one."""
    file = nodeid.partition("::")[0]
    if any(part in file for part in _ALONE):
        return nodeid
    shared = next((name for part, name in _BY_FORMAT.items() if part in file), None)
    found = _FORMAT.search(nodeid) if shared is not None else None
    return f"{shared} {found[1]}" if found else file


_PLANTED = "planted"
_BY_FORMAT = {
    "conformance/": "conformance",
    "erasure/test_cells": _PLANTED,
    "erasure/test_erased": _PLANTED,
    "erasure/test_plants": _PLANTED,
}
_ALONE = ("ledger/test_crash",)
"""Files whose tests take minutes each and share nothing."""
_FORMAT = re.compile(r"\[(iceberg|delta|hudi|paimon)\b")
_LONGEST = (
    "planted hudi", "tests/property/", "tests/ledger/test_crash", "planted delta", "planted paimon", "planted iceberg",
    "tests/faults/test_erase_kills", "tests/faults/test_boundaries", "conformance hudi",
    "tests/formats/test_delta_erase", "tests/formats/test_hudi", "tests/erasure/requests/test_crash", "tests/demo/",
    "tests/governance/test_last_seen",
)  # fmt: skip
"""What takes minutes begins first, longest first: at the end one worker would wait for the other."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByLake | None:
    return ByLake(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks that `-m` asks for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest lakes first, then those of most tests."""
    tests = Counter(scope_of(item.nodeid) for item in items)

    def place(item: pytest.Item) -> tuple[int, int]:
        scope = scope_of(item.nodeid)
        rank = next((rank for rank, name in enumerate(_LONGEST) if scope.startswith(name)), len(_LONGEST))
        return rank, -tests[scope]

    items.sort(key=place)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("jvm")


_NO_JVM = "/no JVM in this test: let it ask for `spark`, or mark it `jvm`"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A JVM that nobody announced does not start, in a child process neither: `make check` has to stay quick."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("jvm") is None:
            patch.setenv("SPARK_HOME", _NO_JVM)
        return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was killed where: a test's output is shown only where it fails, and this is the record."""
    killed = Counter(
        value
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, value in report.user_properties
        if name == "killed"
    )
    if killed:
        terminalreporter.section("killed by SIGKILL: format, boundary, times")
        for place, times in sorted(killed.items()):
            terminalreporter.write_line(f"{place}{f' ({times} times)' if times > 1 else ''}")


def lake_catalogs(root: str) -> dict[str, Catalog]:
    """The catalogs of a test lake, by name. `lake` and `ice` are Iceberg's two catalog types."""
    catalogs = [
        Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"}),
        Catalog("ice", "iceberg", f"{root}/ice", "hadoop"),
        Catalog("events", "delta", f"{root}/delta"),
        Catalog("cdc", "hudi", f"{root}/hudi"),
        Catalog("stream", "paimon", str(Path(root).parent / ODD_FOR_PAIMON / "paimon")),
    ]
    return {c.name: c for c in catalogs if c.format in formats_of_session()}


@pytest.fixture(scope="session")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Catalog]:
    root = tmp_path_factory.mktemp("lake") / ODD
    root.mkdir()
    return lake_catalogs(str(root))


@pytest.fixture(scope="session")
def spark(
    catalogs: Mapping[str, Catalog], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    if not request.config.getoption("--cluster"):
        spark = session(catalogs.values(), master="local[1]", conf=FEW_ROWS)
        yield spark
        spark.stop()
        return
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as master:
        conf = {"spark.driver.memory": "2g", "spark.executor.memory": "900m", "spark.sql.shuffle.partitions": "2"}
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        spark = session(catalogs.values(), master=master, conf=conf)
        yield spark
        spark.stop()
