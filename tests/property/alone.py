"""For each protection, the objects that it alone saved: due, and nothing else would have kept them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ebbtide.state.values import ObjectKey
from ebbtide.sweep.values import ObjectOutcome

PROTECTIONS = (
    "latest view of main", "latest view of another branch", "tag", "staged", "other dataset", "hold", "unmark",
    "keep_min", "keep_views", "gc.enabled", "min-snapshots-to-keep", "deletedFileRetentionDuration", "statutory floor",
    "snapshot.num-retained.min", "snapshot.time-retained", "consumer", "savepoint", "locked", "unknown",
    "NULL as a date", "unread dataset", "identity",
)  # fmt: skip
_BEGINNINGS = {
    "branch:main": "latest view of main",
    "branch:": "latest view of another branch",
    "tag:": "tag",
    "staged": "staged",
    "reference:": "other dataset",
    "hold:": "hold",
    "keep_min:": "keep_min",
    "views:": "keep_views",
    "floor:gc.enabled": "gc.enabled",
    "unknown:gc.enabled": "gc.enabled",
    "floor:history.expire.min-snapshots-to-keep": "min-snapshots-to-keep",
    "floor:snapshot.num-retained.min": "snapshot.num-retained.min",
    "floor:snapshot.time-retained": "snapshot.time-retained",
    "floor:consumer:": "consumer",
    "floor:delta.deletedFileRetentionDuration": "deletedFileRetentionDuration",
    "floor:statute": "statutory floor",
    "locked:": "locked",
    "unknown:": "unknown",
}


def protection(text: str) -> str:
    """The name of a protection as a plan writes it; the plan's own text where it is none of those looked for."""
    if re.fullmatch(r"tag:\d{17}", text):
        return "savepoint"  # Hudi's have no name but the instant
    return next((name for beginning, name in _BEGINNINGS.items() if text.startswith(beginning)), text)


@dataclass
class Alone:
    """Counts over the plans of all rounds; an object counts once for a protection."""

    saved: dict[str, set[tuple[int, ObjectKey]]] = field(default_factory=dict)

    def count(
        self,
        seed: int,
        objects: Iterable[Mapping[str, Any]],
        marked: Collection[ObjectKey] = (),
        rescued: Collection[ObjectKey] = (),
    ) -> None:
        """`marked` were due when they were marked, so whatever keeps them now saved them."""
        for row in objects:
            key = ObjectKey(row["dataset"], row["target"], row["object"])
            by = {protection(text) for text in row["protected_by"]}
            was_due = row["decision"] == "keep" and row["because"].endswith(", but protected")
            sent_back = row["decision"] in ("held", "unmarked") and key in marked
            if sent_back and key in rescued and row["decision"] == "unmarked":
                by.add("unmark")
            if len(by) == 1 and (was_due or sent_back):
                self.saved.setdefault(by.pop(), set()).add((seed, key))
            if row["target"] == "partitions" and row["because"].startswith("no date") and not by:
                self.saved.setdefault("NULL as a date", set()).add((seed, key))  # whatever else looks like one there

    def count_unread(self, seed: int, objects: Iterable[Mapping[str, Any]], hidden: str) -> None:
        """What would go, but for somebody who could not be read."""
        for row in objects:
            if row["decision"] == "wait" and row["waits_for"] == [f"unread:{hidden}"]:
                key = ObjectKey(row["dataset"], row["target"], row["object"])
                self.saved.setdefault("unread dataset", set()).add((seed, key))

    def count_refused(self, seed: int, refused: Iterable[ObjectOutcome]) -> None:
        """What a sweep began on a table that was another one by then."""
        self.saved.setdefault("identity", set()).update((seed, result.key) for result in refused)

    def counts(self) -> dict[str, int]:
        return {
            name: len(self.saved.get(name, ())) for name in (*PROTECTIONS, *sorted(self.saved.keys() - PROTECTIONS))
        }
