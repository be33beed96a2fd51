"""What a run did, a row per dataset: what went, what waits for what, and when there is more to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from ebbtide.model.times import as_text
from ebbtide.state.values import Mark, ObjectKey
from ebbtide.sweep.values import DatasetOutcome, ObjectOutcome, SweepReport

_STATES = {
    "swept": "swept", "would go": "swept", "waiting": "waiting", "failed": "failed", "would fail": "failed",
    "unmarked": "sent_back", "would be sent back": "sent_back",
}  # fmt: skip


def by_dataset(
    report: SweepReport, planned: Mapping[ObjectKey, Mapping[str, Any]], marks: Iterable[Mark], now: datetime
) -> tuple[DatasetOutcome, ...]:
    """The report's results by dataset. `planned` are the plan's objects that were to go, `marks` what is open now."""
    results: dict[str, list[ObjectOutcome]] = {}
    for result in report.results:
        results.setdefault(result.key.dataset, []).append(result)
    graces: dict[str, datetime] = {}
    for mark in marks:
        if mark.grace_until > now:
            graces[mark.key.dataset] = min(mark.grace_until, graces.get(mark.key.dataset, mark.grace_until))
    return tuple(
        _outcome(name, results.get(name, []), report.freed.get(name, (0, 0)), planned, graces.get(name))
        for name in sorted(results.keys() | graces.keys() | report.freed.keys())
    )


def _outcome(
    dataset: str,
    results: Collection[ObjectOutcome],
    freed: tuple[int, int],
    planned: Mapping[ObjectKey, Mapping[str, Any]],
    next_sweep: datetime | None,
) -> DatasetOutcome:
    counts = dict.fromkeys(("swept", "waiting", "failed", "sent_back"), 0)
    for result in results:
        counts[_STATES.get(result.state, "waiting")] += 1
    gone = [result.key for result in results if _STATES.get(result.state) == "swept"]
    rows = [planned[key]["rows"] for key in gone if key in planned]
    waits = dict.fromkeys(result.because for result in results if result.state == "waiting" and result.because)
    return DatasetOutcome(
        dataset, **counts, rows=None if None in rows else sum(rows), files=freed[0], bytes=freed[1],
        waits_for=tuple(waits), next_sweep=None if next_sweep is None else as_text(next_sweep),
    )  # fmt: skip
