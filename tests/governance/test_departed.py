"""Who left and is still in a table: counted, filed as requests, withdrawn when they come back. Nobody is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ebbtide.app.ledger import open_ledger
from ebbtide.config.subjects import IdentityColumn, load_subjects
from ebbtide.erasure.leavers import file_and_withdraw, open_requests, pending_until
from ebbtide.errors import EbbtideError, InputError, RefusedError, UnreadableError
from ebbtide.governance.carriers import Carriers
from ebbtide.governance.departed import Departed, Leaver, departed
from ebbtide.ledger.entries import parse_entry
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.request_entries import RequestBatch, RequestMoved, RequestReceived
from ebbtide.ledger.request_index import leaves_of
from ebbtide.model.durations import Duration
from ebbtide.spark.session import session
from ebbtide.state.values import RequestState
from tests.governance.projects import NOW, SmallProject

SUBJECTS = """\
subjects:
  user_id:
    columns: [people.app.users.user_id]
    left_at: people.app.users.left_at
    gone_within: 90d
"""
# Days since each person left; None is still here. The number is part of the id, and no other text holds it.
LEFT = {1: None, 2: 200, 3: 60, 4: 5, 5: 91, 6: -3, 7: 90}
BASE = 884130200000
FILES = {
    "subjects.yml": SUBJECTS,
    "lineage/people.app.events.sql": "SELECT CAST(user_id AS STRING) AS uid, name FROM people.app.users",
    "lineage/view.sql": "CREATE VIEW people.app.seen AS SELECT uid FROM people.app.events",
    "lineage/people.app.mart.sql": "SELECT uid AS person, count(*) AS n FROM people.app.seen GROUP BY uid",
    "lineage/people.app.hashed.sql": "SELECT md5(uid) AS pseudonym FROM people.app.events",
    "lineage/people.app.totals.sql": "SELECT count(*) AS n FROM people.app.mart",
}
AS_OF = NOW.isoformat()


def users(left: dict[int, int | None]) -> pa.Table:
    days = [None if ago is None else (NOW - timedelta(days=ago)).date() for ago in left.values()]
    return pa.table(
        {
            "user_id": pa.array([BASE + n for n in left], pa.int64()),
            "left_at": pa.array(days, pa.date32()),
            "name": [f"name{n}" for n in left],
        }
    )


def make(root: Path) -> SmallProject:
    project = SmallProject.make(root, "people", more="clock: simulated\n")
    project.write(FILES)
    # Somebody who left and then came back has an old row and a new one.
    project.table("users", pa.concat_tables([users(LEFT), users({8: 300}), users({8: None})]))
    present = {"events": [1, 2, 3, 3, 4, 6, 7, 8], "mart": [2, 7, 8]}
    project.table("events", pa.table({"uid": [str(BASE + n) for n in present["events"]], "name": ["x"] * 8}))
    project.table("mart", pa.table({"person": [str(BASE + n) for n in present["mart"]], "n": [1, 1, 1]}))
    project.table("hashed", pa.table({"pseudonym": ["0cc175b9"]}))
    project.table("totals", pa.table({"n": [3]}))
    project.tide.scan()
    return project


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallProject:
    return make(tmp_path_factory.mktemp("people"))


@pytest.fixture
def project(shared: SmallProject) -> Iterator[SmallProject]:
    """The tables of all tests, with a state that is empty before each."""
    yield shared
    catalog = shared.catalog
    catalog.load_table(("app", "users")).overwrite(pa.concat_tables([users(LEFT), users({8: 300}), users({8: None})]))
    for path in sorted((shared.root / ".ebbtide").rglob("*"), reverse=True):
        if path.is_file() and "inventory" not in path.parts:
            path.unlink()


@pytest.fixture(autouse=True)
def _own_state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger keeps its last checkpoint outside of the project."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))


def run(project: SmallProject, *options: str, exit_code: int = 1) -> dict[str, Any]:
    done = project.run("departed", "--json", "--as-of", AS_OF, *options)
    assert done.exit_code == exit_code, done.output + repr(done.exception)
    assert str(BASE)[:9] not in done.output
    (subject,) = json.loads(done.stdout)["subjects"]
    return dict(subject)


def requests(ledger: Ledger) -> dict[str, RequestState]:
    subject = load_subjects(ledger.home.keys.path.parent.parent)["user_id"]
    with ledger.database.reader() as state:
        found = open_requests(state, ledger.home, subject)
    return {str(int(value) - BASE): request.state for value, request in found.items()}


def test_the_report_counts_people_per_place_and_names_what_it_cannot_look_at(project: SmallProject) -> None:
    found = run(project)
    counts = {
        (row["table_id"], row["column"], row["how"]): (row["departed"], row["overdue"]) for row in found["places"]
    }
    assert counts == {
        # 90 days are not over on the ninetieth; six leaves in three days, eight came back.
        ("people.app.users", "user_id", "own"): (5, 2),
        ("people.app.events", "uid", "lineage"): (4, 1),
        ("people.app.mart", "person", "lineage"): (2, 1),
    }
    assert [one["place"] for one in found["unread"]] == ["people.app.hashed.pseudonym"]
    assert {row["earliest_due"] for row in found["places"]} == {str((NOW - timedelta(days=110)).date())}
    assert not (project.root / ".ebbtide" / "state.db").exists()
    people = project.run("departed", "--as-of", AS_OF)
    assert "people.app.mart" in people.stdout
    early = project.run("departed", "--as-of", "2020-01-01", "--json")
    assert early.exit_code == 0


def test_requests_are_filed_once_sealed_and_in_the_ledger(project: SmallProject) -> None:
    dry = run(project, "--file", "--dry-run")
    assert (dry["filed"], dry["withdrawn"]) == (4, 0)
    assert not (project.root / ".ebbtide" / "state.db").exists()
    first = run(project, "--file")
    # Whom a request must reach in time: notice and erasure take 42 days, so four, who left five days ago, can wait.
    assert first["filed"] == 4
    ledger = open_ledger(project.tide.project)
    assert requests(ledger) == dict.fromkeys("2357", RequestState.RECEIVED)
    with ledger.database.reader() as state:
        filed = state.requests()
    assert {request.law for request in filed} == {"promise"}
    assert {request.received_at for request in filed} == {NOW}
    assert min(request.due_at for request in filed).date() == (NOW - timedelta(days=110)).date()
    subject = load_subjects(project.root)["user_id"]
    assert pending_until(filed[0], subject) == NOW + timedelta(days=14)
    with ledger.database.reader() as state:
        (batch,) = [
            n for n, _, body in LedgerLog(state.connection).rows(0) if body and RequestBatch.KIND.encode() in body
        ]
        entries = [parse_entry(leaf.leaf or b"") for leaf in leaves_of(state.connection, batch)]
    received = [entry for entry in entries if isinstance(entry, RequestReceived)]
    assert {entry.request for entry in received} == {request.id for request in filed} == set(first["requests"])
    assert all(entry.simulated for entry in received)
    for path in (project.root / ".ebbtide").rglob("*"):
        if path.is_file() and "inventory" not in path.parts:
            assert str(BASE)[:9].encode() not in path.read_bytes(), path
    again = run(project, "--file")
    assert (again["filed"], again["withdrawn"]) == (0, 0)
    with ledger.database.reader() as state:
        assert len(state.requests()) == 4


def test_a_request_is_withdrawn_when_the_person_comes_back_and_filed_anew_when_they_leave(
    project: SmallProject,
) -> None:
    run(project, "--file")
    table = project.catalog.load_table(("app", "users"))
    table.overwrite(users({**LEFT, 3: None, 2: -1}))
    assert run(project, "--file", "--dry-run")["withdrawn"] == 2
    back = run(project, "--file")
    assert (back["filed"], back["withdrawn"]) == (0, 2)
    ledger = open_ledger(project.tide.project)
    assert requests(ledger) == dict.fromkeys("57", RequestState.RECEIVED)
    with ledger.database.reader() as state:
        ended = [request for request in state.requests() if request.state is RequestState.WITHDRAWN]
    assert len(ended) == 2
    assert all(request.sealed is None and request.note == "" for request in ended)
    assert {request.key_slot for request in ended} == {None}
    with ledger.reading() as log:
        moved = [e for n in range(log.size) if isinstance(e := parse_entry(log.leaf(n)), RequestMoved)]
    assert {entry.request for entry in moved} == {request.id for request in ended}
    ledger.home.keys.create_sealing(ended[0].id)  # as if the process had died before it destroyed the key
    # Whose row is gone from the users table has not come back.
    table.overwrite(users({**{n: ago for n, ago in LEFT.items() if n != 5}, 3: 70, 2: -1}))
    later = run(project, "--file", exit_code=0)
    assert (later["filed"], later["withdrawn"]) == (1, 0)
    assert requests(ledger) == dict.fromkeys("357", RequestState.RECEIVED)
    assert ended[0].id not in ledger.home.keys.names()


def test_where_partitions_age_out_only_the_overdue_need_a_request(project: SmallProject, spark: SparkSession) -> None:
    tide = project.tide.project
    session(tide.catalogs.values(), master="local[1]")
    subject = load_subjects(project.root)["user_id"]
    assert subject.key
    gone = IdentityColumn("people.app.gone", "uid")
    places = Carriers({subject.key: "own", gone: "lineage"}, ())
    for ages_out, expected in ((set(), {2, 3, 5, 7}), ({"people.app.users"}, {2, 5})):
        with departed(spark, tide.catalogs, subject, Duration(90, "d"), now=NOW) as people:
            standings, unread = people.look(tide.catalogs, places, ages_out)
            assert [one.place for one in standings] == [subject.key]
            assert [(one.place, one.failed) for one in unread] == [(str(gone), True)]
            assert {int(one.value) - BASE for one in people.to_file(())} == expected
            assert people._found is not None
            assert str(BASE)[:9] not in str(people._found._jdf.queryExecution().toString())
            known = [str(BASE + n) for n in (1, 2, 6)]
            assert {int(value) - BASE for value in people.returned(known)} == {1, 6}
            assert str(BASE)[:9] not in repr(people.to_file(()))


def test_instants_count_to_the_microsecond_and_several_rows_are_one_person(
    project: SmallProject, spark: SparkSession
) -> None:
    subject = load_subjects(project.root)["user_id"]
    tick, border = timedelta(microseconds=1), NOW - timedelta(days=90)
    rows = [
        (1, border),
        (2, border - tick),
        (3, NOW),
        (4, NOW + tick),
        (5, None),
        (6, border),
        (6, NOW),
        (7, border),
        (7, None),
    ]
    users = spark.createDataFrame(rows, "user_id long, left_at timestamp").coalesce(1)
    people = Departed(spark, users, subject, Duration(90, "d"), NOW)
    by_hash = {people._hash_text(str(n)): n for n in range(1, 8)}
    found = {by_hash[row.who]: (row.overdue, row.urgent) for row in people._left.collect()}
    assert found == {1: (False, True), 2: (True, True), 3: (False, False), 6: (False, False)}


def test_a_failed_filing_leaves_no_request_and_no_key(project: SmallProject) -> None:
    ledger = open_ledger(project.tide.project)
    ledger.open()
    before = ledger.home.keys.names()
    subject = load_subjects(project.root)["user_id"]
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    good = Leaver("1", NOW)
    with pytest.raises(EbbtideError):
        file_and_withdraw(ledger, subject, [good, Leaver("2", naive)], [])
    assert set(ledger.home.keys.names()) - set(before) == {"request-lookup"}  # nothing was filed with it
    assert not ledger.home.request_keys.behind(None)
    with ledger.database.reader() as state:
        assert state.requests() == ()
    # Two runs that found the same person: the second one looks again before it writes.
    assert len(file_and_withdraw(ledger, subject, [good], []).filed) == 1
    assert file_and_withdraw(ledger, subject, [good], []).filed == ()


def test_a_request_whose_key_is_lost_stops_the_filing(project: SmallProject) -> None:
    filed = run(project, "--file")["requests"]
    ledger = open_ledger(project.tide.project)
    with ledger.database.reader() as state:
        slot = state.get_request(filed[0]).key_slot
    assert slot is not None
    ledger.home.request_keys.destroy([(slot, filed[0])])
    done = project.run("departed", "--file", "--as-of", AS_OF)
    assert isinstance(done.exception, UnreadableError)
    with ledger.database.reader() as state:
        assert len(state.requests()) == 4


def test_filing_carries_the_real_time_unless_the_clock_is_simulated(project: SmallProject) -> None:
    file = project.root / "ebbtide.yml"
    text = file.read_text()
    file.write_text(text.replace("clock: simulated\n", ""))
    try:
        done = project.run("departed", "--file", "--as-of", AS_OF)
        assert isinstance(done.exception, RefusedError)
    finally:
        file.write_text(text)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("subjects:\n  user_id: {columns: []}\n", "columns", 2),
        ("subjects:\n  user_id:\n    columns: [users]\n", "not a column: 'users'", 3),
        ("subjects:\n  user_id:\n    columns: [a.b.c.d]\n    left_at: a.b.x.y\n", "none of its columns", 4),
        ("subjects:\n  user_id:\n    columns: [a.b.c.d, a.b.c.e]\n    left_at: a.b.c.y\n", "several of its columns", 4),
        ("subjects:\n  user_id:\n    columns: [a.b.c.d]\n    gone_within: 90\n", "not a duration", 4),
        ("subjects:\n  user_id:\n    columns: [a.b.c.d]\n    gone_whithin: 90d\n", "unknown key", 4),
        ("subjects:\n  usér: {columns: [a.b.c.d]}\n", "cannot name a subject", 2),
    ],
)
def test_wrong_subjects_are_refused_with_their_line(tmp_path: Path, text: str, message: str, line: int) -> None:
    (tmp_path / "subjects.yml").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_subjects(tmp_path)
    assert f"subjects.yml:{line}" in caught.value.message


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (("users.user_id]", "usres.user_id]"), "none of its columns", ""),
        (("users.user_id]", "users.userid]"), "no column 'userid'", "did you mean 'user_id'?"),
        (("users.left_at", "users.name"), "is a string", "a date or a timestamp"),
        (("    gone_within: 90d\n", ""), "nothing says when people who left must be gone", "gone_within: 90d"),
        (("    left_at: people.app.users.left_at\n", ""), "nothing says who left", "left_at"),
    ],
)
def test_what_does_not_fit_the_tables_is_refused(
    project: SmallProject, change: tuple[str, str], message: str, hint: str
) -> None:
    project.write({"subjects.yml": SUBJECTS.replace(*change)})
    try:
        done = project.run("departed", "--as-of", AS_OF)
        assert isinstance(done.exception, InputError), done.output
        assert message in done.exception.message
        assert hint in (done.exception.hint or "")
    finally:
        project.write({"subjects.yml": SUBJECTS})


def test_a_promise_says_when_where_the_subject_does_not(project: SmallProject) -> None:
    project.write(
        {
            "subjects.yml": SUBJECTS.replace("    gone_within: 90d\n", ""),
            "policies/p.yml": "promises:\n"
            "  - {tables: [people.app.mart], gone_within: 61d}\n"
            "  - {tables: ['people.app.*'], gone_within: 90d}\n"
            "  - {tables: [people.other.*], gone_within: 1d}\n",
        }
    )
    try:
        assert run(project)["gone_within"] == "61d"
    finally:
        (project.root / "policies" / "p.yml").unlink()
        project.write({"subjects.yml": SUBJECTS})
