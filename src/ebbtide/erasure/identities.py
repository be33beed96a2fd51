"""Further identifiers of people, from the tables that `subjects.yml` names (spec §4).

Every retained version is asked, and rows that a delete hides, too: an address that a person had once still stands in
what was written then. What is found is asked again, until nobody has anything new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from uuid import UUID

from ebbtide.config.subjects import Identities, IdentityColumn, IdentityTable
from ebbtide.erasure.matching import all_keys, column_keys
from ebbtide.erasure.places import NotReachable, retained_versions
from ebbtide.erasure.values import is_nobody
from ebbtide.formats.registry import load_versions
from ebbtide.formats.versions import Retained, VersionLook
from ebbtide.governance.reading import fault_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.run import RunContext

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ebbtide.model.dataset import Catalog

_UUID_BYTES = 16


@dataclass(frozen=True, slots=True, repr=False)
class Resolved:
    """All identifiers of each person, those that were asked by first; `not_reachable` are tables that failed."""

    people: tuple[tuple[Identifier, ...], ...]
    not_reachable: tuple[NotReachable, ...]


def resolve(
    spark: SparkSession,
    catalogs: Mapping[str, Catalog],
    identities: Identities,
    inventory: Inventory,
    people: Sequence[Sequence[Identifier]],
    run: RunContext,
) -> Resolved:
    """Follow identity tables from what is known of each person."""
    known = [dict.fromkeys(person) for person in people]
    fresh = [set(person) for person in known]
    missed: set[NotReachable] = set()
    retained = retained_versions(inventory, {t.table_id for t in identities.tables if inventory.found(t.table_id)})
    missed |= {
        NotReachable(table.table_id, "no catalog lists it: nobody's further identifiers are known", failed=True)
        for table in identities.tables
        if table.table_id not in retained
    }
    for _ in range(len(identities.tables)):
        asked = {one.type for person in fresh for one in person}
        tables = [t for t in identities.tables if t.key in asked and t.table_id in retained]
        if not tables:
            break
        run.step("identity tables", len(tables), unit="tables")
        found: list[set[Identifier]] = [set() for _ in people]
        for table in tables:  # a handful: each is one job
            try:
                _ask(spark, catalogs, identities, retained[table.table_id], table, fresh, found)
            except Exception as error:
                missed.add(NotReachable(table.table_id, fault_of(error), failed=True))
            run.advance()
        fresh = [new - have.keys() for new, have in zip(found, known, strict=True)]
        for have, new in zip(known, fresh, strict=True):
            have |= dict.fromkeys(sorted(new, key=lambda one: (one.type, one.value)))
    return Resolved(tuple(tuple(person) for person in known), tuple(sorted(missed)))


def _ask(
    spark: SparkSession,
    catalogs: Mapping[str, Catalog],
    identities: Identities,
    retained: Retained,
    table: IdentityTable,
    people: Sequence[set[Identifier]],
    found: Sequence[set[Identifier]],
) -> None:
    """One job: whoever is known by the table's key, with all that the table gives."""
    from pyspark.sql import functions as F

    from ebbtide.spark.people import people_frame

    keys = [(key, str(n)) for n, person in enumerate(people) for key in sorted(_keys(person, table.key))]
    needles = people_frame(spark, keys, ("key", "person"))
    catalog = catalogs[retained.found.id.catalog]
    with ExitStack() as until:
        look = VersionLook(retained, catalog, spark, until)
        stored = load_versions(catalog.format).stored(look)
        if look.untold:
            raise LookupError(f"{len(look.untold)} versions cannot be read")
        frames = [_given(each.frame, identities, table) for each in stored]
        if not frames:
            return
        rows = reduce(lambda one, other: one.union(other), frames).join(F.broadcast(needles), "key")
        for row in rows.select("person", "given").distinct().collect():
            name, kind, text = row["given"].split(":", 2)
            if not is_nobody(value := _value(kind, text)):
                found[int(row["person"])].add(Identifier(name, value))


def _keys(person: set[Identifier], name: str) -> set[str]:
    return all_keys((one.type, one.value) for one in person if one.type == name)


def _given(frame: DataFrame, identities: Identities, table: IdentityTable) -> DataFrame:
    """Pairs of keys: one that the table knows a person by, and one that it gives."""
    from pyspark.sql import functions as F

    by = _listed(frame, identities, [(table.key, place) for place in table.by])
    given = _listed(frame, identities, table.gives.items())
    rows = frame.select(F.explode(by).alias("key"), given.alias("given"))
    return rows.select("key", F.explode("given").alias("given")).where("key IS NOT NULL AND given IS NOT NULL")


def _listed(frame: DataFrame, identities: Identities, places: Iterable[tuple[str, IdentityColumn]]) -> Column:
    """All keys of some columns of a row. A column that cannot be compared is an error: nobody is resolved by half."""
    from pyspark.sql import functions as F

    lists: list[Column] = []
    for name, place in places:
        found = column_keys(frame, place.column, name, identities.subjects[name].match)
        if found is None:
            raise LookupError("a column that it names is not there, or no value of its type can be compared")
        keys, is_list = found
        lists.append(F.coalesce(keys if is_list else F.array(keys), F.array().cast("array<string>")))
    return F.concat(*lists)


def _value(kind: str, text: str) -> str:
    """The canonical text of a key's value. Bytes are a UUID, or text; of others nothing could be looked for."""
    if kind == "t":
        return text
    plain = bytes.fromhex(text)
    if len(plain) == _UUID_BYTES:
        return str(UUID(bytes=plain))
    found = plain.decode(errors="replace")
    if found.isprintable() and found.encode() == plain:
        return found
    raise LookupError("bytes that are neither a UUID nor text")
