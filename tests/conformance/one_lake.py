"""Tests that share one lake per format, which the fixture `lake` of their module builds."""

from __future__ import annotations

import pytest

from ebbtide.spark.session import formats_of_session

ALL = ("iceberg", "delta", "paimon", "hudi")


def on(*formats: str) -> pytest.MarkDecorator:
    """Run a test on these formats, each in the one lake of its format."""
    return pytest.mark.parametrize(
        "lake",
        [pytest.param(format_, id=format_) for format_ in formats if format_ in formats_of_session()],
        indirect=True,
    )
