"""The planted tables, each built once: a lake per format. What the oracle finds in them, what the search finds, and
what is left when everybody was erased from them, in this order: an erasure begins when all was searched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pytest
from pyspark.sql import SparkSession

from ebbtide.formats.base import supports
from ebbtide.formats.reading import load_reader
from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.run import RunContext
from ebbtide.verify.report import SearchReport
from ebbtide.verify.search import Needle, SearchPlace, search
from tests.erasure.cells import PLACES, Variant
from tests.erasure.erased import Erased, erase_all
from tests.erasure.people import TYPES, WHO, Who, values_of
from tests.erasure.variants import build
from tests.erasure.variants.rows import Made
from tests.oracle.bytes_by_hand import cut, forms, where_values_are
from tests.tide import Tide

PATH_KEY = b"a key for paths, of this test alone"
_SQL_TYPES = {"text": {"string"}, "bigint": {"bigint"}, "decimal": {"decimal(20,0)"}, "uuid": {"string"}}
_BOUNDS = (16, 32)
Key = tuple[str, str, Who]
"""Place, type and who."""


@dataclass(frozen=True)
class Known:
    """A planted table, and the files (with the layers) that hold each value: whole, or cut as bounds are."""

    made: Made
    whole: Mapping[Key, set[tuple[str, str]]]
    cut: Mapping[Key, set[tuple[str, str]]]
    hidden: frozenset[str]
    """Files whose names hold somebody's value."""

    @cached_property
    def rows(self) -> Mapping[str, list[str]]:
        """What its head, branches, tags and versions read; asked for before anybody is erased."""
        return self.made.rows()


Know = Callable[[Variant], Known]
Searched = Callable[[Variant], SearchReport]


@pytest.fixture(scope="session")
def planted_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tide]:
    """A project of its own for the planted tables of each format."""
    done: dict[str, Tide] = {}

    def of(format_: str) -> Tide:
        if format_ not in done:
            root = tmp_path_factory.mktemp(f"planted_{format_}")
            # delta-rs, which writes into these tables at last, ends where a folder has brackets in its name.
            plainly = ("paimon", "delta")
            done[format_] = Tide(spark, root, format_, policies="policies: []\n", plainly=plainly)
        return done[format_]

    return of


@pytest.fixture(scope="session")
def known(planted_lake: Callable[[str], Tide]) -> Know:
    """Builds a variant's table when it is first asked for."""
    done: dict[str, Known] = {}

    def of(variant: Variant) -> Known:
        if variant.id not in done:
            tide = planted_lake(variant.format)
            (catalog,) = tide.catalogs.values()
            made = build(tide.spark, catalog, variant)
            values = {
                (place, type_, who): getattr(values_of(variant.id, place, who), type_)
                for place in PLACES
                for type_ in TYPES
                for who in WHO
            }
            whole = {("whole", *key): forms(value) for key, value in values.items()}
            short = {("cut", *key): [f for n in _BOUNDS for f in cut(value, n)] for key, value in values.items()}
            found = where_values_are(made.location, whole | short)
            there = {kind: {key: found[kind, *key] for key in values} for kind in ("whole", "cut")}
            named = {path for each in found.values() for path, layer in each if layer == "name"}
            done[variant.id] = Known(made, there["whole"], there["cut"], frozenset(named))
        return done[variant.id]

    return of


@pytest.fixture(scope="session")
def searched(planted_lake: Callable[[str], Tide], known: Know) -> Searched:
    """One search for everybody, and for the ghosts of everybody, in a variant's table."""
    done: dict[str, SearchReport] = {}

    def of(variant: Variant) -> SearchReport:
        if variant.id not in done:
            made, spark = known(variant).made, planted_lake(variant.format).spark
            handle = handle_of(made.catalog, variant)
            place = SearchPlace(variant.id, str(made.location), dataset=(made.catalog, handle))
            needles = [
                _needle(variant, place_, type_, who)
                for place_ in PLACES
                for type_ in variant.planted(place_)
                for who in ("person", "ghost")
            ]
            done[variant.id] = search(needles, [place], spark=lambda: spark, run=RunContext("t"), path_key=PATH_KEY)
        return done[variant.id]

    return of


def handle_of(catalog: Catalog, variant: Variant) -> TableHandle:
    """The table of a variant as its catalog lists it."""
    found = [each for each in load_reader(catalog.format).discover(catalog) if isinstance(each, TableHandle)]
    return next(each for each in found if each.id.table == f"planted_{variant.name}")


def person_of(place: str, type_: str, who: Who = "person") -> str:
    """What a search calls whoever is planted there."""
    return f"{place}/{type_}/{who}"


def _needle(variant: Variant, place: str, type_: str, who: Who) -> Needle:
    types = _SQL_TYPES[type_] | ({"binary"} if variant.binary_uuid and type_ == "uuid" else set())
    value = values_of(variant.id, place, who).canonical(type_)
    return Needle(person_of(place, type_, who), f"c_{type_}", value, frozenset(types))


@pytest.fixture(scope="session")
def erased(
    request: pytest.FixtureRequest, planted_lake: Callable[[str], Tide], known: Know, searched: Searched
) -> Callable[[Variant], Erased]:
    """One erasure of everybody, in all tables of a format that tests of this run ask for."""
    done: dict[str, Erased] = {}
    asked = {
        variant.id: variant
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        for variant in item.callspec.params.values()
        if isinstance(variant, Variant)
    }

    def of(variant: Variant) -> Erased:
        can = supports(load_format(variant.format), Capability.REWRITES_FILES)
        if not can:
            pytest.skip(f"{variant.format}: {can.reason}")
        if variant.id not in done:
            variants = [each for each in asked.values() if each.format == variant.format]
            for each in variants:
                searched(each)
                assert known(each).rows
            tables = {each.id: known(each).made for each in variants}
            done.update(erase_all(planted_lake(variant.format), tables))
        return done[variant.id]

    return of
