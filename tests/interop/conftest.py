"""These tests need Go, so they run only where they are asked for by their folder: `make test-interop`."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder out of `pytest` and `pytest tests`; with it named, nothing is left out or skipped."""
    asked = any("interop" in argument for argument in config.args)
    return None if asked else True
