"""The lakes in which people are planted: one per format, with all of its variants."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from tests.erasure.cells import Variant
from tests.erasure.variants.rows import Made

FORMATS = ("iceberg", "delta", "hudi", "paimon")
QUICK = ("iceberg-v2_mor", "delta-plain")
"""What `make test` builds; all others are deep."""


def _of(format_: str) -> Any:
    return import_module(f"tests.erasure.variants.{format_}")


VARIANTS: tuple[Variant, ...] = tuple(variant for format_ in FORMATS for variant in _of(format_).VARIANTS)


def build(spark: SparkSession, catalog: Catalog, variant: Variant) -> Made:
    """Plant everybody in a new table of this kind."""
    made: Made = _of(variant.format).build(spark, catalog, variant)
    return made
