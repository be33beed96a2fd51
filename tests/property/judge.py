"""What the oracle saw before a sweep against what it sees after: six sentences that must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.lake_by_hand import Row, Seen
from tests.property.alone import Alone
from tests.property.planted import Planted
from tests.property.rows import PAST

MISSING = "no referenced file is missing"
CHANGED = "no row of any head changed"
UNNAMED = "nothing went that no plan named"
HELD = "what is held keeps every file"
FAILED = "no sweep failed"
YOUNG = "young files that nothing references stay"
LEFT = "nothing stays behind that only what went had referenced"
UNREAD = "nothing goes while somebody cannot be read"
SENTENCES = (MISSING, CHANGED, UNNAMED, HELD, FAILED, YOUNG, LEFT, UNREAD)


@dataclass
class Outcome:
    """What happened, over all lakes. `wrong` is what the oracle found, by the sentence that it breaks."""

    histories: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    people: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    heads: int = 0
    removed_files: int = 0
    orphans: int = 0
    tables: int = 0
    alone: Alone = field(default_factory=Alone)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    lost_rows: Counter[str] = field(default_factory=Counter)

    def say(self, sentence: str, text: str) -> None:
        self.wrong.setdefault(sentence, []).append(text)


@dataclass(frozen=True, slots=True)
class Judge:
    """`going` is what the plan said would go; `held` and `held_days` what people said must not. All by dataset."""

    outcome: Outcome
    where: str
    going: Mapping[str, set[str]] = field(default_factory=dict)
    held: Collection[str] = ()
    held_days: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def compare(self, before: Mapping[str, Seen], after: Mapping[str, Seen]) -> None:
        gone = before.keys() - after.keys()
        self.outcome.tables += len(gone)
        if unnamed := {each for each in gone if not self._may_go(each)}:
            self._say(UNNAMED, f"tables {sorted(unnamed)}")
        for dataset, seen in after.items():
            self._versions(dataset, before[dataset], seen)
            self._heads(dataset, before[dataset], seen)
            if dataset in self.held and (lost := before[dataset].here - seen.here):
                self._say(HELD, f"{dataset}: {sorted(path.name for path in lost)}")
        self._left_behind(before, after)

    def nothing_went(self, before: Mapping[str, Seen], after: Mapping[str, Seen], removed: int) -> None:
        """Every file of every table is where it was: what cannot be read may need any of them."""
        if removed:
            self._say(UNREAD, f"{removed} files were removed")
        for dataset, seen in before.items():
            if dataset not in after or (lost := {path for path in seen.here if not path.exists()}):
                self._say(UNREAD, f"{dataset}: {sorted(path.name for path in lost) if dataset in after else 'gone'}")

    def _left_behind(self, before: Mapping[str, Seen], after: Mapping[str, Seen]) -> None:
        """Where versions go by a commit: their manifests, with bounds of the rows, go with the files that they name."""
        needed = {path for seen in after.values() for files in seen.versions.values() for path in files}
        for dataset, seen in after.items():
            if seen.lists_what_went:
                continue
            had = {path for files in before[dataset].versions.values() for path in files}
            if left := {path for path in had - needed if path.exists() and not path.name.endswith(".metadata.json")}:
                self._say(LEFT, f"{dataset}: {sorted(path.name for path in left)}")

    def _may_go(self, dataset: str) -> bool:
        return _kind(dataset) == "gone" and dataset in self.going and dataset not in self.held

    def orphans(self, planted: Iterable[Planted]) -> None:
        """What nothing references: the old files may go where the plan says so, the young ones never."""
        for file in planted:
            if file.path.exists() or (file.dataset in self.going and _kind(file.dataset) == "gone"):
                continue
            if not file.old:
                self._say(YOUNG, f"{file.dataset}: {file.path.name}")
            elif file.dataset not in self.going or file.dataset in self.held:
                self._say(UNNAMED, f"{file.dataset}: {file.path.name}")
            else:
                self.outcome.orphans += 1

    def _say(self, sentence: str, text: str) -> None:
        self.outcome.say(sentence, f"{self.where}: {text}")

    def _versions(self, dataset: str, before: Seen, after: Seen) -> None:
        going = self.going.get(dataset, set())
        if unnamed := before.versions.keys() - after.versions.keys() - going:
            self._say(UNNAMED, f"{dataset}: versions {sorted(unnamed)}")
        heads = set(after.heads.values())
        for version in after.versions:
            already = before.lost.get(version, frozenset())
            lost = after.missing(version) - already
            # Where a log lists what went (Delta), a version that could not be read before keeps nothing any more.
            may = after.lists_what_went and version not in heads and (version in going or already)
            if lost and not may:
                self._say(MISSING, f"{dataset}: version {version}: {sorted(path.name for path in lost)}")

    def _heads(self, dataset: str, before: Seen, after: Seen) -> None:
        kind = _kind(dataset)
        dropped = before.heads.keys() - after.heads.keys()
        if unnamed := {name for name in dropped if kind != "branches" or name == "branch:main" or "tag:" in name}:
            self._say(CHANGED, f"{dataset}: {sorted(unnamed)} went")
        for name, rows in after.rows.items():
            self.outcome.heads += 1
            was = before.rows.get(name, [])
            if rows == was:
                continue
            self.outcome.lost_rows[kind] += 1
            if not self._may_lose(dataset, kind, name, was, rows):
                self._say(CHANGED, f"{dataset}: {name}: {difference(was, rows)}")

    def read_by_spark(self, dataset: str, head: str, was: list[Any], rows: list[Any]) -> None:
        """The rows of a head or tag, as the format itself reads them: only what a rows policy names may be gone."""
        self.outcome.heads += 1
        lost, new = Counter(was) - Counter(rows), Counter(rows) - Counter(was)
        if lost:
            self.outcome.lost_rows[_kind(dataset)] += 1
        may = _kind(dataset) == "expired" and head == "branch:main" and dataset not in self.held
        if new or (lost and not (may and all(row.day in PAST for row in lost))):
            self._say(CHANGED, f"{dataset}: {head}: {difference(was, rows)}")

    def _may_lose(self, dataset: str, kind: str, head: str, was: list[Row], rows: list[Row]) -> bool:
        """By rules of its own: days past go from branches of `days`, main of `latest` loses what its policy names."""
        lost, new = Counter(was) - Counter(rows), Counter(rows) - Counter(was)
        if new or dataset in self.held:
            return False
        if kind == "latest":
            return head == "branch:main"
        first, last = self.held_days.get(dataset, ("", ""))
        days = [str(row[0]) for row in lost]  # columns in order of their names
        past = all(day in PAST and not first <= day <= last for day in days)
        if kind == "expired":
            return head == "branch:main" and past
        return kind in ("days", "dated") and head.startswith("branch:") and past


def _kind(dataset: str) -> str:
    return dataset.rpartition(".")[2].partition("_")[0]


def difference(was: list[Any], rows: list[Any]) -> str:
    lost, new = Counter(was) - Counter(rows), Counter(rows) - Counter(was)
    return f"lost {list(lost)[:3]}, gained {list(new)[:3]}"
