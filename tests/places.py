"""Where the suite's lakes lie: in folders that are no address, no pattern and no text with variables (hazard 31)."""

ODD = "läke ${x} [a]"
ODD_FOR_PAIMON = "läke"
"""Paimon's catalog for Spark writes to `a%20b` where its warehouse is called `a b` (docs/limits.md)."""
