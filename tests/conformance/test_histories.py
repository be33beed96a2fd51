"""Branches, tags, staging and other turns that a history can take."""

from __future__ import annotations

import pytest

from ebbtide.formats.base import Depth
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Role
from ebbtide.model.history import RefKind, Transaction, TransactionKind
from tests.conformance.conftest import Bench
from tests.conformance.driver import Table
from tests.tiers import deep_after_first

DAY = "2026-01-01"


def changes(bench: Bench, table: Table) -> list[Transaction]:
    """The transactions that changed data, oldest first."""
    return [t for t in bench.read(table, Depth.HISTORY).transactions if t.kind is not TransactionKind.METADATA]


@pytest.mark.spark41
def test_the_worked_example_of_two_branches(bench: Bench) -> None:
    """spec §1: T1, T2 on both; main goes on with T3 SNAPSHOT and T4, xyz with T5."""
    bench.needs(Capability.BRANCHES)
    driver = bench.driver
    table = bench.create("worked")
    driver.append(table, [(1, "t1", DAY)])
    t1 = bench.newest(table)
    driver.append(table, [(2, "t2", DAY)])
    t2 = bench.newest(table)
    driver.create_branch(table, "xyz", t2)
    driver.append(table, [(5, "t5", DAY)], branch="xyz")
    driver.overwrite(table, [(3, "t3", DAY)])
    t3 = bench.newest(table)
    driver.append(table, [(4, "t4", DAY)])
    t4 = bench.newest(table)

    history = bench.history(table)
    branches = {view.ref.name: view for view in history.views if view.ref.kind is RefKind.BRANCH}
    t5 = branches["xyz"].ref.head
    assert t5 is not None
    assert branches["main"].line == (t1, t2, t3, t4)
    assert branches["xyz"].line == (t1, t2, t5)
    assert branches["main"].start == t3
    assert branches["main"].members == {t3, t4}
    assert branches["xyz"].start == t1
    assert branches["xyz"].members == {t1, t2, t5}
    assert history.latest_view() == {t1, t2, t3, t4, t5}
    assert history.branch_names() == {t1: ["main", "xyz"], t2: ["main", "xyz"], t3: ["main"], t4: ["main"], t5: ["xyz"]}
    assert [history.transactions[t].kind for t in (t1, t2, t3, t4, t5)] == [
        TransactionKind.APPEND, TransactionKind.APPEND, TransactionKind.SNAPSHOT, TransactionKind.APPEND,
        TransactionKind.APPEND,
    ]  # fmt: skip
    live = {f.first_transaction for f in bench.read(table).files if f.live and f.role is Role.DATA}
    assert live == {t1, t2, t3, t4, t5}
    assert len(driver.rows(table, branch="xyz")) == 3


def test_a_dropped_branch_leaves_its_transactions_to_nobody(bench: Bench) -> None:
    bench.needs(Capability.BRANCHES)
    driver = bench.driver
    table = bench.create("dropped")
    driver.append(table, [(1, "t1", DAY)])
    driver.create_branch(table, "xyz", bench.newest(table))
    driver.append(table, [(5, "t5", DAY)], branch="xyz")
    t5 = next(ref.head for ref in bench.read(table).refs if ref.name == "xyz")
    driver.drop_branch(table, "xyz")
    history = bench.history(table)
    assert [view.ref.name for view in history.views if view.ref.kind is RefKind.BRANCH] == ["main"]
    assert history.branch_names().get(str(t5), []) == []
    assert t5 not in history.latest_view()


@pytest.mark.spark41
def test_a_tag_pins_the_view_that_ends_at_it(bench: Bench) -> None:
    bench.needs(Capability.TAGS)
    driver = bench.driver
    table = bench.create("tagged")
    driver.append(table, [(1, "t1", DAY)])
    t1 = bench.newest(table)
    driver.overwrite(table, [(2, "t2", DAY)])
    t2 = bench.newest(table)
    driver.append(table, [(3, "t3", DAY)])
    before = bench.found(table)
    driver.create_tag(table, "eoy", t2)
    assert bench.found(table).token != before.token, "a tag alone must change the token"
    history = bench.history(table)
    (tag,) = [view for view in history.views if view.ref.kind is RefKind.TAG]
    assert tag.ref.head == t2
    assert tag.members == {t2}
    assert t1 not in tag.members
    assert history.view_refs()[t2] == ["branch:main", f"tag:{tag.ref.name}"]
    driver.drop_tag(table, tag.ref.name)
    assert all(ref.kind is RefKind.BRANCH for ref in bench.read(table).refs)


def test_a_table_without_a_commit_has_a_main_branch_and_no_data(bench: Bench) -> None:
    bench.needs(Capability.EMPTY_TABLE)
    table = bench.create("nothing")
    reading = bench.read(table)
    assert all(t.kind is TransactionKind.METADATA for t in reading.transactions)
    (main,) = reading.refs
    assert main.main
    assert main.head is None or reading.transactions
    assert [f for f in reading.files if f.role is Role.DATA] == []
    assert reading.partitions == ()
    assert [c.name for c in reading.columns if c.name in ("id", "name")] == ["id", "name"]


def test_a_table_that_was_emptied_references_its_past_and_shows_no_partition(bench: Bench) -> None:
    table = bench.create("emptied", partitioned=True)
    bench.driver.append(table, [(1, "a", DAY)])
    bench.driver.delete_all(table)
    reading = bench.read(table)
    data = [f for f in reading.files if f.role is Role.DATA]
    assert len(data) >= 1
    assert not any(f.live for f in data)
    assert reading.partitions == ()


def test_properties_are_read_and_change_the_token(bench: Bench) -> None:
    table = bench.create("labelled")
    bench.driver.append(table, [(1, "a", DAY)])
    before = bench.found(table)
    bench.driver.set_property(table, "ebbtide.labels", "TableContent.user_data")
    assert bench.read(table).properties["ebbtide.labels"] == "TableContent.user_data"
    assert bench.found(table).token != before.token


def test_a_new_column_is_seen_and_old_commits_stay_what_they_were(bench: Bench) -> None:
    bench.needs(Capability.SCHEMA_EVOLUTION)
    table = bench.create("evolved")
    bench.driver.append(table, [(1, "a", DAY)])
    before = changes(bench, table)
    bench.driver.add_column(table, "extra", "INT")
    assert "extra" in [c.name for c in bench.read(table).columns]
    assert changes(bench, table)[: len(before)] == before


def test_partitions_of_two_specs_are_told_apart(bench: Bench) -> None:
    bench.needs(Capability.PARTITION_EVOLUTION)
    table = bench.create("respecced", partitioned=True)
    bench.driver.append(table, [(1, "a", DAY), (2, "b", None)])
    bench.driver.add_partition_field(table)
    bench.driver.append(table, [(3, "c", DAY)])
    reading = bench.read(table)
    specs: dict[str, list[str]] = {}
    for partition in reading.partitions:
        specs.setdefault(partition.id.partition("/")[0], []).append(partition.id.partition("/")[2])
    assert len(specs) == 2
    old, new = sorted(specs.values(), key=len, reverse=True)
    assert sorted(old) == ["day=%00", f"day={DAY}"]
    assert new[0].startswith(f"day={DAY}/")
    assert {str(p.date) for p in reading.partitions if "%00" not in p.id} == {DAY}
    assert [p.date for p in reading.partitions if "%00" in p.id] == [None]


ODD_DAYS = ["2026-01-01", "20260102", "2026-03", None, "a/b=c", "ü %41 ", "2026-02-30", "x#y?z:'q'"]


def test_odd_partition_values_have_their_own_ids_and_make_the_date_a_doubt(bench: Bench) -> None:
    table = bench.create("odd_days", partitioned=True)
    days = [day for day in ODD_DAYS if day is not None or not (bench.format == "paimon" and bench.variant == "key")]
    bench.driver.append(table, [(n, "x", day) for n, day in enumerate(days)])
    reading = bench.read(table)
    assert len(reading.partitions) == len(days)
    assert reading.date_source.doubt == "not every value of day is a date"
    assert {p.date for p in reading.partitions} == {None}
    dated = {str(c.days[0]): str(c.days[1]) for p in reading.partitions for c in p.candidates if c.days is not None}
    assert dated == {"2026-01-01": "2026-01-01", "2026-01-02": "2026-01-02", "2026-03-01": "2026-03-31"}
    if None in days:
        assert [p.id.partition("/")[2] for p in reading.partitions if "%00" in p.id] == ["day=%00"]
    referenced = {f.partition: f.path for f in reading.files if f.role is Role.DATA}
    assert set(referenced) == {p.id for p in reading.partitions}
    from pathlib import Path

    from ebbtide.model.paths import local_path

    assert all(Path(local_path(path) or "").is_file() for path in referenced.values())


ODD_NAMES = ("with space", "per%cent", "per%20cent", "ünïcode", "dash-ed", "UPPER", "dot.ted")
ALL_AT_ONCE = " ".join(ODD_NAMES)
"""What one part of it would break, it breaks here; which part it was, the deep tier tells."""


@pytest.mark.parametrize("name", deep_after_first(ALL_AT_ONCE, *ODD_NAMES))
def test_odd_names_are_found_and_read(any_bench: Bench, name: str) -> None:
    bench = any_bench
    bench.needs(Capability.ODD_NAMES)
    table = bench.driver.create(name, variant=bench.variant, partitioned=False)
    bench.driver.append(table, [(1, "a", DAY)])
    reading = bench.read(table)
    assert reading.id.table == name
    assert str(reading.id).count(".") == 2
    assert len([f for f in reading.files if f.role is Role.DATA and f.live]) == 1


def test_a_rollback_keeps_what_was_rolled_back_known(bench: Bench) -> None:
    bench.needs(Capability.ROLLBACK)
    driver = bench.driver
    table = bench.create("rolled")
    driver.append(table, [(1, "a", DAY)])
    t1 = bench.newest(table)
    driver.overwrite(table, [(2, "b", DAY)])
    t2 = bench.newest(table)
    driver.rollback(table, t1)
    history = bench.history(table)
    assert [row.id for row in driver.rows(table)] == [1]
    files = {f.first_transaction: f for f in bench.read(table).files if f.role is Role.DATA}
    assert files[t1].live
    if t2 in history.transactions:
        assert not files[t2].live
    # Some formats move the head back, others commit a restore. That one starts no view, because its file is older.
    (main,) = [view for view in history.views if view.ref.main]
    assert main.ref.head == t1 or not history.transactions[str(main.ref.head)].starts_view


def test_a_replaced_table_starts_a_view(bench: Bench) -> None:
    bench.needs(Capability.REPLACE_TABLE)
    driver = bench.driver
    table = bench.create("replaced")
    driver.append(table, [(1, "a", DAY)])
    t1 = bench.newest(table)
    driver.replace(table, [(2, "b", DAY)])
    history = bench.history(table)
    assert t1 not in history.latest_view()
    assert t1 in history.transactions
    (main,) = [view for view in history.views if view.ref.main]
    assert main.start == main.ref.head


def test_a_staged_transaction_is_on_no_branch_and_known_as_staged(bench: Bench) -> None:
    bench.needs(Capability.STAGING)
    driver = bench.driver
    table = bench.create("staged")
    driver.append(table, [(1, "a", DAY)])
    staged = driver.stage(table, [(2, "b", DAY)])
    history = bench.history(table)
    assert history.transactions[staged].staged
    assert history.branch_names().get(staged, []) == []
    assert not any(f.live for f in bench.read(table).files if f.first_transaction == staged)


def test_a_cherry_picked_transaction_is_published_and_its_file_belongs_to_the_first(bench: Bench) -> None:
    bench.needs(Capability.STAGING, Capability.CHERRY_PICK)
    driver = bench.driver
    table = bench.create("picked")
    driver.append(table, [(1, "a", DAY)])
    staged = driver.stage(table, [(2, "b", DAY)])
    driver.append(table, [(3, "c", DAY)])
    driver.cherry_pick(table, staged)
    reading = bench.read(table)
    by_id = {t.id: t for t in reading.transactions}
    assert not by_id[staged].staged
    assert [row.id for row in driver.rows(table)] == [1, 2, 3]
    (file,) = [f for f in reading.files if f.role is Role.DATA and f.first_transaction == staged]
    assert file.live


def test_after_the_formats_own_cleanup_only_what_is_left_is_referenced(bench: Bench) -> None:
    from pathlib import Path

    from ebbtide.model.paths import local_path

    driver = bench.driver
    table = bench.create("expired")
    driver.append(table, [(1, "a", DAY)])
    driver.overwrite(table, [(2, "b", DAY)])
    driver.append(table, [(3, "c", DAY)])
    driver.expire(table)
    reading = bench.read(table)
    history = bench.history(table)
    (main,) = [view for view in history.views if view.ref.main]
    assert main.ref.head in history.transactions
    missing = {f.path for f in reading.files if f.live and not Path(local_path(f.path) or "").is_file()}
    assert missing == set()
    assert sorted(row.id for row in driver.rows(table)) == [2, 3]
    assert sum(f.rows or 0 for f in reading.files if f.live and f.role is Role.DATA) == 2
