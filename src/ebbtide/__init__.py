"""Retention, tiering and provable erasure for the lakehouse.

from ebbtide import Ebbtide

tide = Ebbtide("ebbtide.yml")
tide.scan()
tide.history("lake.raw.payments")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebbtide.app.ebbtide import Ebbtide

__all__ = ["Ebbtide"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: `ebbtide ledger check` must not pay for Spark.
    if name == "Ebbtide":
        from ebbtide.app.ebbtide import Ebbtide

        return Ebbtide
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
