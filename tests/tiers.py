"""What of a parametrised test belongs to which tier (see the Makefile)."""

from __future__ import annotations

from typing import Any

import pytest


def deep_after_first(*values: Any, first: int = 1) -> list[Any]:
    """Parameters of which `make test` runs the first, and `make test-deep` all others; a tuple is one set of them."""
    sets = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*each, marks=pytest.mark.deep if number >= first else ()) for number, each in enumerate(sets)]
