"""From a plan to acts: a new one for each dataset that holds somebody, and those of before whose readers are done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ebbtide.acts.act import Act
from ebbtide.erasure.eraser import ErasureOrder
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.plan import Decision, PlaceStep
from ebbtide.erasure.stages import act_of, catalog_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.model.dataset import Catalog
from ebbtide.state.erasure import OpenErasure
from ebbtide.state.writer import new_id


@dataclass(slots=True)
class Acts:
    """Acts of one run, with what their owner and their executor need to know of each."""

    inventory: Inventory
    catalogs: Mapping[str, Catalog]
    people: Mapping[str, tuple[Identifier, ...]]
    numbers: Mapping[str, int]
    search: DatasetSearch
    acts: list[Act] = field(default_factory=list)
    by_act: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: dict[str, ErasureOrder] = field(default_factory=dict)
    taken_over: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def begin(self, step: PlaceStep, earlier: Iterable[OpenErasure], *, free_from: datetime) -> None:
        """An act for a dataset, which also takes over what earlier acts named there and left."""
        assert step.decision is Decision.ERASE
        left = list(earlier)
        act = self._add(new_id(), step.dataset, step.requests, _files_of(left), free_from, paused=False)
        self.taken_over[act.id] = tuple(each.act for each in left)

    def go_on(self, earlier: OpenErasure, requests: Collection[str]) -> None:
        """The rest of an act that waited for readers."""
        known = tuple(sorted(each for each in requests if each in self.people))
        # What it did was for all of its people: where one of them is not to be erased any more, it is looked at anew.
        heads = self._heads(earlier.dataset, known) if earlier.requests == set(known) else frozenset[str]()
        self._add(earlier.act, earlier.dataset, known, earlier.files, earlier.free_from, paused=True, heads=heads)

    def _add(
        self,
        act_id: str,
        dataset: str,
        requests: tuple[str, ...],
        files: Mapping[str, int],
        free_from: datetime,
        *,
        paused: bool,
        heads: frozenset[str] = frozenset(),
    ) -> Act:
        found = self._found(dataset, requests)
        act = act_of(
            dataset, act_id, self.inventory, catalog_of(dataset, self.catalogs), requests=requests,
            people=len(requests), files={**self._sizes(dataset, found), **files}, free_from=free_from, paused=paused,
        )  # fmt: skip
        self.acts.append(act)
        self.by_act[act_id] = requests
        people, versions = tuple(self.people[each] for each in requests), self._versions(dataset, requests)
        self.asked[act_id] = ErasureOrder(people, found, versions, heads)
        return act

    def _found(self, dataset: str, requests: Collection[str]) -> frozenset[str]:
        """The data files in which one of these people was found."""
        hits, numbers = self.search.tables.get(dataset), {self.numbers[each] for each in requests}
        if hits is None:
            return frozenset()
        return frozenset(path for path in hits.files if hits.parts[path] & numbers)

    def _versions(self, dataset: str, requests: Collection[str]) -> frozenset[str]:
        """The versions that were read as a whole, and in which one of these people was found."""
        hits, numbers = self.search.tables.get(dataset), {self.numbers[each] for each in requests}
        if hits is None:
            return frozenset()
        return frozenset(id_ for id_ in hits.versions if hits.parts[id_] & numbers)

    def _heads(self, dataset: str, requests: Collection[str]) -> frozenset[str]:
        """The branches that show rows of one of these people."""
        held = (each for request in requests for each in self.search.held.get(self.numbers[request], ()))
        return frozenset(each.ref for each in held if each.dataset == dataset and each.ref.startswith("branch:"))

    def _sizes(self, dataset: str, paths: Collection[str]) -> dict[str, int]:
        if not paths:
            return {}
        rows = self.inventory.table("files", table_id=dataset).select(["path", "bytes"]).to_pylist()
        return {row["path"]: row["bytes"] or 0 for row in rows if row["path"] in paths}


def _files_of(acts: Iterable[OpenErasure]) -> dict[str, int]:
    return {path: size for each in acts for path, size in each.files.items()}
