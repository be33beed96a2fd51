"""A plan for people: a line per policy, dataset and target, and what changed since another plan.

Both are asked of the plan's relations in one statement, however many objects it has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.kernel.engine import connection, scan
from ebbtide.model.durations import add
from ebbtide.model.times import as_text, parse_time
from ebbtide.plan.choice import EVERYTHING, Choice
from ebbtide.plan.plan import Plan

GOING = ("mark", "marked", "sweep", "wait")
_GOING = f"decision IN {GOING}"
_QUERY = f"""
WITH chosen AS (
    SELECT * FROM {{objects}} WHERE {{where}}
), counts AS (
    SELECT policy, dataset, target, decision, count(*) AS objects FROM chosen GROUP BY ALL
), sums AS (
    SELECT policy, dataset, target, map_from_entries(list((decision, objects) ORDER BY decision)) AS counts
    FROM counts GROUP BY ALL
), going AS (
    SELECT * FROM chosen WHERE {_GOING}
), left_rows AS (
    SELECT policy, dataset, target, leaf.branch AS branch, sum(leaf.rows)::BIGINT AS rows,
           bool_and(leaf.rows IS NOT NULL) AS known
    FROM (SELECT policy, dataset, target, unnest(leaves) AS leaf FROM going WHERE leaves IS NOT NULL) GROUP BY ALL
), most_rows AS (
    SELECT policy, dataset, target, CASE WHEN bool_and(known) THEN max(rows) END AS rows FROM left_rows GROUP BY ALL
), freed AS (
    SELECT policy, dataset, target, count(*) AS files, coalesce(sum(bytes), 0)::BIGINT AS bytes FROM (
        SELECT DISTINCT g.policy, g.dataset, g.target, f.path, f.bytes
        FROM {{files}} f JOIN going g ON g.dataset = f.table_id AND g.target = f.target AND g.object = f.object_id
    ) GROUP BY ALL
), keepers AS (
    SELECT policy, dataset, target, keeper.name AS name, sum(keeper.bytes)::BIGINT AS bytes
    FROM (SELECT policy, dataset, target, unnest(kept_by) AS keeper FROM going WHERE kept_by IS NOT NULL) GROUP BY ALL
), kept AS (
    SELECT policy, dataset, target, map_from_entries(list((name, bytes) ORDER BY bytes DESC, name)) AS kept_by
    FROM keepers GROUP BY ALL
), times AS (
    SELECT policy, dataset, target, min(since) FILTER ({_GOING}) AS oldest,
           min(grace_until) FILTER (decision = 'marked') AS grace_until
    FROM chosen GROUP BY ALL
)
SELECT s.*, CASE WHEN s.target IN ('rows', 'chunks') THEN NULL WHEN m.dataset IS NULL THEN 0 ELSE m.rows END AS rows,
       coalesce(f.files, 0) AS files, coalesce(f.bytes, 0) AS bytes, k.kept_by, t.oldest, t.grace_until
FROM sums s
LEFT JOIN most_rows m ON m.policy IS NOT DISTINCT FROM s.policy AND m.dataset = s.dataset AND m.target = s.target
LEFT JOIN freed f ON f.policy IS NOT DISTINCT FROM s.policy AND f.dataset = s.dataset AND f.target = s.target
LEFT JOIN kept k ON k.policy IS NOT DISTINCT FROM s.policy AND k.dataset = s.dataset AND k.target = s.target
LEFT JOIN times t ON t.policy IS NOT DISTINCT FROM s.policy AND t.dataset = s.dataset AND t.target = s.target
ORDER BY s.policy NULLS LAST, s.dataset, s.target
"""


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """What one policy does to one target of one dataset.

    `counts` are objects by decision. `rows` leave the head of the branch that loses the most; None where only the sweep
    counts them. `files` and `bytes` are freed, each file counted once; `kept_by` says who keeps what else would be.
    `oldest` is when the oldest object that goes was written, or its first day; `first_sweep` when the first of them
    could go, as far as the grace says it.
    """

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


def summarise(plan: Plan, choice: Choice = EVERYTHING) -> Iterator[PolicySummary]:
    """The lines of a plan, in order of policy, dataset and target."""
    where, bound = choice.condition()
    query = _QUERY.format(objects=_relation(plan.folder, "objects"), files=_relation(plan.folder, "files"), where=where)
    with connection() as engine:
        for row in engine.sql(query, params=bound).to_arrow_table().to_pylist(maps_as_pydicts="strict"):
            first = _first_sweep(plan, row["policy"], row["counts"], row.pop("grace_until"))
            yield PolicySummary(**{**row, "kept_by": row["kept_by"] or {}, "first_sweep": first})


def _first_sweep(plan: Plan, policy: str | None, counts: Mapping[str, int], grace_until: str | None) -> str | None:
    if counts.get("sweep"):
        return as_text(plan.as_of)
    ends = [parse_time(grace_until)] if grace_until else []
    if counts.get("mark") and policy is not None and policy in plan.graces:
        ends.append(add(plan.as_of, plan.graces[policy]))
    return as_text(min(ends)) if ends else None


def line_as_json(line: PolicySummary) -> dict[str, Any]:
    return {name: getattr(line, name) for name in PolicySummary.__slots__}


def lines_of(rows: Iterable[Mapping[str, Any]]) -> list[PolicySummary]:
    """The same of the objects of a plan file, as far as it says it: files that two objects name count twice."""
    by_policy: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_policy[row["policy"] or "", row["dataset"], row["target"]].append(row)
    return [_line_of(key, by_policy[key]) for key in sorted(by_policy, key=lambda key: (key[0] == "", *key))]


def _line_of(key: tuple[str, str, str], rows: Iterable[Mapping[str, Any]]) -> PolicySummary:
    counts, kept, leaving = Counter[str](), Counter[str](), Counter[str]()
    files = size = 0
    unknown = False
    for row in rows:
        counts[row["decision"]] += 1
        if row["decision"] not in GOING:
            continue
        files, size = files + row["files"]["count"], size + (row["bytes"] or 0)
        kept.update(row["kept_by"] or {})
        for branch, left in (row["leaves"] or {}).items():
            unknown |= left["rows"] is None
            leaving[branch] += left["rows"] or 0
    most = None if unknown or key[2] in ("rows", "chunks") else max(leaving.values(), default=0)
    return PolicySummary(
        key[0] or None, key[1], key[2], dict(counts), most, files, size, dict(kept.most_common()), None, None
    )


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """An object that is decided otherwise than in another plan; None where one of them has no such object."""

    dataset: str
    target: str
    object: str
    before: str | None
    after: str | None


def changes(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[DecisionChange]:
    """What differs between the objects of two plans. What was only kept, and comes or is gone, is no change."""
    was = {_key(row): row["decision"] for row in before}
    changed = []
    for row in after:
        old = was.pop(_key(row), None)
        if row["decision"] != old and (old is not None or row["decision"] != "keep"):
            changed.append(DecisionChange(*_key(row), old, row["decision"]))
    changed += [DecisionChange(*key, decision, None) for key, decision in was.items() if decision != "keep"]
    return sorted(changed, key=lambda change: (change.dataset, change.target, change.object))


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["dataset"], row["target"], row["object"]


def _relation(folder: Path, name: str) -> str:
    return scan(sorted(folder.glob(f"{name}-*.parquet")))
