"""The same search in Spark tasks: the same report, and no value of anybody in what Spark writes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ebbtide.errors import Cancelled, EbbtideError, RefusedError
from ebbtide.run import RunContext
from ebbtide.verify import tasks
from ebbtide.verify.matcher import Matcher
from ebbtide.verify.needles import Needle
from ebbtide.verify.read.pieces import Raw
from ebbtide.verify.search import SearchPlace, SearchReport, search
from tests.verify.people import LONG, needle
from tests.verify.test_search import NEIGHBOUR, Lake

PEOPLE = [needle(LONG), needle("1234567890123456789", "bigint", person="p2"), needle("anna@x.de", person="p3")]
SECRET = bytes(range(7, 39))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "root").mkdir()
    made = Lake(tmp_path / "root")
    made.append((NEIGHBOUR, 1), (LONG, 1234567890123456789))
    made.append((NEIGHBOUR, 2))
    folder = made.root / "lake" / "db" / "t" / "data" / "email=anna%40x.de"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), folder / "stray.parquet")
    (folder / "unknown.bin").write_bytes(bytes(range(256)))
    return made


def run_search(lake: Lake, spark: SparkSession | None, context: RunContext | None = None) -> SearchReport:
    places: list[SearchPlace] = lake.places
    return search(
        PEOPLE,
        places,
        spark=None if spark is None else (lambda: spark),
        run=context or RunContext("test"),
        path_key=b"k",
        in_process=0,
    )


def test_tasks_report_what_the_process_reports(spark: SparkSession, lake: Lake) -> None:
    here = run_search(lake, None)
    there = run_search(lake, spark)
    assert there == here
    assert there.inventory.text == here.inventory.text
    assert [here.grade(each.person) for each in PEOPLE] == ["F", "F", "F"]
    assert here.cannot_tell


def test_no_value_stands_in_what_spark_writes(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plain, sealed, real = list[bytes](), list[bytes](), tasks._seal

    def seal(key: bytes, value: object) -> bytes:
        plain.append(pickle.dumps(value))
        sealed.append(real(key, value))
        return sealed[-1]

    monkeypatch.setattr("secrets.token_bytes", lambda _: SECRET)
    monkeypatch.setattr(tasks, "_seal", seal)
    # A closure goes to disk, as one of many people would.
    with set_for_a_while(spark, "spark.broadcast.UDFCompressionThreshold", "1024"):
        with event_log(spark, tmp_path / "events"):
            report = run_search(lake, spark)
        assert report.grade("p1") == "F"
        said = capfd.readouterr()
        events = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
        assert "reading storage" in events
        assert tasks._KEY in events
        assert SECRET.hex() not in events
        assert leaks([tmp_path / "events", *local_folders(spark)], (said.out + said.err).encode()) == []
        # What tasks are handed is sealed, whatever the session encrypts; the look finds what is not.
        assert leaks([], *plain) != []
        assert leaks([], *sealed) == []
        monkeypatch.setattr(tasks, "_seal", lambda _, value: pickle.dumps(value))
        with pytest.raises(EbbtideError, match="in Spark tasks failed") as failed:
            run_search(lake, spark)
        assert leaks([], str(failed.value).encode()) == []


@contextmanager
def set_for_a_while(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of the context, which is everybody's, and what it was before."""
    any_: Any = spark.sparkContext
    settings = any_._jsc.sc().conf()
    before = settings.get(name) if settings.contains(name) else None
    settings.set(name, value)
    try:
        yield
    finally:
        settings.remove(name)
        if before is not None:
            settings.set(name, before)


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Spark's own event log, as `spark.eventLog.enabled` starts it, for a while."""
    any_: Any = spark.sparkContext
    jvm, context = any_._jvm, any_._jsc.sc()
    folder.mkdir()
    # The listener has the context's own settings, as one of an application's start has.
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app",
        jvm.scala.Option.apply(None),
        jvm.java.net.URI(folder.as_uri()),
        context.conf(),
        context.hadoopConfiguration(),
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()


def local_folders(spark: SparkSession) -> list[Path]:
    any_: Any = spark.sparkContext
    blocks = any_._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs()
    return [Path(any_._temp_dir), *(Path(str(folder)) for folder in blocks)]


def leaks(folders: list[Path], *more: bytes) -> list[str]:
    """Where any of these people's values stands, in any encoding that means something."""
    matcher = Matcher([*PEOPLE, Needle("n", "x", NEIGHBOUR, frozenset({"string"}))])
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    contents = [(str(path), path.read_bytes()) for path in files] + [("said", each) for each in more]
    return [name for name, content in contents if matcher.search(iter([Raw("file", content, 0)])).found]


def test_a_session_that_would_write_the_key_down_runs_no_task(spark: SparkSession, lake: Lake) -> None:
    with (
        set_for_a_while(spark, "spark.redaction.regex", "nothing-of-ours"),
        pytest.raises(RefusedError, match="into its event log"),
    ):
        run_search(lake, spark)


def test_tasks_stop_when_the_run_is_asked_to(spark: SparkSession, lake: Lake) -> None:
    context = RunContext("test")

    class Impatient:
        def start(self, step: str, total: int | None = None, *, unit: str = "") -> None: ...

        def advance(self, n: int = 1) -> None:
            if n == 0:  # the first look at how far the tasks are
                context.cancellation.request("asked")

        def stop(self) -> None: ...

    watched = RunContext("test", progress=Impatient(), cancellation=context.cancellation)
    with pytest.raises(Cancelled):
        run_search(lake, spark, watched)
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
