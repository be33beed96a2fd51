"""A sweep in a session in which nobody has used the catalog yet, as a nightly job's is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from tests.tide import Tide

POLICIES = """
policies:
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d, keep_min: 1}}
"""


def test_several_datasets_are_swept_at_once_though_the_catalog_was_never_loaded(
    spark: SparkSession, tmp_path: Path
) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=POLICIES)
    (name,) = tide.catalogs
    lake = SqlCatalog(name, uri=f"sqlite:///{tide.root}/catalog-{name}.db", warehouse=f"file://{tide.root}/{name}")
    lake.create_namespace("db")
    rows = pa.table({"id": [1, 2]})
    for table in ("a", "b", "c"):
        made = lake.create_table(("db", table), rows.schema)
        made.append(rows)
        made.overwrite(rows)
    assert len(tide.mark(40).marked) >= 3
    swept = tide.sweep(48)
    assert not swept.errors
    assert {result.state for result in swept.results} == {"swept"}
    for table in ("a", "b", "c"):
        assert sorted(lake.load_table(("db", table)).scan().to_arrow()["id"].to_pylist()) == [1, 2]
