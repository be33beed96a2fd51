"""What `mark`, `sweep`, `run`, `unmark` and `hold` answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.app.results.shown import Shown
from ebbtide.app.results.tier import TierResult
from ebbtide.model.ids import object_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ebbtide.app.run import RunReport
    from ebbtide.state.values import ObjectKey
    from ebbtide.sweep.mark import MarkReport
    from ebbtide.sweep.values import ObjectOutcome, SweepReport


@dataclass(frozen=True, slots=True, repr=False)
class Object(Shown):
    """An object that policies act on."""

    dataset: str
    target: str
    object: str

    @property
    def name(self) -> str:
        """As `unmark` and `explain` take it."""
        return object_name(self.dataset, self.target, self.object)


@dataclass(frozen=True, slots=True, repr=False)
class ObjectResult(Object):
    """What became of an object, and why."""

    state: str
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class MarkResult(Shown):
    """What was marked anew, was pinned by a person meanwhile, and was sent back. `run` is None for a dry run."""

    run: str | None
    marked: tuple[Object, ...]
    marked_before: int
    pinned: tuple[ObjectResult, ...]
    sent_back: tuple[ObjectResult, ...]
    over_limits: tuple[str, ...]
    warnings: tuple[str, ...]
    unread: tuple[str, ...]

    @classmethod
    def of(cls, report: MarkReport) -> MarkResult:
        return cls(
            report.run, tuple(map(_object, report.marked)), report.before, _results(report.pinned),
            _results(report.sent_back), report.over, report.warnings, report.unread,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Removed(Shown):
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Stages(Shown):
    """The stages that a dataset's act walks."""

    dataset: str
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class DatasetResult(Shown):
    """What became of one dataset's objects, and when its next grace ends."""

    dataset: str
    swept: int
    waiting: int
    failed: int
    sent_back: int
    rows: int | None
    files: int
    bytes: int
    waits_for: tuple[str, ...]
    next_sweep: str | None


@dataclass(frozen=True, slots=True, repr=False)
class SweepResult(Shown):
    """What became of each object. `findings` is what the proof after it found wrong. `run` is None for a dry run."""

    run: str | None
    objects: tuple[ObjectResult, ...]
    removed: Removed
    errors: tuple[str, ...]
    findings: tuple[str, ...]
    over_limits: tuple[str, ...]
    warnings: tuple[str, ...]
    unread: tuple[str, ...]
    stages: tuple[Stages, ...]
    datasets: tuple[DatasetResult, ...] = ()

    @classmethod
    def of(cls, report: SweepReport) -> SweepResult:
        removed = Removed(report.removed_files, report.removed_bytes)
        return cls(
            report.run, _results(report.results), removed, report.errors, report.findings, report.over,
            report.warnings, report.unread, tuple(Stages(dataset, tuple(each)) for dataset, each in report.stages),
            tuple(DatasetResult(*(getattr(one, name) for name in DatasetResult.__slots__)) for one in report.datasets),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Failure(Shown):
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, repr=False)
class RunResult(Shown):
    """One round: what it marked and swept, and did to hot tables, and the exit code of the command line."""

    mark: MarkResult | None
    sweep: SweepResult | None
    warnings: tuple[str, ...]
    unread: tuple[str, ...]
    exit_code: int
    error: Failure | None
    tier: tuple[TierResult, ...] = ()

    @classmethod
    def of(cls, report: RunReport) -> RunResult:
        return cls(
            None if report.marked is None else MarkResult.of(report.marked),
            None if report.swept is None else SweepResult.of(report.swept),
            report.warnings, report.unread, report.exit_code,
            None if report.error is None else Failure(report.error.message, report.error.hint),
            report.tier,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class OpenMark(Object):
    """What is scheduled for deletion: by which policy, when its grace ends, and what it waits for."""

    policy: str
    because: str
    rows: int | None
    bytes: int
    marked_at: str
    grace_until: str
    past_grace: bool
    waits_for: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class OpenUnmark(Shown):
    """What a person rescued and nobody released."""

    dataset: str
    object: str
    until: str | None
    reason: str | None
    actor: str
    created_at: str


@dataclass(frozen=True, slots=True, repr=False)
class UnmarkResult(Shown):
    """An object that no policy removes until it is released, or until a time, and the marks that this closed."""

    dataset: str
    target: str
    object: str
    until: str | None
    closed_marks: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Release(Shown):
    """An object on which policies act again."""

    dataset: str
    target: str
    object: str
    released: bool


@dataclass(frozen=True, slots=True, repr=False)
class HoldRow(Shown):
    """A litigation hold. `id` is None for a dry run."""

    id: str | None
    scope: str
    dataset: str | None
    first_day: str | None
    last_day: str | None
    owner: str
    reason: str
    created_at: str | None
    released_at: str | None


def _object(key: ObjectKey) -> Object:
    return Object(key.dataset, key.target, key.object)


def _results(results: Iterable[ObjectOutcome]) -> tuple[ObjectResult, ...]:
    return tuple(ObjectResult(r.key.dataset, r.key.target, r.key.object, r.state, r.because) for r in results)
