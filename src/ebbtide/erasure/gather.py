"""What a plan of an erasure is made from: one look at metadata per dataset that may hold somebody; no row is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config.subjects import Identities
from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure.batch import PeopleBatch
from ebbtide.erasure.costs import files_of
from ebbtide.erasure.found import DatasetSearch, TableHits
from ebbtide.erasure.places import Places
from ebbtide.erasure.plan import DatasetFacts
from ebbtide.formats.base import supports
from ebbtide.formats.erasing import Erasure, ForeseenVersion, VersionFate
from ebbtide.formats.registry import load_erasing, load_format
from ebbtide.governance.carriers import enclosing
from ebbtide.governance.reading import fault_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.reachability import still_referenced
from ebbtide.ledger.commitment import Identifier
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, Role
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import CheckedFolder
from ebbtide.model.times import as_text
from ebbtide.plan.held_back import HeldBack
from ebbtide.spark.session import activate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 4
_BEGUN = "an erasure that was begun: its files go from"


@dataclass(frozen=True, slots=True)
class Gathering:
    """A batch of people and the lake that they are looked for in."""

    session: Callable[[], SparkSession]
    catalogs: Mapping[str, Catalog]
    inventory: Inventory
    identities: Identities
    places: Places
    back: Mapping[str, HeldBack] = field(default_factory=dict)
    terms: Mapping[str, ErasureTerms] = field(default_factory=dict)

    def erasure(
        self,
        dataset: str,
        people: Collection[Collection[Identifier]],
        files: frozenset[str],
        versions: frozenset[str],
        places: tuple[CheckedFolder, ...] = (),
    ) -> Erasure:
        """What a format is asked for of one dataset."""
        found = self.inventory.found(dataset)
        assert found is not None
        terms = self.terms.get(dataset, ErasureTerms())
        redact = terms.redact if terms.method == "redact" else None
        columns = self.places.columns.get(dataset, {})
        return Erasure(
            found=found,
            people=PeopleBatch(self.session(), people, columns, self.identities, redact),
            files=files,
            versions=versions,
            history=VersionFate(terms.history),
            kept=self.back[dataset].kept if dataset in self.back else {},
            places=places,
        )

    def facts(
        self,
        people: Collection[Collection[Identifier]],
        search: DatasetSearch,
        traced: Mapping[str, frozenset[str]],
        busy: Mapping[str, datetime],
    ) -> list[DatasetFacts]:
        """What is known of each dataset in which somebody was found, or a search found traces of somebody. `busy` are
        those with an act that was begun, and the time from which its files go.
        """
        names = sorted({*search.tables, *(name for name in traced if name in self.inventory.current.entries)})
        sizes = self._sizes(search)
        shared = self._shared(search)
        rows = self._rows(names)
        self.session()  # before several threads ask for it

        def one(name: str) -> DatasetFacts:
            hits = search.tables.get(name)
            foreseen, cannot, trouble = self._foresee(name, people, hits)
            return DatasetFacts(
                dataset=name, back=self.back.get(name, HeldBack()), terms=self.terms.get(name, ErasureTerms()),
                hits=hits, sizes=sizes.get(name, {}), rows=rows.get(name), foreseen=foreseen, cannot=cannot,
                busy=f"{_BEGUN} {as_text(busy[name])}" if name in busy else None, free_from=busy.get(name),
                trouble=trouble, shared=shared.get(name, ()), traced=traced.get(name, frozenset()),
            )  # fmt: skip

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(one, names))

    def _foresee(
        self, name: str, people: Collection[Collection[Identifier]], hits: TableHits | None
    ) -> tuple[Mapping[str, ForeseenVersion], str | None, str | None]:
        """What becomes of its versions; or why its format cannot; or why that cannot be told now."""
        activate(spark := self.session())
        catalog = self.catalogs.get(DatasetId.parse(name).catalog)
        if catalog is None:
            return {}, None, "its catalog is in ebbtide.yml no more"
        support = supports(load_format(catalog.format), Capability.REWRITES_FILES)
        if not support:
            return {}, support.reason, None
        if (because := self._no_redaction(name)) is not None:
            return {}, because, None
        files, versions = (hits.files, hits.versions) if hits is not None else (frozenset[str](), frozenset[str]())
        asked = self.erasure(name, people, files, versions)
        try:
            return load_erasing(catalog.format).foresee(asked, catalog, spark), None, None
        except Exception as error:
            return {}, None, fault_of(error)

    def _no_redaction(self, name: str) -> str | None:
        """Why what is to be redacted there would erase nobody: a column that the table has not, as it spells them, at
        the top; or one that it leaves, and that still says whom a row is about.
        """
        terms = self.terms.get(name, ErasureTerms())
        if terms.method != "redact":
            return None
        known = set(self.inventory.table("columns", table_id=name)["column_id"].to_pylist())
        top = {column for column in known if enclosing(column.rpartition(".")[0], known) is None}
        if unknown := terms.redact.keys() - top:
            return f"its redaction names {_listed(unknown)}, and it has no such top column"
        replaced = {column.lower() for column in terms.redact}
        left = [path for path in self.places.columns.get(name, {}) if enclosing(path.lower(), replaced) is None]
        if left:
            return (
                f"its redaction leaves {_listed(left)}, which tells people apart: replace it too, or keep with a basis"
            )
        return None

    def _sizes(self, search: DatasetSearch) -> dict[str, dict[str, int]]:
        """The bytes of the data files that hold somebody, by dataset; of versions that only a reader can merge, all."""
        paths = {name: files_of(hits, hits.people) for name, hits in search.tables.items()}
        files = self.inventory.table("files").select(["table_id", "path", "bytes"])
        every = sorted(frozenset[str]().union(*paths.values()))
        found = files.filter(pc.is_in(files["path"], pa.array(every, pa.string())))
        sizes: dict[str, dict[str, int]] = {}
        for row in found.to_pylist():
            if row["path"] in paths.get(row["table_id"], ()):
                sizes.setdefault(row["table_id"], {})[row["path"]] = row["bytes"] or 0
        return sizes

    def _shared(self, search: DatasetSearch) -> dict[str, tuple[str, ...]]:
        """By dataset, who else references files of it in which somebody was found, and holds nobody by its own rows."""
        named = [(name, path) for name, hits in search.tables.items() for path in sorted(hits.files)]
        if not named:
            return {}
        going = {name: list(hits.retained.ids) for name, hits in search.tables.items()}
        kept = still_referenced(self.inventory, named, going)
        found: dict[str, set[str]] = {}
        for name, path in named:
            if path in kept and kept[path] not in search.tables and kept[path] != name:
                found.setdefault(name, set()).add(kept[path])
        return {name: tuple(sorted(who)) for name, who in found.items()}

    def _rows(self, names: Collection[str]) -> dict[str, int]:
        """How many rows the live data files of each dataset hold, where the format says so of all of them."""
        files = self.inventory.table("files").select(["table_id", "role", "live", "rows"])
        chosen = files.filter(
            pc.and_(
                pc.is_in(files["table_id"], pa.array(sorted(names), pa.string())),
                pc.and_(pc.equal(files["role"], str(Role.DATA)), files["live"]),
            )
        )
        grouped = chosen.group_by("table_id").aggregate([("rows", "sum"), ("rows", "count"), ("role", "count")])
        return {
            row["table_id"]: row["rows_sum"] for row in grouped.to_pylist() if row["rows_count"] == row["role_count"]
        }


def _listed(columns: Collection[str]) -> str:
    return ", ".join(sorted(repr(column) for column in columns))
