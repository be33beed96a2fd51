"""What is said of what an earlier act left: swept only where nothing of it may be left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from ebbtide.acts.act import ActResult, NamedFile
from ebbtide.acts.references import UNREAD
from ebbtide.ledger.entries import Intent
from ebbtide.model.dataset import Catalog
from ebbtide.model.reasons import Code, Reason
from ebbtide.state.values import Mark, MarkState, ObjectKey
from ebbtide.sweep import leftover
from ebbtide.sweep.act_planning import act_of
from ebbtide.sweep.outcomes import results_in
from ebbtide.sweep.values import ExpiringObject, ObjectBatch

AT = datetime(2026, 1, 1, tzinfo=UTC)
VERSION = Reason("version:7", Code.REFERENCED)
FILES = (NamedFile("file:///a", 1), NamedFile("file:///b", 1))


def _mark(target: str) -> Mark:
    return Mark(
        id="m", key=ObjectKey("c.db.t", target, "1"), policy="p", because="old", fingerprint="f", frozen=None,
        files=None, rows=0, bytes=2, run="r", marked_at=AT, grace_until=AT, state=MarkState.SWEEPING, waits_for=(),
        closed_at=None, closed_because=None, salt=b"s" * 32, act="act-1",
    )  # fmt: skip


def _state(
    target: str, *, there: set[str], needed: dict[str, Reason], act: str | None = "act-1", **settings: Any
) -> str:
    nobody: Any = None
    mark = replace(_mark(target), act=act)
    going = ExpiringObject(mark.key, {"drops_from": ()}, mark, FILES)
    catalog = Catalog("c", "iceberg", "/")
    left = ObjectBatch(id="act-2", dataset="c.db.t", catalog=catalog, objects=(going,), leftover=True, **settings)
    ended = ActResult(act=act_of(left, {}, None), there=frozenset(there), needed=needed)
    (result,) = results_in(left, ended, nobody, nobody)
    return result.state


@pytest.mark.parametrize(
    ("there", "needed", "transactions", "versions"),
    [
        (set(), {}, "swept", "swept"),
        ({"file:///a"}, {}, "failed", "failed"),
        ({"file:///a"}, {"file:///a": UNREAD}, "waiting", "waiting"),
        # A tag came in between: a file that a retained version references is that version's, but a transaction's too.
        ({"file:///a"}, {"file:///a": VERSION}, "waiting", "swept"),
        (set(), {"file:///a": VERSION}, "swept", "swept"),
    ],
)
def test_what_is_left_is_not_called_swept(
    there: set[str], needed: dict[str, Reason], transactions: str, versions: str
) -> None:
    assert _state("transactions", there=there, needed=needed) == transactions
    assert _state("partitions", there=there, needed=needed) == transactions
    assert _state("versions", there=there, needed=needed) == versions


def test_what_no_act_of_ours_took_was_taken_by_someone_else() -> None:
    assert _state("transactions", there=set(), needed={}, act=None) == "unmarked"


def test_what_went_with_its_own_version_was_not_taken_by_someone_else() -> None:
    """Unless somebody has its files by now: then it was not deleted, by whomever."""
    settings: dict[str, Any] = {"there": set(), "needed": {}, "act": None}
    assert _state("transactions", **settings, went_as_versions={"1": ()}) == "swept"
    assert _state("transactions", **settings, went_as_versions={"1": ("7",)}) == "unmarked"
    assert _state("transactions", **settings, called_now="c.db.other") == "unmarked"


def test_what_was_removed_of_a_table_is_swept_though_another_table_had_its_name_before() -> None:
    """A swap of two names leaves the dataset with a former self for ever: what came since is not that one's."""
    renamed: dict[str, Any] = {"there": set(), "needed": {}, "called_now": "c.db.other"}
    assert _state("partitions", **renamed) == "unmarked"
    assert _state("partitions", **renamed, took_its_name=True) == "swept"
    assert _state("partitions", **renamed, took_its_name=True, act=None) == "unmarked"


def test_what_is_left_of_thousands_of_marks_is_written_down_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of the ledger has its size: one that names too many marks would end every sweep of the project."""
    marks = [
        replace(_mark("versions"), id=f"m{n:032}", key=ObjectKey("c.db.t", "versions", str(n)), act=f"act-{n % 2}")
        for n in range(2000)
    ]
    named = {"act-0": {"file:///a": 1}, "act-1": {"file:///b": 1}}
    monkeypatch.setattr(leftover, "files_of_act", lambda _, acts: {act: named[act] for act in acts})
    monkeypatch.setattr(leftover, "failed_acts", lambda *_: set())
    nobody: Any = None
    empty: Any = SimpleNamespace(current=SimpleNamespace(entries={}, former=()))
    acts = list(leftover.leftovers(nobody, marks, {"c": Catalog("c", "iceberg", "/")}, empty))
    assert len(acts) == 4
    assert {going.mark for act in acts for going in act.objects} == set(marks)
    for act in acts:
        ids = tuple(going.mark.id for going in act.objects if going.mark)
        assert Intent(at=AT, act=act.id, verb="sweep", marks=ids).encode()
        assert len(act_of(act, {}, None).paths) == 1
