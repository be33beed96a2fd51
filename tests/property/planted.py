"""Files that nothing references, as writers leave them that died, or that are still at work: old and young."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow.parquet as pq

from tests.property.rows import rows_for

if TYPE_CHECKING:
    from tests.property.lake import RandomLake

_OLD = 5 * 86_400
"""Seconds: older than the guard age of the policy, and ages of such files are measured by the real clock."""
_NAMES = {
    "iceberg": ("data/{}.parquet", "metadata/{}-m0.avro"),
    "delta": ("part-00000-{}-c000.snappy.parquet",),
    "paimon": ("bucket-0/data-{}-0.parquet", "manifest/manifest-{}-0"),
}


@dataclass(frozen=True, slots=True)
class Planted:
    dataset: str
    path: Path
    old: bool


def plant(lake: RandomLake) -> list[Planted]:
    """An old file or a young one into every sixth folder of a table."""
    random, found = Random(f"{lake.seed}:planted"), []
    for format_, names in _NAMES.items():
        markers = {"iceberg": "*/*/metadata", "delta": "*/*/_delta_log", "paimon": "*.db/*/schema"}
        for marker in sorted(lake.warehouse(format_).glob(markers[format_])):
            if random.random() > 1 / 6:
                continue
            for old in random.choice(((True,), (False,), (True, False))):
                path = marker.parent / random.choice(names).format(uuid4())
                path.parent.mkdir(exist_ok=True)
                rows = rows_for(marker.parent.name, random)
                rows.next_id = 5_000_000
                pq.write_table(rows.table(1), path)  # whatever it is called: somebody may add it to a table yet
                if old:
                    past = time.time() - _OLD
                    os.utime(path, (past, past))
                found.append(Planted(f"{lake.names[format_]}.db.{marker.parent.name}", path, old))
    return found
