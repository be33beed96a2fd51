"""Random histories against an oracle in plain Python: dataset by dataset, no Spark, no code of `ebbtide.plan`.

The oracle reads the same hand-written tables and applies spec §1 and §2 word by word. All histories are one lake and
one plan. A protection that never decides anything on its own would be untested, so each must.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ebbtide.model.history import TransactionKind
from tests.plan.worlds import NOW, Table, decided, plan, policies, world

TABLES = 120
RULES = """\
policies:
  - {name: main-only, select: {tables: ["lake.a.*"], branches: [main]}, transactions: {older_than: 40d}}
  - {name: lifted, select: {tables: ["lake.b.*"]}, transactions: {older_than: 30d, allow_latest_view: true}}
  - {name: views, select: {tables: ["lake.c.*"]}, transactions: {older_than: 20d, keep_views: 2, staged: true}}
  - name: versions
    select: {tables: ["lake.*.*"], exclude: {tables: ["lake.c.*"]}}
    versions: {older_than: 25d, keep_min: 2}
  - {name: rest, select: {tables: ["**"]}, transactions: {older_than: 10d}, versions: {older_than: 50d, keep_max: 6}}
"""
# name: (target, days, pattern of namespaces, branches, further settings)
ORACLE: list[tuple[str, str, str, set[str] | None, dict[str, Any]]] = [
    ("main-only", "transactions", "a", {"main"}, {"older_than": 40}),
    ("lifted", "transactions", "b", None, {"older_than": 30, "lift": True}),
    ("views", "transactions", "c", None, {"older_than": 20, "keep_views": 2, "staged": True}),
    ("versions", "versions", "abd", None, {"older_than": 25, "keep_min": 2}),
    ("rest", "transactions", "abcd", None, {"older_than": 10}),
    ("rest", "versions", "abcd", None, {"older_than": 50, "keep_max": 6}),
]


def history(rng: random.Random, number: int) -> Table:
    """A random line of commits with branches, tags, reloads, deletes, staging, rollbacks and dropped branches."""
    table = Table(f"lake.{'abcd'[number % 4]}.t{number}")
    count = rng.randint(2, 14)
    ages = sorted((rng.uniform(0.5, 120) for _ in range(count)), reverse=True)
    table.commit("1", ages[0])
    for n, age in enumerate(ages[1:], 2):
        on = rng.choice([name for name, ref in table.refs.items() if not name.startswith("tag ")])
        live = sorted(table.live[table.refs[on].head or ""])
        roll = rng.random()
        if roll < 0.5:
            table.commit(str(n), age, on=on)
        elif roll < 0.7:
            table.commit(str(n), age, on=on, kind=TransactionKind.SNAPSHOT)
        elif roll < 0.78 and live:
            table.commit(str(n), age, on=on, kind=TransactionKind.DELETE, adds=[], removes=rng.sample(live, 1))
        elif roll < 0.86 and len(live) > 1:
            table.commit(str(n), age, on=on, kind=TransactionKind.REWRITE, removes=rng.sample(live, 2))
        elif roll < 0.92:
            table.commit(str(n), age, on=on, parent=table.refs[on].head, staged=True)
        else:
            table.commit(str(n), age, on=on)
            table.branch(on, rng.choice([t.id for t in table.transactions if not t.staged]))
        if rng.random() < 0.2:
            table.branch(rng.choice(["dev", "fix"]), rng.choice(table.transactions).id)
        if rng.random() < 0.1:
            table.tag(f"v{n}", rng.choice(table.transactions).id)
        if rng.random() < 0.1:
            table.refs.pop(rng.choice(["dev", "fix"]), None)
    return table


class Oracle:
    """The spec, applied to one table by walking it."""

    def __init__(
        self, table: Table, holds: set[str], unmarks: set[tuple[str, str]], shared: dict[str, set[str]]
    ) -> None:
        self.table, self.held, self.unmarks, self.shared = table, table.name in holds, unmarks, shared
        self.by_id = {t.id: t for t in table.transactions}
        self.branches = {r.name: r.head for r in table.refs.values() if r.kind == "branch" and r.head}
        self.tags = {r.name: r.head for r in table.refs.values() if r.kind == "tag" and r.head}

    def line(self, head: str) -> list[str]:
        """From the head back to the first commit."""
        found = []
        at: str | None = head
        while at is not None:
            found.append(at)
            at = self.by_id[at].parent_id
        return found

    def views(self, head: str, count: int) -> set[str]:
        members = set()
        for id_ in self.line(head):
            members.add(id_)
            if self.by_id[id_].starts_view:
                count -= 1
                if not count:
                    break
        return members

    def reached(self, id_: str) -> set[str]:
        return {name for name, head in self.branches.items() if id_ in self.line(head)}

    def owner(self, target: str, id_: str) -> tuple[str, dict[str, Any]] | None:
        space, reached = self.table.name.split(".")[1], self.reached(id_)
        for name, of, spaces, branches, settings in ORACLE:
            if of == target and space in spaces and (branches is None or not reached or reached & branches):
                return name, settings
        return None

    def added(self, id_: str) -> set[str]:
        return {path for path, ref in self.table.files.items() if ref.first_transaction == id_}

    def protectors(self, id_: str, settings: dict[str, Any]) -> set[str]:
        """Who protects a transaction."""
        lifted = set()
        if settings.get("lift") and self.by_id[id_].kind is TransactionKind.APPEND:
            lifted = self.reached(id_)
        files, who = self.added(id_), set()
        for name, head in self.branches.items():
            if name not in lifted and (id_ in self.views(head, 1) or files & self.table.live[head]):
                who.add("branch")
            if name not in lifted and id_ in self.views(head, settings.get("keep_views", 1)):
                who.add("view")
        for head in self.tags.values():
            if id_ in self.views(head, 1) or files & self.table.live[head]:
                who.add("tag")
        for other in self.table.transactions:
            if other.staged and files & self.table.live[other.id] and not (settings.get("staged") and other.id == id_):
                who.add("staged")
        if self.by_id[id_].staged and not settings.get("staged"):
            who.add("staged")
        if any(self.shared[self.table.files[path].path] - {self.table.name} for path in files):
            who.add("dataset")
        return who

    def superseded(self, id_: str) -> datetime | None:
        if id_ in self.branches.values():
            return None
        children = [t for t in self.table.transactions if t.parent_id == id_]
        on_branch = [t for t in children if self.reached(t.id)]
        if children:
            return max(t.committed_at for t in on_branch or children)
        mine = self.by_id[id_].committed_at
        return min((t.committed_at for t in self.table.transactions if t.committed_at > mine), default=mine)

    def keepers(self, id_: str, settings: dict[str, Any]) -> set[str]:
        """Who keeps a version."""
        who = set()
        if id_ in self.branches.values():
            who.add("branch")
        if id_ in self.tags.values():
            who.add("tag")
        if self.by_id[id_].staged:
            who.add("staged")
        for head in self.branches.values():
            if id_ in self.line(head)[: settings.get("keep_min", 1)]:
                who.add("keep_min")
        return who

    def due(self, target: str, id_: str, settings: dict[str, Any]) -> bool:
        limit = timedelta(days=settings["older_than"])
        if target == "transactions":
            return self.by_id[id_].committed_at + limit < NOW
        at = self.superseded(id_)
        ranks = [self.line(head).index(id_) + 1 for head in self.branches.values() if id_ in self.line(head)]
        crowded = bool(ranks) and min(ranks) > settings.get("keep_max", 10**9)
        return at is not None and (at + limit < NOW or crowded)

    def decide(self, alone: Counter[str]) -> dict[tuple[str, str], tuple[str, str]]:
        """`(target, id)` → (policy, decision). `alone` counts objects that a single protection saved."""
        answer = {}
        for target in ("transactions", "versions"):
            for id_ in self.by_id:
                owner = self.owner(target, id_)
                if owner is None:
                    continue
                name, settings = owner
                who = self.protectors(id_, settings) if target == "transactions" else self.keepers(id_, settings)
                due = self.due(target, id_, settings)
                who |= {"hold"} if self.held else set()
                who |= {"unmark"} if (self.table.name, id_) in self.unmarks else set()
                if due and len(who) == 1:
                    alone[f"{target} by {next(iter(who))}"] += 1
                if due and who == {"branch", "view"}:
                    alone[f"{target} by branch"] += 1
                decision = "mark" if due and not who else "keep"
                decision = "unmarked" if "unmark" in who else decision
                answer[target, id_] = (name, "held" if self.held else decision)
        return answer

    def freed(self, decisions: dict[tuple[str, str], tuple[str, str]]) -> set[str]:
        """Paths that only versions which go reference, and no branch or tag names."""
        named = {*self.branches.values(), *self.tags.values()}
        going = {id_ for (_, id_), (_, decision) in decisions.items() if decision == "mark"} - named
        kept = [id_ for id_ in self.by_id if id_ not in going]
        return {
            ref.path
            for path, ref in self.table.files.items()
            if not any(path in self.table.live[id_] for id_ in kept) and self.shared[ref.path] == {self.table.name}
        }


def test_the_plan_equals_the_oracle_on_random_histories(tmp_path: Path) -> None:
    rng = random.Random(20261115)
    tables = [history(rng, n) for n in range(TABLES)]
    for n in range(0, TABLES - 8, 7):  # a clone reads a file of another table
        some = rng.choice(list(tables[n].files.values()))
        tables[n + 4].files[some.path] = some
        head = tables[n + 4].transactions[-1].id
        tables[n + 4].live[head] |= {some.path}
    shared: dict[str, set[str]] = {}
    for table in tables:
        for ref in table.files.values():
            shared.setdefault(ref.path, set()).add(table.name)
    held = {table.name for table in tables if rng.random() < 0.05}
    unmarks = {(t.name, rng.choice(t.transactions).id) for t in tables if rng.random() < 0.3}
    rules = policies(tmp_path, RULES)
    made = plan(
        rules, world(*tables), holds=[(name, None, None, "legal", "case") for name in sorted(held)],
        unmarks=[(name, "versions", id_, None, "mine") for name, id_ in sorted(unmarks)],
    )  # fmt: skip
    found = decided(made)
    alone: Counter[str] = Counter()
    checked = 0
    free: set[str] = set()
    for table in tables:
        oracle = Oracle(table, held, unmarks, shared)
        wanted = oracle.decide(alone)
        mine = {
            (r["target"], r["object"]): (r["policy"], r["decision"])
            for r in found.values()
            if r["dataset"] == table.name
        }
        assert mine == wanted, table
        free |= oracle.freed(wanted)
        checked += len(wanted)
    lifted = {p for p in made.paths() if p not in free}
    of_lifted = [r for r in made.read("files") if r["path"] in lifted]
    assert free <= set(made.paths())
    # Beyond what is free only the files that leave a head by `allow_latest_view` are named.
    assert {(r["target"], found[f"{r['table_id']}#transactions:{r['object_id']}"]["policy"]) for r in of_lifted} <= {
        ("transactions", "lifted")
    }
    assert checked > 1000
    expected = {f"transactions by {who}" for who in ("branch", "view", "tag", "staged", "dataset", "hold", "unmark")}
    expected |= {f"versions by {who}" for who in ("tag", "staged", "keep_min", "hold", "unmark")}
    assert not {name for name in expected if not alone[name]}, alone
