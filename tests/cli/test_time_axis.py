"""The bar of a hot table's chunks fits 80 columns, and never hides what asks for a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ebbtide.app.results.tier import Chunk
from ebbtide.cli.time_axis import WIDTH, axis, ends

_DAY = timedelta(days=1)
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)


def chunks(*states: str) -> list[Chunk]:
    return [Chunk(f"m_{n}", _FIRST + n * _DAY, _FIRST + (n + 1) * _DAY, state, ()) for n, state in enumerate(states)]


def test_each_chunk_has_a_place_as_long_as_there_are_enough() -> None:
    assert axis(chunks("dropped", "tiered", "active", "missing", "new")) == ".ta!?"


def test_many_chunks_share_places_and_the_one_that_asks_most_is_shown() -> None:
    states = ["dropped"] * 9_000 + ["tiered"] * 900 + ["active"] * 100
    states[4_321] = "missing"
    bar = axis(chunks(*states))
    assert (len(bar), bar.count("!"), bar[0], bar[-1]) == (WIDTH, 1, ".", "a")
    assert bar.index("!") == 4_321 * WIDTH // 10_000


def test_the_ends_are_below_the_bar_and_an_open_one_is_told() -> None:
    assert ends(chunks("active")) == "2024-01-01 00:00 2024-01-02 00:00"
    assert len(ends(chunks(*["active"] * 500))) == WIDTH
    open_ = Chunk("wide", None, None, "active", ())
    assert ends([open_]) == "… …"
