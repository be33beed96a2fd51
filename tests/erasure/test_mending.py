"""What an erasure changed for a moment and died in is put back by the next run, whoever it is about."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.app.ledger import open_ledger
from ebbtide.formats.erasing import WAS
from ebbtide.state.values import RequestState
from tests.tide import Tide

SETTING = "deletedFileRetentionDuration"


def test_a_run_about_others_puts_a_setting_back(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "delta", policies="policies: []\n")
    (catalog,), driver = tide.catalogs, tide.drivers["delta"]
    table = driver.create("halfway")
    driver.append(table, [(1, "a", "2026-01-01")])
    given = f"'delta.{SETTING}' = 'interval 0 seconds', '{WAS}{SETTING}' = 'interval 3 days'"
    tide.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({given})")
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{catalog}.db.halfway.id]}}\n")
    tide.app.scan()
    request = tide.app.erase.request({"user": "5"}, law="gdpr").id or ""
    tide.app.erase.run(request, at_once=True, as_of=tide.at(1))
    rows = tide.spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()
    assert {row["key"]: row["value"] for row in rows if SETTING in row["key"]} == {
        f"delta.{SETTING}": "interval 3 days"
    }
    assert [row["id"] for row in driver.rows(table)] == [1]

    ledger = open_ledger(tide.project)
    with ledger.database.writer() as state:
        state.move_request(request, RequestState.WITHDRAWN, at=tide.at(1))
    ledger.database.close()
    tide.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({given})")
    tide.app.scan()
    assert tide.app.erase.run(as_of=tide.at(2)).exit_code == 0
    rows = tide.spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()
    assert [row["value"] for row in rows if SETTING in row["key"]] == ["interval 3 days"], "nobody asks any more"
