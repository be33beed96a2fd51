"""Files of ours as frames, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ebbtide.spark.frames import own_parquet


def test_each_of_several_files_is_read_once_whatever_its_folder_is_called(spark: SparkSession, tmp_path: Path) -> None:
    """Not as an address, not as a pattern, not as a text with variables (hazard 31)."""
    folder = tmp_path / "läke ${x} [a] {b} * ? \\ c%20d"
    folder.mkdir()
    (tmp_path / "läke ${x} a").mkdir()
    files = [folder / f"{n}.parquet" for n in range(3)]
    for n, file in enumerate(files):
        pq.write_table(pa.table({"n": [n]}), file)
    assert sorted(row["n"] for row in own_parquet(spark, *files).collect()) == [0, 1, 2]
