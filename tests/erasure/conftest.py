"""The planted tables, each built once, and what the oracle finds in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from tests.erasure.cells import PLACES, Variant
from tests.erasure.people import TYPES, WHO, Who, values_of
from tests.erasure.variants import build
from tests.erasure.variants.rows import Made
from tests.oracle.bytes_by_hand import cut, forms, where_values_are

_CATALOGS = {"iceberg": "lake", "delta": "events", "hudi": "cdc", "paimon": "stream"}
_BOUNDS = (16, 32)
Key = tuple[str, str, Who]
"""Place, type and who."""


@dataclass(frozen=True, slots=True)
class Known:
    """A planted table, and the files (with the layers) that hold each value: whole, or cut as bounds are."""

    made: Made
    whole: Mapping[Key, set[tuple[str, str]]]
    cut: Mapping[Key, set[tuple[str, str]]]
    hidden: frozenset[str]
    """Files whose names hold somebody's value."""


Know = Callable[[Variant], Known]


@pytest.fixture(scope="session")
def known(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> Know:
    """Builds a variant's table when it is first asked for."""
    done: dict[str, Known] = {}

    def of(variant: Variant) -> Known:
        if variant.id not in done:
            made = build(spark, catalogs[_CATALOGS[variant.format]], variant)
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
