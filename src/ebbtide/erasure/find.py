"""What do we hold of these people: rows per dataset, branch, tag and retained version (spec §4, "Plan").

1. Places come from lineage (`places.py`), their versions from the last scan. Each format hands out every data file
   once, whichever versions hold it (`formats/versions.py`), and where it merges rows, every version.
2. Tables are looked through side by side, many by one job: their columns as keys (`matching.py`), joined with those of
   the people, which are in memory alone (`spark/people.py`).
3. A data file in which somebody was found is read again as versions see it in which something hides rows of it.
4. Counts per file become counts per version (`found.py`). A table that fails is named, and the others go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ebbtide.config.subjects import Identities
from ebbtide.erasure.batch import PeopleBatch
from ebbtide.erasure.found import DatasetSearch, Hit, PartsLook, TableHits, held_by_ref, hits_of, rows_by_ref
from ebbtide.erasure.matching import all_keys, column_keys, shown_columns
from ebbtide.erasure.places import NotReachable, Places, retained_versions
from ebbtide.formats.registry import load_versions
from ebbtide.formats.versions import PART, Retained, VersionLook, VersionRows
from ebbtide.governance.reading import fault_of, together
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.run import RunContext

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ebbtide.model.dataset import Catalog

_TABLES = 50
"""How many tables are looked through by one job: a plan of more costs more than its tasks."""
_PAIRS = "array<struct<key:string,column:string>>"


@dataclass(slots=True)
class _SearchedTable:
    """One dataset while it is looked through."""

    name: str
    columns: Mapping[str, tuple[str, ...]]
    look: VersionLook
    looked: list[PartsLook] = field(default_factory=list)


class Finder:
    """Looks people up in all places that their identities can be in; with `with_rows` it keeps their rows, too. Of the
    datasets `all_files` it reads also those files that by what metadata says of them hold nobody.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalogs: Mapping[str, Catalog],
        identities: Identities,
        inventory: Inventory,
        *,
        with_rows: bool = False,
        all_files: Collection[str] = (),
    ) -> None:
        self._spark, self._catalogs, self._identities = spark, catalogs, identities
        self._inventory, self._with_rows = inventory, with_rows
        self._all_files = all_files
        self._people: Sequence[Sequence[Identifier]] = ()
        self._batches: dict[tuple[tuple[str, tuple[str, ...]], ...], PeopleBatch] = {}
        self._missed: set[NotReachable] = set()

    def find(self, people: Sequence[Sequence[Identifier]], places: Places, run: RunContext) -> DatasetSearch:
        """Count the rows of each person in every place."""
        from ebbtide.spark.people import people_frame

        self._people, self._batches = people, {}
        keys = [(key, str(n)) for n, person in enumerate(people) for key in _keys_of(person)]
        needles = people_frame(self._spark, keys, ("key", "person"))
        self._missed = set(places.not_reachable)
        found = {n: ([], []) for n in range(len(people))}  # type: ignore[var-annotated]
        retained = retained_versions(self._inventory, places.columns.keys())
        tables: dict[str, TableHits] = {}
        left = iter(retained.items())
        run.step("look through tables", len(retained), unit="tables")
        while some := dict(islice(left, _TABLES)):
            for table in self._look(some, places, needles):
                if (hits := hits_of(table.look.retained, table.looked)) is not None:
                    tables[table.name] = hits
                for person, held in held_by_ref(table.look.retained, table.looked).items():
                    found[person][0].extend(held)
                for person, rows in rows_by_ref(table.look.retained, table.looked).items():
                    found[person][1].extend(rows)
            run.advance(len(some))
        return DatasetSearch(
            {n: tuple(held) for n, (held, _) in found.items()},
            tuple(sorted(self._missed)),
            {n: tuple(rows) for n, (_, rows) in found.items()},
            tables,
        )

    def _look(self, retained: Mapping[str, Retained], places: Places, needles: DataFrame) -> list[_SearchedTable]:
        with ExitStack() as until:
            tables = [
                _SearchedTable(
                    name,
                    places.columns[name],
                    VersionLook(
                        versions,
                        self._catalogs[versions.found.id.catalog],
                        self._spark,
                        until,
                        people=self._batch(places.columns[name]),
                        all_parts=name in self._all_files,
                    ),
                )
                for name, versions in retained.items()
            ]
            self._count([(table, self._stored(table)) for table in tables], needles, again=False)
            self._count([(table, self._visible(table)) for table in tables], needles, again=True)
            for table in tables:
                self._missed |= {NotReachable(f"{table.name}@{id_}", why) for id_, why in table.look.untold.items()}
            return tables

    def _batch(self, columns: Mapping[str, tuple[str, ...]]) -> PeopleBatch:
        """Tables with the same columns have one: their values are sorted once."""
        key = tuple(sorted(columns.items()))
        if key not in self._batches:
            self._batches[key] = PeopleBatch(self._spark, self._people, columns, self._identities)
        return self._batches[key]

    def _stored(self, table: _SearchedTable) -> tuple[VersionRows, ...]:
        try:
            return load_versions(table.look.catalog.format).stored(table.look)
        except Exception as error:
            self._fail(table, error)
            return ()

    def _visible(self, table: _SearchedTable) -> tuple[VersionRows, ...]:
        parts = {hit.part for looked in table.looked for hit in looked.hits}
        try:
            return load_versions(table.look.catalog.format).visible(table.look, parts) if parts else ()
        except Exception as error:  # what is hidden would be counted: nothing is told of the table
            table.looked.clear()
            self._fail(table, error)
            return ()

    def _fail(self, table: _SearchedTable, error: Exception) -> None:
        self._missed.add(NotReachable(table.name, fault_of(error), failed=True))

    def _count(
        self, frames: Sequence[tuple[_SearchedTable, tuple[VersionRows, ...]]], needles: DataFrame, *, again: bool
    ) -> None:
        """One job over these frames; what it finds goes to their tables."""
        parts: dict[str, DataFrame] = {}
        asked: list[tuple[_SearchedTable, VersionRows, PartsLook]] = []
        for table, stored in frames:
            for each in stored:
                try:
                    matched = self._matched(table, each.frame, len(asked), needles)
                except Exception as error:
                    self._fail(table, error)
                    continue
                if matched is not None:
                    looked = PartsLook(each.held, again)
                    parts[str(len(asked))] = matched
                    asked.append((table, each, looked))
                    table.looked.append(looked)
        answer, broken = together(parts, self._collect)
        for one in broken:
            table = asked[int(one.place)][0]
            table.looked.clear()
            self._missed.add(NotReachable(table.name, one.because, failed=True))
        for row in answer or ():
            _, stored_, looked = asked[row["frame"]]
            texts = tuple(row["texts"]) if self._with_rows else ()
            columns = frozenset(row["columns"])
            looked.hits.append(Hit(int(row["person"]), stored_.part_of(row["part"]), row["rows"], columns, texts))

    def _matched(self, table: _SearchedTable, frame: DataFrame, number: int, needles: DataFrame) -> DataFrame | None:
        """A row for each person that a row of the table is about, and each column that says so."""
        from pyspark.sql import functions as F

        found = self._keys(table, frame)
        if not found:
            return None
        text = [F.to_json(F.struct(*shown_columns(frame, PART))).alias("text")] if self._with_rows else []
        base = [F.col(PART).alias("part"), F.monotonically_increasing_id().alias("row"), *text]
        if len(found) == 1 and not found[0][2]:
            path, key, _ = found[0]
            rows = frame.select(*base, key.alias("key"), F.lit(path).alias("column"))
        else:
            pairs = F.concat(*(F.coalesce(_pairs(*each), F.array().cast(_PAIRS)) for each in found))
            # Rows are numbered before they are taken apart: in one projection Spark would number what came of them.
            rows = frame.select(*base, pairs.alias("pairs")).withColumn("pair", F.explode("pairs"))
            rows = rows.select("*", "pair.key", "pair.column").drop("pair", "pairs")
        return rows.join(F.broadcast(needles), "key").drop("key").withColumn("frame", F.lit(number))

    def _keys(self, table: _SearchedTable, frame: DataFrame) -> list[tuple[str, Column, bool]]:
        """The keys of each column that carries an identity: one, or a list of them (then True)."""
        found: list[tuple[str, Column, bool]] = []
        for path, names in table.columns.items():
            for name in names:
                keys = column_keys(frame, path, name, self._identities.subjects[name].match)
                if keys is None:
                    why = "no value of its type can be compared, or it is no column of the table any more"
                    self._missed.add(NotReachable(f"{table.name}.{path}", why))
                else:
                    found.append((path, *keys))
        return found

    def _collect(self, rows: DataFrame) -> list[Any]:
        from pyspark.sql import functions as F

        text = [F.first("text").alias("text")] if self._with_rows else []
        by_row = rows.groupBy("frame", "part", "row", "person").agg(F.collect_set("column").alias("columns"), *text)
        texts = [F.collect_list("text").alias("texts")] if self._with_rows else []
        columns = F.array_distinct(F.flatten(F.collect_list("columns"))).alias("columns")
        counted = by_row.groupBy("frame", "part", "person").agg(F.count("row").alias("rows"), columns, *texts)
        return counted.collect()


def _pairs(path: str, keys: Column, is_list: bool) -> Column:
    from pyspark.sql import functions as F

    listed = keys if is_list else F.array(keys)
    return F.transform(listed, lambda key: F.struct(key.alias("key"), F.lit(path).alias("column")))


def _keys_of(person: Sequence[Identifier]) -> list[str]:
    return sorted(all_keys((one.type, one.value) for one in person))
