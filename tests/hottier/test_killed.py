"""A run that dies anywhere loses no row and doubles none, and the next one finishes what it began (invariant 4)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide.acts import intents
from ebbtide.app import tier_table
from ebbtide.app.results.tier import exit_code
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier import gate, log, owner
from ebbtide.ledger.entries import Intent, Outcome
from tests.hottier.tier import NOW, POLICY, TABLE, Hot


class Killed(BaseException):
    """The process ends here: nothing below is cleaned up by it."""


def _before(*_: Any, **__: Any) -> Any:
    raise Killed


def _after(real: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **more: Any) -> Any:
        real(*args, **more)
        raise Killed

    return run


_PLACES: dict[str, tuple[Any, str, bool]] = {
    "before the seal": (tier_table, "seal", False),
    "before the mirror's commit": (ColdTable, "commit", False),
    "after the mirror's commit": (ColdTable, "commit", True),
    "before the slot moves": (log, "advance", False),
    "after the slot moved": (log, "advance", True),
    "before the digests": (gate, "compare", False),
    "before the intent": (intents, "begin", False),
    "after the intent": (intents, "begin", True),
    "before the fence": (owner, "fence", False),
    "behind the fence": (owner, "fence", True),
    "before the drop": (owner, "drop", False),
    "after the drop": (owner, "drop", True),
    "before the outcome": (intents, "finish", False),
    "after the outcome": (intents, "finish", True),
}


_ALWAYS = ("after the mirror's commit", "after the intent", "behind the fence", "after the drop")
"""The rest is part of the deep tier."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=() if place in _ALWAYS else pytest.mark.deep) for place in _PLACES]
)
def test_a_kill_neither_loses_nor_doubles_a_row(hot: Hot, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    hot.fill(1, 2).added()
    hot.fill(3)
    hot.sql.execute("UPDATE m SET v = 'changed' WHERE id = 1001")
    before = hot.here()
    where, name, after = _PLACES[place]
    # What the dying process would still do for its server is not done: a fence stays where it is.
    monkeypatch.setattr(owner, "unfence", lambda *_: None)
    monkeypatch.setattr(where, name, _after(getattr(where, name)) if after else _before)
    with pytest.raises(Killed):
        hot.run()
    monkeypatch.undo()
    hot.write(hot.policy)  # the environment is undone, too
    monkeypatch.setenv("XDG_STATE_HOME", str(hot.root / "state"))
    keys = [row[:2] for row in hot.in_lake()]
    assert len(keys) == len(set(keys))
    assert {row[:2] for row in before if row[1].day < 3} <= set(keys)
    result = hot.run()
    assert result.errors == ()
    assert hot.in_lake() == before
    assert not hot.chunks_here()
    assert hot.status().mirror == "STREAMING"
    assert {chunk.state for chunk in hot.status().chunks if chunk.name.startswith("m_") and "_p" not in chunk.name} == {
        "dropped"
    }
    with hot.tide as tide:
        entries = tide.ledger.entries()
    begun = {entry.says["act"] for entry in entries if entry.kind == Intent.KIND}
    assert begun == {entry.says["act"] for entry in entries if entry.kind == Outcome.KIND}


def test_a_log_that_is_told_again_brings_no_row_twice(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An immediate shutdown confirms a slot to less than it was."""
    hot.fill(1).added()
    hot.fill(2)
    before = hot.here()
    with monkeypatch.context() as patch:
        patch.setattr(log, "advance", lambda *_: None)
        hot.sync()
        hot.sync()
        assert hot.in_lake() == before
    hot.sync()
    assert hot.in_lake() == before


def test_a_log_that_is_told_again_loses_no_row_behind_it(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    """What describes a chunk's rows is told with the first of them, and once."""
    hot.fill(1).added()
    hot.fill(2)
    monkeypatch.setattr(log, "advance", lambda *_: None)
    hot.sync()
    hot.sql.execute("UPDATE m SET id = id + 500 WHERE id < 2010 AND id > 2000")
    hot.sync()
    assert hot.in_lake() == hot.here()


_SECRET = "v of somebody"


def _no_folder_to_write_into(lake: Path) -> str:
    shutil.rmtree(lake / "data")
    (lake / "data").write_text(_SECRET, encoding="utf-8")
    return "NotADirectoryError"


def _rows_that_nobody_can_read(lake: Path) -> str:
    for file in (lake / "data").rglob("*.parquet"):
        file.write_text(_SECRET * 10, encoding="utf-8")
    return "ArrowInvalid"


def _no_list_of_its_files(lake: Path) -> str:
    for file in (lake / "metadata").glob("*.avro"):
        file.unlink()
    return "FileNotFoundError"


@pytest.mark.parametrize(
    "broken",
    [
        _no_folder_to_write_into,
        pytest.param(_rows_that_nobody_can_read, marks=pytest.mark.deep),
        pytest.param(_no_list_of_its_files, marks=pytest.mark.deep),
    ],
)
def test_storage_of_one_table_that_fails_does_not_end_the_run_for_others(
    hot: Hot, broken: Callable[[Path], str]
) -> None:
    hot.write(POLICY + POLICY.replace("public.m", "public.k").replace("hot.m", "hot.k"))
    hot.sql.execute("CREATE TABLE k (LIKE m, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)")
    hot.sql.execute("CREATE TABLE k_1 PARTITION OF k FOR VALUES FROM ('2024-01-01+00') TO ('2024-01-02+00')")
    hot.fill(1).added()
    with hot.tide as tide:
        tide.tier.add("public.k")
        hot.sql.execute("INSERT INTO k VALUES (1, '2024-01-01 10:00+00', 'x', 1)")
        hot.sql.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00', 'x', 1)")
        hot.sql.execute("DELETE FROM m WHERE id = 1001")
        lake = hot.root / "lake" / "hot" / "m"
        shutil.copytree(lake, hot.root / "whole")
        kind = broken(lake)
        results = {result.table: result for result in tide.tier.run(as_of=NOW)}
        assert results["public.k"].dropped == ("k_1",)
        assert results["public.k"].errors == ()
        (said,) = results[TABLE].errors
        assert said.startswith(f"public.m or lake.hot.m: {kind}")
        assert _SECRET not in said
        assert "at_day" not in said
        assert (results[TABLE].dropped, exit_code(list(results.values()))) == ((), 4)
        shutil.rmtree(lake)
        shutil.copytree(hot.root / "whole", lake)
        assert tide.tier.run(TABLE, as_of=NOW)[0].dropped == ("m_1", "m_2", "m_3", "m_4")


def test_the_run_that_finishes_says_so_and_a_second_one_changes_nothing(hot: Hot) -> None:
    hot.fill(1, 2).added()
    with hot.tide as tide:
        first = tide.tier.run(TABLE, as_of=NOW)[0]
        size = len(tide.ledger.entries())
        second = tide.tier.run(TABLE, as_of=NOW)[0]
        assert len(tide.ledger.entries()) == size
    assert (len(first.dropped), second.dropped, second.tiered) == (4, (), ())
