"""A run that dies anywhere loses no row and doubles none, and the next one finishes what it began (invariant 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ebbtide.acts import intents
from ebbtide.app import tier as tier_app
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier import gate, log, owner
from ebbtide.ledger.entries import Intent, Outcome
from tests.hottier.tier import NOW, TABLE, Hot


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
    "before the seal": (tier_app, "seal", False),
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


def test_the_run_that_finishes_says_so_and_a_second_one_changes_nothing(hot: Hot) -> None:
    hot.fill(1, 2).added()
    with hot.tide as tide:
        first = tide.tier.run(TABLE, as_of=NOW)[0]
        size = len(tide.ledger.entries())
        second = tide.tier.run(TABLE, as_of=NOW)[0]
        assert len(tide.ledger.entries()) == size
    assert (len(first.dropped), second.dropped, second.tiered) == (4, (), ())
