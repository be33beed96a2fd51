"""Leaves that were recorded once have the same bytes ever after: every proof and certificate rests on them."""

from __future__ import annotations

from pathlib import Path

from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.leaf import read_body
from tests.ledger.samples import ALL

RECORDED = (Path(__file__).parent / "recorded_leaves.jsonl").read_bytes().splitlines()
"""Of every kind, the first ones of 18 November 2026, when acts had an engine of their own; the code before it
(`2f002d6^`) writes the same bytes of each kind that it knows. Lines are added, and never changed.
"""


def test_every_kind_is_written_as_it_was_recorded() -> None:
    assert [entry.KIND for entry in ALL if entry.encode() not in RECORDED] == [], "a new kind: add its leaf at the end"
    assert {read_body(leaf)["kind"] for leaf in RECORDED} == {entry.KIND for entry in ALL}


def test_what_was_recorded_is_read_and_written_again_byte_for_byte() -> None:
    assert [parse_entry(leaf).encode() for leaf in RECORDED] == RECORDED
