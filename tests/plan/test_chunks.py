"""Chunks of hot tables are objects of the plan: the registry's facts, the ages of their file, holds on either tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.plan.build import build_plan
from ebbtide.plan.choice import Choice
from ebbtide.plan.explain import explain_chunk
from ebbtide.plan.summary import summarise
from ebbtide.plan.world import CHUNKS, Orders, World
from ebbtide.sweep.act_planning import decided as decided_for_acts
from tests.plan.worlds import NOW, world

HOT, COLD = "public.m", "lake.hot.m"
_DAY = 86_400_000_000


def chunk(name: str, ended: float, state: str = "tiered", **more: Any) -> dict[str, Any]:
    """A chunk of a day that ended so many days ago, of a table with tier_after 7d and drop_after 30d."""
    last = NOW - timedelta(days=ended)
    micros = int(last.timestamp() * 1_000_000)
    days = {"first_day": (last - timedelta(days=1)).date(), "last_day": (last - timedelta(microseconds=1)).date()}
    return {
        "table_id": HOT, "object_id": name, "cold": COLD, "rule": "hottier/m.yml", "state": state, "fingerprint": name,
        "rows": 5, "first_us": micros - _DAY, "last_us": micros, **days, "pinned": False, "shut": [], "people": [],
        "tier_months": 0, "tier_micros": 7 * _DAY, "tier_text": "7d",
        "drop_months": 0, "drop_micros": 30 * _DAY, "drop_text": "30d", **more,
    }  # fmt: skip


def made(*chunks: dict[str, Any], holds: Sequence[Sequence[object]] = (), limits: Limits | None = None) -> Any:
    tables: World = replace(world(), chunks=pa.Table.from_pylist(list(chunks), CHUNKS))
    return build_plan(PolicySet(()), tables, Orders.of(holds=holds), now=NOW, limits=limits)


def decided(*chunks: dict[str, Any], holds: Sequence[Sequence[object]] = ()) -> dict[str, tuple[str, str]]:
    with made(*chunks, holds=holds) as plan:
        return {row["object"]: (row["decision"], row["code"]) for row in plan.rows(codes=True)}


def test_a_chunk_goes_when_it_is_proven_and_its_end_is_strictly_older_than_drop_after() -> None:
    found = decided(
        chunk("now", 30), chunk("past", 30.0001), chunk("young", 3, "active"), chunk("to-prove", 8, "active")
    )
    assert found == {
        "now": ("keep", "tiered"), "past": ("sweep", "old"), "young": ("keep", "young"), "to-prove": ("keep", "young"),
    }  # fmt: skip


def test_a_chunk_waits_while_the_gate_is_shut_however_old_it_is() -> None:
    with made(chunk("a", 900, "active", shut=["gate:the mirror is DEGRADED (another server)"])) as plan:
        (row,) = plan.rows(codes=True)
    assert (row["decision"], row["waits_for"]) == ("wait", ["gate:the mirror is DEGRADED (another server)"])
    assert row["waits_for_codes"] == ["gate"]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"state": "missing"}, ("keep", "missing")),
        ({"rule": None}, ("keep", "no_policy")),
        ({"drop_text": None, "drop_months": None, "drop_micros": None}, ("keep", "no_policy")),
        ({"last_us": None, "last_day": None}, ("keep", "no_date")),
        ({"pinned": True}, ("unmarked", "rescued")),
        ({"people": ["hold:counsel (case)"]}, ("held", "hold")),
    ],
)
def test_what_is_not_known_or_asked_for_keeps_a_chunk(more: dict[str, Any], found: tuple[str, str]) -> None:
    assert decided(chunk("a", 900, **more)) == {"a": found}


@pytest.mark.parametrize("named", [HOT, COLD])
def test_a_hold_on_either_tier_keeps_the_chunks_that_it_covers(named: str) -> None:
    day = (NOW - timedelta(days=40)).date()
    held, free = chunk("held", 40 - 0.5), chunk("free", 60)
    whole = decided(held, free, holds=[(named, None, None, "counsel", "case")])
    assert whole == {"held": ("held", "hold"), "free": ("held", "hold")}
    some = decided(held, free, holds=[(named, day, None, "counsel", "case")])
    assert some == {"held": ("held", "hold"), "free": ("sweep", "old")}
    assert decided(held, holds=[("lake.hot.other", None, None, "counsel", "case")]) == {"held": ("sweep", "old")}
    # Nobody knows the days of what has an open end: any hold on its table keeps it.
    odd = chunk("odd", 40, first_us=None, first_day=None, last_day=None)
    assert decided(odd, holds=[(named, date(1990, 1, 1), date(1990, 1, 2), "counsel", "case")])["odd"][0] == "held"


def test_chunks_are_in_the_digest_and_count_for_no_limit() -> None:
    with (
        made(chunk("a", 31), limits=Limits(max_objects=0)) as one,
        made(chunk("a", 31, shut=["gate:it is not sealed"])) as other,
    ):
        assert one.digest != other.digest
        assert (one.counts["sweep"], one.over) == (1, ())
        (line,) = summarise(one, Choice.parse(["target:chunks", "policy:hottier/m.yml"], policies=one.graces))
        assert (line.policy, line.dataset, line.counts, line.rows, line.bytes) == (
            "hottier/m.yml", HOT, {"sweep": 1}, None, 0
        )  # fmt: skip


def test_explain_names_the_file_of_the_hot_table_as_the_owner() -> None:
    tables = replace(world(), chunks=pa.Table.from_pylist([chunk("a", 31), chunk("b", 1)], CHUNKS))
    found = explain_chunk(
        PolicySet(()), tables, Orders(), table=HOT, chunk="a", now=datetime(2026, 11, 15, 12, tzinfo=UTC)
    )
    assert found.planned is not None
    assert found.planned["decision"] == "sweep"
    assert [(c.policy, c.outcome) for c in found.considered] == [("hottier/m.yml", "owns")]


def test_no_mark_and_no_sweep_takes_a_chunk() -> None:
    with made(chunk("a", 31), chunk("b", 31, shut=["gate:it is not sealed"])) as plan:
        assert {row["decision"] for row in plan.rows()} == {"sweep", "wait"}
        assert decided_for_acts(plan, "sweep", "wait") == {}
