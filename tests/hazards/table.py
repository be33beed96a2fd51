"""The thirty ways in which cleaners have lost data, or said so falsely, and what shows that it does not happen here.

`docs/hazards.md` is written from this table (`make docs`), and `tests/model/test_hazards_table.py` keeps it whole.
"""

from __future__ import annotations

from tests.hazards.outcomes import SUCCESS, TIME
from tests.hazards.paths import PATHS
from tests.hazards.references import REFERENCES

GROUPS = (PATHS, REFERENCES, TIME, SUCCESS)
