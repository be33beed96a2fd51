"""The lease: one sweeper at a time, and none that slept through its time (design, invariant 5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from ebbtide.errors import LeaseError
from ebbtide.state import tables
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease, database_time

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)

SLEEPER = """
import sys
from datetime import UTC, datetime
from ebbtide.errors import LeaseError
from ebbtide.state.database import Database
from ebbtide.state.lease import Lease

database = Database(sys.argv[1])
lease = Lease.acquire(database, holder="sleeper", seconds=float(sys.argv[2]))
renewing = sys.argv[3] == "renewing"
if renewing:
    lease.__enter__()
with database.sweeper(lease) as state:
    state.start_run("before", at=datetime.now(UTC))
print(lease.fence, flush=True)
sys.stdin.readline()
for attempt in ("write", "check", "renew"):
    try:
        if attempt == "write":
            with database.sweeper(lease) as state:
                state.start_run("after", at=datetime.now(UTC))
        else:
            getattr(lease, attempt)()
        print("done", flush=True)
    except LeaseError as error:
        print("refused", error.fence, flush=True)
"""


def _sleeper(url: str, seconds: float, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLEEPER, url, str(seconds), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _expire(database: Database) -> None:
    """Let the lease's time be over, as if it had passed."""
    with database.writer() as state:
        past = database_time(state.connection) - timedelta(seconds=1)
        state.connection.execute(update(tables.leases).values(expires_at=past))


def test_the_database_s_clock_is_the_real_one(database: Database) -> None:
    database.upgrade()
    with database.reader() as reader:
        assert abs(database_time(reader.connection) - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_second_sweeper_is_refused_while_the_first_is_at_work(database: Database) -> None:
    first = Lease.acquire(database, holder="host-a:1")
    with pytest.raises(LeaseError, match="host-a:1") as refused:
        Lease.acquire(database, holder="host-b:2")
    assert refused.value.exit_code == 3
    assert refused.value.hint
    first.release()
    assert Lease.acquire(database, holder="host-b:2").fence == first.fence + 1


def test_the_fencing_number_only_grows(database: Database) -> None:
    fences = []
    for turn in range(5):
        lease = Lease.acquire(database, holder=str(turn))
        fences.append(lease.fence)
        _expire(database) if turn % 2 else lease.release()
    assert fences == [1, 2, 3, 4, 5]


def test_of_many_that_ask_at_once_one_gets_the_lease(url: str) -> None:
    Database(url).upgrade()
    won: list[int] = []
    refused: list[LeaseError] = []

    def ask(number: int) -> None:
        database = Database(url)
        try:
            won.append(Lease.acquire(database, holder=str(number)).fence)
        except LeaseError as error:
            refused.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [1]
    assert len(refused) == 7


def test_a_lease_that_ran_out_writes_nothing_even_when_nobody_took_it(database: Database) -> None:
    lease = Lease.acquire(database, holder="a")
    _expire(database)
    for attempt in (lease.check, lease.renew):
        with pytest.raises(LeaseError, match="ran out"):
            attempt()
    with pytest.raises(LeaseError), database.sweeper(lease) as state:
        state.start_run("sweep", at=NOW)
    with database.reader() as reader:
        assert reader.runs() == ()


def test_a_lease_that_another_took_over_writes_nothing_and_releases_nothing(database: Database) -> None:
    old = Lease.acquire(database, holder="a")
    _expire(database)
    new = Lease.acquire(database, holder="b")
    with pytest.raises(LeaseError, match="taken over") as refused:
        old.check()
    assert refused.value.fence == new.fence
    with pytest.raises(LeaseError), database.sweeper(old) as state:
        state.start_run("sweep", at=NOW)
    old.release()
    new.check()
    with database.reader() as reader:
        assert reader.runs() == ()


def test_a_lease_that_runs_out_inside_a_transaction_undoes_it(database: Database) -> None:
    lease = Lease.acquire(database, holder="a", seconds=0.2)

    def slow() -> datetime:
        time.sleep(0.3)
        return NOW

    with pytest.raises(LeaseError, match="ran out"), database.sweeper(lease) as state:
        state.start_run("sweep", at=slow())
    with database.reader() as reader:
        assert reader.runs() == ()


def test_a_released_lease_writes_nothing(database: Database) -> None:
    lease = Lease.acquire(database, holder="a")
    lease.release()
    with pytest.raises(LeaseError, match="released"):
        lease.check()


def test_a_check_leaves_at_least_two_thirds_of_the_time_to_the_batch(database: Database) -> None:
    lease = Lease.acquire(database, holder="a", seconds=90)
    with database.writer() as state:
        nearly_over = database_time(state.connection) + timedelta(seconds=20)
        state.connection.execute(update(tables.leases).values(expires_at=nearly_over))
    lease.check()
    with database.reader() as reader:
        record = reader.lease()
        assert record
        assert record.expires_at - database_time(reader.connection) > timedelta(seconds=60)
    lease.check()
    with database.reader() as reader:
        assert reader.lease() == record


def test_a_lease_in_a_block_renews_itself_and_is_free_afterwards(database: Database) -> None:
    with Lease.acquire(database, holder="a", seconds=0.6) as lease:
        time.sleep(1.2)
        lease.check()
    assert Lease.acquire(database, holder="b").fence == lease.fence + 1


@pytest.mark.parametrize("mode", ["plain", "renewing"])
def test_a_process_that_slept_through_its_lease_cannot_write_any_more(database: Database, url: str, mode: str) -> None:
    seconds = 1.5
    process = _sleeper(url, seconds, mode)
    try:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(LeaseError):
            Lease.acquire(database, holder="awake")
        time.sleep(seconds + 0.2)
        awake = Lease.acquire(database, holder="awake", seconds=600)
        with database.sweeper(awake) as state:
            state.start_run("meanwhile", at=NOW)
        process.send_signal(signal.SIGCONT)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(3)] == ["refused 2\n"] * 3
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.communicate()
    with database.reader() as reader:
        assert [run.verb for run in reader.runs()] == ["before", "meanwhile"]
    awake.check()


def test_a_killed_sweeper_leaves_the_lease_to_the_next_after_its_time(database: Database, url: str) -> None:
    process = _sleeper(url, 1, "renewing")
    assert process.stdout
    assert process.stdout.readline() == "1\n"
    process.kill()
    process.communicate()
    with pytest.raises(LeaseError):
        Lease.acquire(database, holder="next")
    time.sleep(1.1)
    assert Lease.acquire(database, holder="next").fence == 2
