"""Where the tests of hazards are, and two cells that several groups share."""

from __future__ import annotations

from tests.hazards.cells import Cannot, tested

HERE = "tests/conformance/test_hazards.py::test_"
SWEEP = "tests/conformance/test_sweep.py::test_"
ORPHANS = "tests/inventory/test_orphans.py::test_"
SCAN = "tests/inventory/test_scan.py::test_"
STORAGE = "tests/storage/test_remove.py::test_"
RULES = "tests/plan/test_rules.py::test_"
READ = {name: f"tests/formats/test_{name}_read.py::test_" for name in ("iceberg", "delta", "hudi", "paimon")}
REMOVE = {name: f"tests/formats/test_{name}_remove.py::test_" for name in ("iceberg", "delta", "hudi", "paimon")}

ELSEWHERE = tested(HERE + "a_table_that_says_its_files_lie_elsewhere_is_not_fully_known")
HUDI_IS_LOCKED = Cannot(
    "no file under a Hudi table is ever a candidate of a listing: only Hudi's own cleaner removes there",
    ".venv/bin/python -c \"from ebbtide.inventory.never import _WRITES; print('hudi' in _WRITES)\"",
    "False",
)
