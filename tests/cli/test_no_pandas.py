"""Commands go without pandas until something needs it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import sys
from datetime import datetime, UTC
from ebbtide.no_pandas import hide_pandas, show_pandas
hide_pandas()
import pyarrow as pa
at = datetime(2026, 3, 29, 1, 30, 0, 123456, UTC)
before = pa.array([at, None], pa.timestamp("us", tz="UTC")).to_pylist()
assert "pandas" not in sys.modules
show_pandas()
import pandas as pd
assert pa.array([at, None], pa.timestamp("us", tz="UTC")).to_pylist() == before == [at, None]
# As pandas', not as a list: a hole in a column of numbers is no number there.
assert pa.array(pd.Series([1.0, None])).null_count == 1
assert pa.table(pd.DataFrame({"n": [1]})).column_names == ["n"]
hide_pandas()
import pandas
"""


def test_pyarrow_knows_pandas_again_once_something_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
