"""The plan's plain session: checks and reports see DataFrames, never a table format."""

from __future__ import annotations

from tests.plan.conftest import spark

__all__ = ["spark"]
