"""Numbers of a project for Prometheus, in its text format (docs/operations.md names each of them).

Counts, sizes and times of the whole project: no dataset, no object, and nothing of a person (design, invariant 7).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ebbtide.app.opened import database_of
from ebbtide.config import Project
from ebbtide.inventory import current as currents
from ebbtide.private import writing
from ebbtide.state.counts import deadlines, last_runs, marks_by_state, requests_by_state
from ebbtide.state.hottier import HotReader
from ebbtide.state.reader import StateReader
from ebbtide.state.values import MarkState

_OPEN = (MarkState.MARKED, MarkState.WAITING, MarkState.SWEEPING)


@dataclass(frozen=True, slots=True)
class Metric:
    """One name with its values, by their labels."""

    name: str
    kind: str
    help: str
    values: tuple[tuple[Mapping[str, str], float], ...]


def metrics_text(project: Project, *, now: datetime) -> str:
    """All of them, each with the project's name: one collector may read files of several projects."""
    with database_of(project).reader() as state:
        found = [*_runs(state), *_marks(state, now), *_requests(state, now), *_tiers(state)]
    return "".join(_lines(metric, project.name) for metric in (*found, *_inventory(project)))


def write_metrics(project: Project, *, now: datetime) -> None:
    """Write the file in one rename: a collector reads the one before, or this one. It is there for others to read."""
    path = project.metrics.file
    if path is None:
        return
    text = metrics_text(project, now=now)
    with writing(path, hint="name a folder that can be written, `metrics: {file: …}`"):
        # A name that no collector reads: they take what ends in .prom.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), 0o644)
            Path(name).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise


def _runs(state: StateReader) -> Iterator[Metric]:
    runs = [({"verb": run.verb}, run) for run in last_runs(state.connection)]
    yield Metric(
        "ebbtide_last_run_timestamp_seconds", "gauge", "When the last run of a verb ended, since 1970.",
        tuple((labels, run.finished_at.timestamp()) for labels, run in runs),
    )  # fmt: skip
    yield Metric(
        "ebbtide_last_run_exit_code", "gauge", "What the last run of a verb ended with.",
        tuple((labels, run.exit_code) for labels, run in runs),
    )  # fmt: skip
    yield Metric(
        "ebbtide_last_run_duration_seconds", "gauge", "How long the last run of a verb took.",
        tuple((labels, (run.finished_at - run.started_at).total_seconds()) for labels, run in runs),
    )  # fmt: skip


def _marks(state: StateReader, now: datetime) -> Iterator[Metric]:
    marks = marks_by_state(state.connection, now=now)
    yield Metric(
        "ebbtide_marks", "gauge", "Objects that are or were marked, by what became of them.",
        tuple(({"state": str(each)}, found.count) for each, found in marks.items()),
    )  # fmt: skip
    yield Metric(
        "ebbtide_marks_due", "gauge", "Marked objects that are past their grace.",
        (({}, sum(marks[each].due for each in _OPEN)),),
    )  # fmt: skip
    yield Metric(
        "ebbtide_marked_bytes", "gauge", "Bytes that go with objects which are marked, and are there still.",
        (({}, sum(marks[each].bytes for each in _OPEN)),),
    )  # fmt: skip
    yield Metric(
        "ebbtide_swept_bytes", "gauge", "Bytes of objects that were swept, as they were counted when they were marked.",
        (({}, marks[MarkState.SWEPT].bytes),),
    )  # fmt: skip


def _requests(state: StateReader, now: datetime) -> Iterator[Metric]:
    waiting = deadlines(state.connection, now=now, soon=now)
    yield Metric(
        "ebbtide_requests", "gauge", "Requests of people, by how they stand.",
        tuple(({"state": str(each)}, count) for each, count in requests_by_state(state.connection).items()),
    )  # fmt: skip
    yield Metric("ebbtide_requests_overdue", "gauge", "Requests past their deadline.", (({}, waiting.overdue),))
    yield Metric(
        "ebbtide_requests_next_deadline_timestamp_seconds", "gauge",
        "The first deadline of the requests that wait, since 1970; absent where none waits.",
        () if waiting.first is None else (({}, waiting.first.timestamp()),),
    )  # fmt: skip


def _tiers(state: StateReader) -> Iterator[Metric]:
    tables = HotReader(state.connection).tables()
    lags = [table.lag_bytes for table in tables if table.lag_bytes is not None]
    yield Metric("ebbtide_hot_tables", "gauge", "Tables of a hot tier.", (({}, len(tables)),))
    yield Metric(
        "ebbtide_hot_lag_bytes", "gauge", "How far the mirror that is furthest behind was, when it last said.",
        () if not lags else (({}, max(lags)),),
    )  # fmt: skip


def _inventory(project: Project) -> Iterator[Metric]:
    current = currents.load(project.inventory)
    if current is None or current.scanned_at is None:
        return
    unread = sum(entry.error is not None for entry in current.entries.values())
    yield Metric(
        "ebbtide_scan_timestamp_seconds", "gauge", "When the last scan was, since 1970.",
        (({}, current.scanned_at.timestamp()),),
    )  # fmt: skip
    yield Metric("ebbtide_datasets", "gauge", "Datasets that the last scan found.", (({}, len(current.entries)),))
    yield Metric(
        "ebbtide_scan_errors", "gauge", "Catalogs and datasets that the last scan could not read.",
        (({"of": "catalogs"}, len(current.catalog_errors)), ({"of": "datasets"}, unread)),
    )  # fmt: skip


def _lines(metric: Metric, project: str) -> str:
    lines = [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
    lines += [
        f"{metric.name}{{{_labels({'project': project, **labels})}}} {value!r}" for labels, value in metric.values
    ]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
