"""The thirty ways in which cleaners have lost data, or said so falsely, and what shows that it does not happen here.

`docs/hazards.md` is written from this table (`make docs`), and `tests/model/test_hazards_table.py` keeps it whole.
"""

from __future__ import annotations

from tests.hazards.cells import Group
from tests.hazards.found_here import HAZARDS
from tests.hazards.outcomes import SUCCESS, TIME
from tests.hazards.paths import PATHS
from tests.hazards.references import REFERENCES

FOUND_HERE = Group("Found here", HAZARDS)
GROUPS = (PATHS, REFERENCES, TIME, SUCCESS, FOUND_HERE)
