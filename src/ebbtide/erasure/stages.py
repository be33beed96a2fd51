"""What an erasure does to one dataset, as an act: rows leave, references are read again, bytes go after the readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ebbtide.acts.act import Act, DeleteFiles, NamedFile, Phase, ReadReferences, Stage
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId

KIND = "erase"
MOST_NAMED = 1000
"""How many requests an entry names. Of more, each has a leaf in the batches that say how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRows(Stage):
    """Files that hold somebody are rewritten without them, a commit for each branch. No file goes."""

    phase: ClassVar[Phase] = Phase.METADATA
    people: int
    files: int

    def __str__(self) -> str:
        return f"rewrite: {self.files:,} files that hold some of {self.people:,} people"


def act_of(
    dataset: str,
    act_id: str,
    inventory: Inventory,
    catalog: Catalog,
    *,
    requests: tuple[str, ...],
    people: int,
    files: Mapping[str, int],
    free_from: datetime,
    paused: bool = False,
) -> Act:
    """The act that erases these requests' people from one dataset, or what goes on with one that was begun."""
    found, entry = inventory.found(dataset), inventory.current.entries.get(dataset)
    assert found is not None
    assert entry is not None
    main = next((row["head"] for row in inventory.rows("branches", table_id=dataset) if row["main"]), None)
    named = tuple(NamedFile(path, size) for path, size in sorted(files.items()))
    stages: tuple[Stage, ...] = (
        RewriteRows(people=people, files=len(named)),
        ReadReferences(),
        DeleteFiles(files=named, not_before=free_from),
    )
    return Act(
        id=act_id, dataset=dataset, catalog=catalog, stages=stages, kind=KIND, found=found, homes=entry.places,
        root=found.location, head=main, paused=paused, requests=requests if len(requests) <= MOST_NAMED else (),
    )  # fmt: skip


def catalog_of(dataset: str, catalogs: Mapping[str, Catalog]) -> Catalog:
    return catalogs[DatasetId.parse(dataset).catalog]
