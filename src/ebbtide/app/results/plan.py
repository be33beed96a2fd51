"""What `plan` and `explain` answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from ebbtide.app.results.retention import Object
from ebbtide.app.results.shown import ResultRows, Shown
from ebbtide.errors import InputError

if TYPE_CHECKING:
    from ebbtide.plan.choice import Choice
    from ebbtide.plan.plan import Plan


@dataclass(frozen=True, slots=True, repr=False)
class Considered(Shown):
    """What one policy makes of an object."""

    policy: str
    outcome: str
    because: str


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Shown):
    """Every policy's opinion on one object, and what the plan says of it; `planned` is None where no policy owns it."""

    as_of: str
    dataset: str
    target: str
    object: str
    planned: Mapping[str, Any] | None
    policies: tuple[Considered, ...]

    @property
    def decision(self) -> str | None:
        return None if self.planned is None else str(self.planned["decision"])


@dataclass(frozen=True, slots=True, repr=False)
class Explanations(Shown):
    """The first objects of a selection, explained, and how many `more` there are."""

    objects: tuple[Explanation, ...]
    more: int


@dataclass(frozen=True, slots=True, repr=False)
class PlannedObject(Object):
    """An object of a plan. `row` is everything that the plan file says of it."""

    decision: str
    policy: str | None
    because: str
    protected_by: tuple[str, ...]
    waits_for: tuple[str, ...]
    row: Mapping[str, Any] = field(compare=False, repr=False)

    def whole(self) -> Mapping[str, Any]:
        return self.row

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> PlannedObject:
        return cls(
            row["dataset"], row["target"], row["object"], row["decision"], row["policy"], row["because"],
            tuple(row["protected_by"]), tuple(row["waits_for"]), MappingProxyType(dict(row)),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class PlanLine(Shown):
    """What one policy does to one target of one dataset; objects by decision, each freed file counted once."""

    policy: str | None
    dataset: str
    target: str
    counts: Mapping[str, int]
    rows: int | None
    files: int
    bytes: int
    kept_by: Mapping[str, int]
    oldest: str | None
    first_sweep: str | None


@dataclass(frozen=True, slots=True, repr=False)
class SavedPlan(Shown):
    """A plan of a file, or what `--select` takes of it."""

    as_of: datetime
    digest: str
    summary: ResultRows[PlanLine]
    objects: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, repr=False)
class PlanChange(Object):
    """An object that is decided otherwise than in another plan; None where there is no such object."""

    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, repr=False)
class PlanResult(Shown):
    """What would be marked and swept. Its objects lie in a folder, which goes when it is closed or the block ends."""

    as_of: datetime
    digest: str
    counts: Mapping[str, int]
    warnings: tuple[str, ...]
    over_limits: tuple[str, ...]
    scanned: str
    """How old the inventory is that it was made from."""
    unread: tuple[str, ...]
    plan: Plan = field(compare=False, repr=False)
    tables: Callable[[], Collection[str]] = field(compare=False, repr=False)
    """Every dataset that it may speak of, for who selects some: a pattern that matches none is an `InputError`."""

    @classmethod
    def of(cls, plan: Plan, scanned: str, unread: tuple[str, ...], tables: Callable[[], Collection[str]]) -> PlanResult:
        over = tuple(f"{one.dataset or 'the lake'}: {one.text}" for one in plan.over)
        return cls(
            plan.as_of, plan.digest, MappingProxyType(dict(plan.counts)), plan.warnings, over, scanned, unread,
            plan, tables,
        )  # fmt: skip

    def objects(self, *decisions: str) -> Iterator[PlannedObject]:
        """Every object in order of dataset, target and id; all, or those decided so (`mark`, `keep`, `sweep` …)."""
        return map(PlannedObject.of, self._open().rows(*decisions, codes=True))

    def summary(self, *select: str) -> ResultRows[PlanLine]:
        """A line per policy, dataset and target; of all objects, or of those that `--select` would take."""
        from ebbtide.plan.summary import summarise

        lines = summarise(self._open(), self._choice(select))
        return ResultRows(PlanLine(*(getattr(line, name) for name in PlanLine.__slots__)) for line in lines)

    def since(self, path: str | Path) -> ResultRows[PlanChange]:
        """What is decided otherwise than in the plan of a file."""
        from ebbtide.app.plan import read_plan
        from ebbtide.plan.summary import changes

        found = changes(read_plan(Path(path)).objects, self._open().rows())
        return ResultRows(PlanChange(c.dataset, c.target, c.object, c.before, c.after) for c in found)

    def first_rows(self, most: int) -> tuple[str, list[PlannedObject]]:
        """What is shown of it: what somebody should look at before `mark`."""
        looked_at = [name for name in self.counts if name != "keep"]
        is_there = self.plan.folder.exists()
        return "objects that are not simply kept", list(islice(self.objects(*looked_at), most)) if is_there else []

    def write(self, path: str | Path) -> None:
        """The plan file, which `mark` and `sweep` take, and the files that it names beside it."""
        from ebbtide.app.plan import write_plan

        write_plan(self._open(), Path(path))

    def whole(self, *select: str) -> dict[str, Any]:
        from ebbtide.app.plan import as_json

        return {**as_json(self._open(), self._choice(select)), "unread": list(self.unread)}

    def to_dict(self, *select: str) -> dict[str, Any]:
        """What the command line prints with `--json`, and with `--select`."""
        return self.whole(*select)

    def rows(self, *select: str) -> Iterator[dict[str, Any]]:
        """Its objects as the plan file has them, with codes; all, or those that `--select` would take."""
        return filter(self._choice(select).takes(), self._open().rows(codes=True))

    def _choice(self, select: Sequence[str]) -> Choice:
        from ebbtide.app.plan import choice_of

        return choice_of(select, self._open().graces, self.tables() if select else None)

    def _open(self) -> Plan:
        if not self.plan.folder.exists():
            raise InputError("this plan is closed", hint="use it inside of its `with`, or make another one")
        return self.plan

    def close(self) -> None:
        self.plan.close()

    def __enter__(self) -> PlanResult:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
