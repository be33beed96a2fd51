"""What of a parametrised test belongs to which tier (see the Makefile)."""

from __future__ import annotations

from typing import Any

import pytest


def deep_after_first(*values: Any) -> list[Any]:
    """Parameters of which `make test` runs the first, and `make test-deep` all others."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.deep) for value in values[1:])]
