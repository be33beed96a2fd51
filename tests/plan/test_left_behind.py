"""Whatever nothing references once what goes has gone is named by something that goes: manifests, too, which hold
bounds of the rows (spec §2, "A sweep removes").

Two targets work on the same versions, each with a grace of its own: what one of them may take, the other still keeps.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from random import Random

from ebbtide.config.project import Limits
from ebbtide.model.dataset import FileRef, Role
from ebbtide.model.history import Ref, RefKind, Transaction, TransactionKind
from tests.plan.test_marks import mark
from tests.plan.worlds import NOW, Table, ago, plan, policies, world

POLICIES = """\
policies:
  - {name: a, select: {tables: [lake.a.*]}, grace: 1d, transactions: {older_than: 40d, allow_latest_view: true},
     versions: {older_than: 20d, keep_min: 2}}
  - {name: b, select: {tables: [lake.b.*]}, grace: 1d, transactions: {older_than: 60d},
     versions: {older_than: 70d, keep_min: 3}}
  - {name: c, select: {tables: [lake.c.*]}, grace: 1d, transactions: {older_than: 25d, keep_views: 2},
     versions: {older_than: 45d, keep_min: 1}}
"""


class History:
    """A table that is written at random, with a manifest list per version and manifests that writers carry on, cut out
    of or join.
    """

    def __init__(self, name: str, random: Random) -> None:
        self.table, self._random, self._age = Table(name), random, 200.0
        self._entries: dict[str, set[str]] = {}
        self._manifests: dict[str | None, set[str]] = {None: set()}
        self._heads: dict[str, str | None] = {"main": None}

    def step(self, id_: str) -> None:
        self._age -= self._random.uniform(1, 21)
        on = self._random.choice(sorted(self._heads))
        parent = self._heads[on]
        live = {file for manifest in self._manifests[parent] for file in self._entries[manifest]}
        kind, removed = self._choose(live)
        kept, made = self._cut_out(id_, parent, removed)
        added = [] if kind is TransactionKind.REWRITE else [f"{id_}-f{n}" for n in range(self._random.randint(1, 2))]
        if kept and (kind is TransactionKind.REWRITE or self._random.random() < 0.2):
            made[f"{id_}-joined"] = {file for manifest in kept for file in self._entries[manifest]}
            kept = set()
        if added:
            made[f"{id_}-added"] = {*added}
        self._entries |= made
        self._manifests[id_] = kept | made.keys()
        self._remember(id_, added, made, starts_view=bool(live) and live == removed, parent=parent, kind=kind)
        self._name(id_, on)

    def _choose(self, live: set[str]) -> tuple[TransactionKind, set[str]]:
        kind = self._random.choices(
            (TransactionKind.APPEND, TransactionKind.SNAPSHOT, TransactionKind.UPDATE, TransactionKind.REWRITE),
            (5, 3, 2, 1) if live else (1, 0, 0, 0),
        )[0]
        some = set(self._random.sample(sorted(live), self._random.randint(1, len(live)))) if live else set()
        return kind, live if kind is TransactionKind.SNAPSHOT else some if kind is TransactionKind.UPDATE else set()

    def _cut_out(self, id_: str, parent: str | None, removed: set[str]) -> tuple[set[str], dict[str, set[str]]]:
        """The manifests that are carried on, and those that stand for the ones of which a file went."""
        kept: set[str] = set()
        made: dict[str, set[str]] = {}
        for manifest in sorted(self._manifests[parent]):
            entries = self._entries[manifest]
            if entries & removed:
                made[f"{id_}-cut{len(made)}"] = entries - removed
            elif entries:  # one of deleted entries alone is not carried on
                kept.add(manifest)
        return kept, made

    def _remember(
        self,
        id_: str,
        added: list[str],
        made: dict[str, set[str]],
        *,
        starts_view: bool,
        parent: str | None,
        kind: TransactionKind,
    ) -> None:
        roles = (
            {f"{id_}-list": Role.MANIFEST_LIST} | dict.fromkeys(made, Role.MANIFEST) | dict.fromkeys(added, Role.DATA)
        )
        for path, role in roles.items():
            self.table.files[path] = FileRef(f"file:///lake/{self.table.name}/{path}", role, 10, id_, False)
        files = {file for manifest in self._manifests[id_] for file in self._entries[manifest]}
        self.table.live[id_] = frozenset(files | self._manifests[id_] | {f"{id_}-list"})
        self.table.transactions.append(Transaction(id_, parent, kind, ago(self._age), starts_view))

    def _name(self, id_: str, on: str) -> None:
        self._heads[on] = id_
        self.table.refs[on] = Ref(on, RefKind.BRANCH, id_, main=on == "main")
        if self._random.random() < 0.1:
            self._heads[f"b{id_}"] = id_
            self.table.refs[f"b{id_}"] = Ref(f"b{id_}", RefKind.BRANCH, id_)


def lake(random: Random) -> list[Table]:
    tables = []
    for place in "abc":
        for number in range(40):
            history = History(f"lake.{place}.t{number}", random)
            for step in range(random.randint(3, 9)):
                history.step(f"T{step + 1}")
            tables.append(history.table)
    return tables


def test_nothing_stays_behind_that_only_what_goes_had_referenced(tmp_path: Path) -> None:
    random = Random(5)
    tables, rules = lake(random), policies(tmp_path, POLICIES)
    whole, limits = world(*tables), Limits(max_share=1.0, lake_max_share=1.0)
    first = plan(rules, whole, now=ago(2), limits=limits)
    marks = [mark(row) for row in first.rows() if row["decision"] == "mark"]
    # One in five is still in its grace: also where the other target may take the version.
    later = NOW + timedelta(days=3)
    marks = [(*each[:6], later, *each[7:]) if random.random() < 0.2 else each for each in marks]
    made = plan(rules, whole, marks=marks, limits=limits)
    going, named = defaultdict(set), defaultdict(set)
    swept = {(r["dataset"], r["target"], r["object"]) for r in made.rows() if r["decision"] == "sweep"}
    for row in made.rows():
        if row["decision"] == "sweep" and not row["leaves"]:
            going[row["dataset"]].add(row["object"])
    for file in made.read("files"):
        if (file["table_id"], file["target"], file["object_id"]) in swept:
            named[file["table_id"]].add(file["path"].rpartition("/")[2])
    left = {}
    for table in tables:
        versions = {t.id: table.live[t.id] for t in table.transactions}
        needed = {path for id_, paths in versions.items() if id_ not in going[table.name] for path in paths}
        free = {path for paths in versions.values() for path in paths} - needed
        if behind := free - named[table.name]:
            left[table.name] = sorted(behind)
    assert left == {}
    assert sum(len(paths) for paths in named.values()) > 500
