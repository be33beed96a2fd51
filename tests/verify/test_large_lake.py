"""A lake of a million random rows, as files: nobody is found who is nowhere, and nothing is left open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from ebbtide.verify.search import Grade
from tests.verify.people import needle
from tests.verify.test_search import folder, run_search

ROWS = 1_000_000
IN_TEXT = 100_000
NOBODY = [needle("8841302", "bigint"), needle("8841302", person="p2"), needle("anna@x.de", person="p3")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers of seven to nine digits, among them those that end or begin like the one who is nowhere."""
    root = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(16)
    ids = rng.integers(1_000_000, 999_999_999, ROWS)
    ids[:220] = [*range(8841302 - 10, 8841302), *range(8841303, 8841313), *(n * 10**7 + 8841302 for n in range(1, 100)),
                 *(8841302 * 100 + n for n in range(100)), 88413020]  # fmt: skip
    rng.shuffle(ids)
    stamps = pa.array(rng.integers(0, 2**40, ROWS) * 1000).cast(pa.timestamp("us"))
    amounts = pa.array(rng.integers(10**6, 10**9, ROWS)).cast(pa.decimal128(30, 2))
    names = pa.array([f"{n}.johanna@x.dev" if n < 5000 else f"{n}@x.dev" for n in rng.integers(0, 10**6, ROWS)])
    table = pa.table({"at": stamps, "user_id": pa.array(ids), "amount": amounts, "email": names})
    table = table.append_column("seconds", stamps.cast(pa.time64("us")))
    for n in range(4):
        part = table.slice(n * ROWS // 4, ROWS // 4)
        (root / f"user_id={10 + n}8841302").mkdir()
        pq.write_table(part, root / f"user_id={10 + n}8841302" / "part.parquet", write_page_index=True)
    some = table.slice(0, IN_TEXT)
    pc.write_csv(some, root / "part.csv")
    lines = zip(
        some["at"].cast(pa.string()).to_pylist(), some["user_id"].to_pylist(), some["email"].to_pylist(), strict=True
    )
    text = "".join(f'{{"at": "{at}", "user_id": {number}, "who": "{name}"}}\n' for at, number, name in lines)
    (root / "part.json").write_text(text)
    return root


def test_a_lake_of_a_million_random_rows_holds_nobody_and_leaves_nothing_open(lake: Path) -> None:
    report = run_search(NOBODY, [folder(lake)])
    assert report.files == 6
    assert report.untold == ()
    assert report.found == ()


@pytest.mark.parametrize("number", [0, 1])
def test_one_of_a_million_is_found_in_every_file_that_has_them(lake: Path, number: int) -> None:
    there = pq.read_table(lake / "user_id=108841302" / "part.parquet")["user_id"][number].as_py()
    report = run_search([needle(str(there), "bigint")], [folder(lake)])
    assert report.grade("p1") == Grade.F
    assert {Path(each.path).suffix for each in report.found} == {".parquet", ".csv", ".json"}
