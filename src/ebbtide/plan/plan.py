"""The plan: a pure function of (inventory, policies, marks, holds, now), byte for byte the same for the same input.

`build.build_plan` makes it. Its objects stay in Spark, kept on disk: a lake has millions. The digest is taken over them
in two steps, so that no sorted list of all of them is ever held:

    line     canonical JSON of an object as the plan file has it: sorted keys, no spaces, absent keys left out
    dataset  SHA-256 over the sorted SHA-256 hex digests of its lines, a digest a line
    plan     SHA-256 of canonical JSON {as_of, objects, policies}, where `objects` is SHA-256 over the sorted lines
             `dataset digest`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.model.times import as_text
from ebbtide.plan.measure import OverLimit, Totals

DECISIONS = ("mark", "keep", "held", "unmarked", "marked", "wait", "sweep")


@dataclass(frozen=True, slots=True)
class Plan:
    """Every object that a policy owns or a mark names, with decision and reason.

    `objects` has the columns of design.md's JSON shape; `files` is a row per file and object that names it. `totals`
    are of distinct files, by verb. A plan with `over` ends a run with exit 3: datasets in it are left out, and an entry
    without a dataset stops the run.
    """

    as_of: datetime
    digest: str
    objects: DataFrame
    files: DataFrame
    counts: Mapping[str, int]
    totals: Mapping[str, Totals]
    over: tuple[OverLimit, ...] = ()
    warnings: tuple[str, ...] = ()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The objects in order of dataset, target and id, as the plan file has them."""
        ordered = self.objects.orderBy("dataset", "target", "object")
        for row in ordered.toLocalIterator():
            yield row.asDict(recursive=True)

    def paths(self) -> Iterator[str]:
        """The distinct files that the plan names, sorted."""
        for row in self.files.select("path").distinct().orderBy("path").toLocalIterator():
            yield row[0]

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
        """Give back what Spark keeps of it."""
        self.objects.unpersist()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shape(rows: DataFrame) -> DataFrame:
    """The objects in the shape of the plan file, keys in alphabetical order."""
    return rows.select(
        "because",
        "branches",
        "bytes",
        "cutoff",
        F.col("table_id").alias("dataset"),
        "decision",
        "drops_from",
        F.struct(F.col("file_count").alias("count"), F.concat(F.lit("sha256:"), "file_digest").alias("digest")).alias(
            "files"
        ),
        "fingerprint",
        "kept_by",
        "leaves",
        F.col("object_id").alias("object"),
        "policy",
        "protected_by",
        "rows",
        "target",
        "waits_for",
    )


def _line(objects: DataFrame) -> Column:
    return F.to_json(F.struct(*objects.columns), {"ignoreNullFields": "true"})


def digest_and_counts(objects: DataFrame) -> tuple[str, dict[str, int]]:
    """The `objects` part of the digest, and how many objects each decision has, in one pass."""
    numbers = [F.sum((F.col("decision") == name).cast("long")).alias(name) for name in DECISIONS]
    hashed = objects.select("dataset", "decision", F.sha2(_line(objects), 256).alias("hash"))
    row = (
        hashed.groupBy("dataset")
        .agg(F.sha2(F.array_join(F.sort_array(F.collect_list("hash")), "\n"), 256).alias("hash"), *numbers)
        .agg(
            F.sha2(F.array_join(F.sort_array(F.collect_list(F.concat_ws(" ", "dataset", "hash"))), "\n"), 256),
            *(F.sum(name) for name in DECISIONS),
        )
        .first()
    )
    assert row is not None
    return str(row[0]), {name: row[n + 1] or 0 for n, name in enumerate(DECISIONS)}


def plan_digest(as_of: datetime, objects: str, policies: Mapping[str, Any]) -> str:
    whole = {"as_of": as_text(as_of), "objects": objects, "policies": policies}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
