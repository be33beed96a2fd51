"""Erasure requests: filed, found, verified, certified (spec §4)."""
