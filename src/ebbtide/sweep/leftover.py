"""What an earlier act left: the object is no longer in the inventory, some of its files may still lie there.

A crash between the metadata's commit and the removal of files, or a store that refused some keys, ends here. Only files
that the act's intent named are touched, and only where nothing references them (the sweep asks that of all acts).
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.plan.build import PROOF
from ebbtide.state.values import Mark, ObjectKey
from ebbtide.sweep.intents import files_of_act
from ebbtide.sweep.values import Act, Going, NamedFile

_ROW: Mapping[str, Any] = {"drops_from": (), "policy": None, "because": "an earlier sweep left it", "cutoff": None}


def split(
    going: Iterable[Going], marks: Iterable[Mark], waits: Mapping[ObjectKey, Mapping[str, Any]]
) -> tuple[list[Mark], list[Going]]:
    """Marks whose objects are gone but for files of an earlier act, and objects that are there."""
    fresh, left = [], []
    for object_ in going:
        mark = object_.mark
        done_before = mark is not None and mark.act is not None and not object_.files
        if mark is not None and done_before and object_.key.target in ("partitions", "transactions", "versions"):
            left.append(mark)
        else:
            fresh.append(object_)
    left += [mark for mark in marks if mark.key in waits and waits[mark.key]["waits_for"] == [PROOF]]
    return left, fresh


def leftovers(ledger: Ledger, marks: Collection[Mark], catalogs: Mapping[str, Catalog]) -> Iterator[Act]:
    """An act per dataset, with the files that the marks' own acts named."""
    named = files_of_act(ledger, {mark.act for mark in marks if mark.act is not None})
    by_dataset: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        by_dataset[mark.key.dataset].append(mark)
    for dataset, theirs in sorted(by_dataset.items()):
        objects = tuple(
            Going(
                mark.key, _ROW, mark,
                tuple(NamedFile(path, size) for path, size in named.get(mark.act or "", {}).items()),
            )
            for mark in theirs
        )  # fmt: skip
        yield Act(f"act-{secrets.token_hex(12)}", dataset, catalogs[dataset.partition(".")[0]], objects, leftover=True)
