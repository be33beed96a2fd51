"""Chunks in `plan`, `explain` and `hold`: what the state knows of them, without a server (spec §2, §6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide import Ebbtide
from ebbtide.errors import InputError
from tests.hottier.tier import NOW, TABLE, Hot

FIRST = f"{TABLE}#chunks:m_1"
_PLAIN = "  - {name: public.m, time: at, chunk: 1d, drop_after: 10d, ahead: 1}\n"


def decided(tide: Ebbtide) -> dict[str, tuple[str, tuple[str, ...]]]:
    with tide.plan(as_of=NOW) as plan:
        return {each.object: (each.decision, each.waits_for) for each in plan.objects() if each.target == "chunks"}


def test_the_plan_says_of_chunks_what_the_run_does(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not proven, proven, held by either name, brought back: the plan, a dry run and the run agree, server or not."""
    hot.fill(1, 2, 3).added()
    with hot.tide as tide:
        tide.scan()
        days = [f"m_{n}" for n in range(1, 5)]
        gate = ("gate:it is not proven durable in the lake",)
        assert {name: decided(tide)[name] for name in days} == dict.fromkeys(days, ("wait", gate))
        hold = tide.hold("lake.hot.m", owner="counsel", reason="case")
        hot.run()  # proves all, and drops none
        assert {name: decided(tide)[name][0] for name in days} == dict.fromkeys(days, "held")
        assert hot.chunks_here() == set(days)
        assert hold.id is not None
        tide.release_hold(hold.id)
        assert {name for name, (decision, _) in decided(tide).items() if decision == "sweep"} == set(days)
        (would,) = tide.tier.run(TABLE, as_of=NOW, dry_run=True)
        assert set(would.would_drop) == set(days)

        # No server, and not even its address.
        hot.write(hot.policy)
        monkeypatch.delenv("EBBTIDE_HOT_URL")
        file = hot.root / "p.json"
        with tide.plan(as_of=NOW) as plan:
            plan.write(file)
            assert any("`ebbtide tier run` drops them" in warning for warning in plan.warnings)
            assert "chunks as the run of" in plan.scanned
            assert "tier" in str(plan.to_dict("target:chunks", "policy:hottier/m.yml", TABLE)["objects"][0]["policy"])
        saved = [row for row in json.loads(file.read_text(encoding="utf-8"))["objects"] if row["target"] == "chunks"]
        assert [row["object"] for row in saved if row["decision"] == "sweep"] == days
        assert tide.explain(FIRST, as_of=NOW).decision == "sweep"
        with pytest.raises(InputError, match="no chunk 'm_7'"):
            tide.explain(f"{TABLE}#chunks:m_7")
        with pytest.raises(InputError, match="has no mark"):
            tide.unmark(FIRST)
        monkeypatch.setenv("EBBTIDE_HOT_URL", hot.dsn)

        assert set(hot.run().dropped) == set(days)
        assert tide.explain(FIRST, as_of=NOW).planned is None
        assert "untier" in tide.explain(FIRST, as_of=NOW).policies[0].because
        tide.tier.untier(TABLE, "m_1")
        assert decided(tide)["m_1"][0] == "unmarked"


def test_a_hold_on_a_hot_table_keeps_its_cold_one_also_where_it_came_first(hot: Hot) -> None:
    """It was placed when the table had no cold one yet: both are kept, by what the files say now."""
    from ebbtide.app.world import read_state

    hot.write(_PLAIN)
    with hot.tide as tide:
        tide.hold(TABLE, owner="counsel", reason="case")
    hot.write(hot.policy)
    with hot.tide as tide:
        assert {hold.dataset for hold in read_state(tide.project).holds} == {TABLE, "lake.hot.m"}
    hot.fill(1).added()
    assert hot.run().dropped == ()


def test_a_policy_of_an_unsynced_table_is_told_and_a_bad_file_keeps_nobody_from_planning(hot: Hot) -> None:
    hot.fill(1).added()
    with hot.tide as tide:
        tide.scan()
        hot.write(hot.policy + "  - {name: public.n, time: at, chunk: 1d, drop_after: 9d, cold: lake.hot.n}\n")
        with tide.plan(as_of=NOW) as plan:
            assert any("public.n is not synced" in warning for warning in plan.warnings)
        Path(hot.root / "hottier" / "m.yml").write_text("server: [\n", encoding="utf-8")
        with tide.plan(as_of=NOW) as plan:
            assert any("no policy of a hot table is known" in warning for warning in plan.warnings)
            assert {each.decision for each in plan.objects() if each.target == "chunks"} == {"keep"}
