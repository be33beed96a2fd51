"""Runs of versions name exactly, or at least, the versions that reference a file."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ebbtide.inventory.spans import Spans
from ebbtide.model.dataset import FileRef, Reading, Role
from ebbtide.model.history import Ref, RefKind, Transaction, TransactionKind, build_history
from ebbtide.model.ids import DatasetId

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reading(parents: list[int | None], heads: dict[str, int]) -> Reading:
    transactions = tuple(
        Transaction(str(n), None if p is None else str(p), TransactionKind.APPEND, NOW, False)
        for n, p in enumerate(parents)
    )
    refs = tuple(Ref(name, RefKind.BRANCH, str(head), name == "main") for name, head in heads.items())
    return Reading(DatasetId("c", ("n",), "t"), "iceberg", "file:///t", {}, (), refs, transactions)


def spans(made: Reading) -> Spans:
    return Spans(made, build_history(made.transactions, made.refs))


def named(found: Spans, file: FileRef) -> set[str]:
    """The ids that a file's runs name."""
    back = {position: id_ for id_, position in found.positions.items()}
    return {back[p] for run in found.of(file) for p in range(run["first"], run["last"] + 1)}


@st.composite
def histories(draw: st.DrawFn) -> Reading:
    size = draw(st.integers(1, 12))
    parents: list[int | None] = [None]
    parents += [draw(st.one_of(st.none(), st.integers(0, n - 1))) for n in range(1, size)]
    heads = {"main": draw(st.integers(0, size - 1))}
    heads |= {f"b{n}": draw(st.integers(0, size - 1)) for n in range(draw(st.integers(0, 3)))}
    return reading(parents, heads)


@given(histories(), st.data())
def test_runs_name_exactly_the_versions_of_the_mask(made: Reading, data: st.DataObject) -> None:
    mask = data.draw(st.integers(0, 2 ** len(made.transactions) - 1))
    found = spans(made)
    assert sorted(found.positions.values()) == list(range(len(made.transactions)))
    file = FileRef("file:///f", Role.DATA, 1, None, False, versions=mask)
    assert named(found, file) == {t.id for n, t in enumerate(made.transactions) if mask >> n & 1}


@given(histories())
def test_the_main_branch_is_one_run(made: Reading) -> None:
    line = build_history(made.transactions, made.refs).views[0].line
    positions = [spans(made).positions[id_] for id_ in line]
    assert positions == list(range(len(line)))


def test_without_a_mask_a_single_line_is_cut_where_the_file_came_and_went() -> None:
    found = spans(reading([None, 0, 1, 2, 3], {"main": 4}))
    dead = FileRef("file:///f", Role.DATA, 1, "1", False, removed_by=("3",))
    assert named(found, dead) == {"1", "2"}
    live_again = FileRef("file:///f", Role.DATA, 1, "1", True, removed_by=("3",))
    assert named(found, live_again) == {"1", "2", "3", "4"}
    of_unknown_origin = FileRef("file:///f", Role.DATA, 1, None, False, removed_by=("3",))
    assert named(found, of_unknown_origin) == {"0", "1", "2"}


def test_without_a_mask_and_with_branches_every_version_is_named() -> None:
    found = spans(reading([None, 0, 0], {"main": 1, "b": 2}))
    assert named(found, FileRef("file:///f", Role.DATA, 1, "1", True)) == {"0", "1", "2"}


def test_log_files_belong_to_no_version() -> None:
    found = spans(reading([None, 0], {"main": 1}))
    assert found.of(FileRef("file:///f", Role.LOG, 1, "1", True)) == []
