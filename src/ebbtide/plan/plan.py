"""The plan: a pure function of (inventory, policies, marks, holds, now), byte for byte the same for the same input.

`build.build_plan` makes it. It is a folder of Parquet files: a lake has millions of objects. The digest is taken over
them in two steps, so that no sorted list of all of them is ever held:

    line     canonical JSON of an object as the plan file has it: sorted keys, no spaces, absent keys left out; codes of
             reasons are in neither
    dataset  SHA-256 over the sorted SHA-256 hex digests of its lines, a digest a line
    plan     SHA-256 of canonical JSON {as_of, objects, policies}, where `objects` is SHA-256 over the sorted lines
             `dataset digest`
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.kernel.engine import connection, scan
from ebbtide.model.durations import Duration
from ebbtide.model.times import as_text
from ebbtide.plan.measure import OverLimit, Totals

if TYPE_CHECKING:
    from ebbtide.kernel.work_folder import WorkFolder

DECISIONS = ("mark", "keep", "held", "unmarked", "marked", "wait", "sweep")
CODES = ("code", "waits_for_codes", "protected_by_codes", "since", "grace_until")
"""What programs and people go by beside the texts: codes (docs/reasons.md), when an object was written or its first
day, and the end of its mark's grace. In `--json`, not in the plan file or its digest.
"""
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Every object that a policy owns or a mark names, with decision and reason.

    `folder` has a Parquet file or more of each relation: `objects` in the columns of design.md's JSON shape, `files`
    with a row per file and object that names it, and what sweeps and marks take of those (`sql/finish`). `totals` are
    of distinct files, by verb. A plan with `over` ends a run with exit 3: datasets in it are left out, and an entry
    without a dataset stops the run.
    """

    as_of: datetime
    digest: str
    folder: Path
    counts: Mapping[str, int]
    totals: Mapping[str, Totals]
    over: tuple[OverLimit, ...] = ()
    warnings: tuple[str, ...] = ()
    below: WorkFolder | None = field(default=None, repr=False, compare=False)
    """What holds the folder, where tasks of a session wrote it."""
    graces: Mapping[str, Duration] = field(default_factory=dict)
    """How long each policy waits between mark and sweep."""

    def rows(self, *decisions: str, codes: bool = False) -> Iterator[dict[str, Any]]:
        """The objects in order of dataset, target and id, as the plan file has them; all, or those decided so.

        With `codes`, each has those of its reasons, too.
        """
        where = "" if not decisions else f"WHERE decision IN ({', '.join('?' * len(decisions))})"
        columns = "*" if codes else f"* EXCLUDE ({', '.join(CODES)})"
        return rows_of_objects(self.folder, f"{where} ORDER BY dataset, target, object", decisions, columns)

    def paths(self) -> Iterator[str]:
        """The distinct files that the plan names, sorted."""
        return (row["path"] for row in read(self.folder, "files", "GROUP BY path ORDER BY path", columns="path"))

    def read(self, relation: str) -> Iterator[dict[str, Any]]:
        """All rows of one of its relations."""
        return read(self.folder, relation)

    def head(self) -> dict[str, Any]:
        """What the plan file says beside its objects."""
        return {
            "as_of": as_text(self.as_of),
            "digest": self.digest,
            "counts": dict(self.counts),
            "totals": {
                verb: {"files": t.files, "bytes": t.bytes, "leaves": t.leaves} for verb, t in self.totals.items()
            },
            "over_limits": [{"dataset": o.dataset, "verb": o.verb, "because": o.text} for o in self.over],
            "warnings": list(self.warnings),
        }

    def close(self) -> None:
        """Remove its folder."""
        if self.below is not None:
            self.below.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows_of_objects(
    folder: Path, tail: str, bound: Iterable[object] = (), columns: str = "*"
) -> Iterator[dict[str, Any]]:
    """Objects as the plan file has them, with their codes; `tail` is the rest of the statement."""
    for row in read(folder, "objects", tail, bound, columns):
        if row["leaves"] is not None:
            row["leaves"] = {v["branch"]: {"bytes": v["bytes"], "rows": v["rows"]} for v in row["leaves"]}
            row["kept_by"] = {k["name"]: k["bytes"] for k in row["kept_by"]}
        yield row


def without_codes(row: Mapping[str, Any]) -> dict[str, Any]:
    """An object as the plan file has it."""
    return {key: value for key, value in row.items() if key not in CODES}


def read(
    folder: Path, relation: str, tail: str = "", bound: Iterable[object] = (), columns: str = "*"
) -> Iterator[dict[str, Any]]:
    """Rows of a relation of the plan in this folder, some ten thousand at a time."""
    files = sorted(folder.glob(f"{relation}-*.parquet"))
    with connection() as engine:
        found = engine.sql(f"SELECT {columns} FROM {scan(files)} {tail}", params=list(bound))
        for batch in found.to_arrow_reader(_BATCH):
            yield from batch.to_pylist()


def objects_digest(datasets: Iterable[tuple[str, str]]) -> str:
    """The `objects` part of the digest, from each dataset's own."""
    return hashlib.sha256("\n".join(sorted(f"{name} {digest}" for name, digest in datasets)).encode()).hexdigest()


def plan_digest(as_of: datetime, objects: str, policies: Mapping[str, Any]) -> str:
    whole = {"as_of": as_text(as_of), "objects": objects, "policies": policies}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
