"""Signed is what was appended, and trust comes from outside: an attacker who has the database, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, update

from ebbtide.app import ledger as use
from ebbtide.errors import EbbtideError, InputError, NotAppendedError, ProofError, RefusedError, UnreadableError
from ebbtide.ledger import tree
from ebbtide.ledger.audit import audit
from ebbtide.ledger.entries import BodiesPruned, Indexes, KeyRotated
from ebbtide.ledger.frontier import NOTHING, Frontier
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.ledger.note import Checkpoint, Signer
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder
from ebbtide.state.tables import ledger_checkpoints, ledger_entries, ledger_keys, ledger_nodes, metadata
from tests.ledger import oracle
from tests.ledger.conftest import Ticking
from tests.ledger.samples import AT, said
from tests.state.postgres import server


def _append(ledger: Ledger, *numbers: int) -> None:
    with ledger.writing() as step:
        step.append(*(said(number) for number in numbers))


def _insert(ledger: Ledger, first: int, *bodies: bytes) -> None:
    """Rows as whoever has the database can write them."""
    rows = [{"idx": first + n, "leaf_hash": tree.leaf_hash(body), "body": body} for n, body in enumerate(bodies)]
    with ledger.database.writer() as state:
        state.connection.execute(insert(ledger_entries), rows)


def _said(ledger: Ledger) -> str:
    report = audit(ledger)
    assert not report
    return "; ".join(map(str, report.findings))


def _elsewhere(ledger: Ledger, folder: Path, url: str) -> Ledger:
    """Another host: its own connection, a copy of the keys, a HOME of its own."""
    home = replace(ledger.home, keys=KeyFolder(folder / "keys"), folder=folder / "outside")
    home.keys.path.mkdir(parents=True)
    for key in ledger.home.keys.path.glob("*.key"):
        shutil.copy2(key, home.keys.path)
    return Ledger(Database(url), home, ledger.clock, patience=())


def _child(work: Callable[[], None]) -> Callable[[], int]:
    """Do it in a process of its own; gives what waits for its end, and for the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)

    def ended() -> int:
        _, status = os.waitpid(child, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.waitstatus_to_exitcode(status)

    return ended


# What was appended


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 255, 256, 257, 600])
def test_a_frontier_grows_to_the_root_of_the_leaves_by_itself(size: int) -> None:
    leaves = [oracle.leaf(b"%d" % number) for number in range(size + 300)]
    frontier, _ = NOTHING.append(leaves[:size])
    for more in (0, 1, 2, 255, 300):
        grown, runs = frontier.append(leaves[size : size + more])
        assert grown.root == oracle.mth(leaves[: size + more])
        assert grown == NOTHING.append(leaves[: size + more])[0]
        assert sum(len(run.hashes) for run in runs if run.level == 0) == more


@pytest.mark.parametrize("count", [1, 300])
def test_rows_at_the_end_that_nobody_appended_are_refused_by_index(ledger: Ledger, count: int) -> None:
    _append(ledger, 1, 2)
    before = ledger.sign()
    bodies = [said(1000 + number).encode() for number in range(count)]
    _insert(ledger, 3, *bodies)
    if count > 256:
        # A careful attacker stores the subtrees as well.
        with ledger.database.writer() as state:
            hashes = list(state.connection.execute(select(ledger_entries.c.leaf_hash).order_by("idx")).scalars())
            row = {"height": 8, "idx": 0, "hash": oracle.mth(hashes[:256])}
            state.connection.execute(insert(ledger_nodes), [row])
    for attempt in (ledger.sign, ledger.rotate, lambda: _append(ledger, 9), lambda: use.entry(ledger, 3)):
        with pytest.raises(NotAppendedError) as refused:
            attempt()
        assert (refused.value.first, refused.value.last, refused.value.exit_code) == (3, 2 + count, 3)
    assert "entry 3" in _said(ledger) if count == 1 else "entries 3 to 302" in _said(ledger)
    with ledger.reading() as log:
        assert log.checkpoint() == before
        assert log.size == 3 + count
    with ledger.database.writer() as state:
        state.connection.execute(delete(ledger_entries).where(ledger_entries.c.idx >= 3))
        state.connection.execute(delete(ledger_nodes))
    _append(ledger, 3)
    assert audit(ledger)


@pytest.mark.parametrize("index", [10**12, 2**63 - 1])
def test_a_gap_of_any_width_ends_everything_at_once(ledger: Ledger, index: int) -> None:
    _append(ledger, 1, 2)
    claim = BodiesPruned(at=AT, before=AT, ranges=(Indexes(first=10, last=10**15),)).encode()
    _insert(ledger, index, claim)
    assert f"entries 3 to {index - 1}: expected a row, found none" in _said(ledger)
    with pytest.raises(NotAppendedError, match=f"entry {index} was"):
        ledger.sign()
    for attempt in (
        lambda: _append(ledger, 3),
        lambda: use.entry(ledger, 1),
        lambda: use.prove(ledger, index),
        lambda: use.export(ledger, Path("never")),
        lambda: use.prune(ledger, "2026-01-01"),
        lambda: ledger.adopt(up_to=index + 1),
    ):
        with pytest.raises(EbbtideError):
            attempt()
    assert use.prune(ledger, "2026-01-01", dry_run=True).bodies == 0


def test_a_crash_before_the_commit_leaves_both_frontiers_accepted(ledger: Ledger, url: str) -> None:
    _append(ledger, 1)

    def dies() -> None:
        own = Ledger(Database(url), ledger.home, ledger.clock)
        with own.database.writer() as state:
            step = own._begin(state)
            step.append(said(2), said(3))
            own._intend(step)
            os.kill(os.getpid(), signal.SIGKILL)

    assert _child(dies)() == signal.SIGKILL
    assert audit(ledger)
    assert Checkpoint.parse(ledger.sign().text).size == 2
    _append(ledger, 4)
    assert audit(ledger)


def test_a_frontier_that_is_not_there_leaves_what_was_signed_and_one_that_cannot_be_read_is_an_error(
    ledger: Ledger,
) -> None:
    _append(ledger, 1)
    file = ledger.home.frontier("example.org/acme")
    good = file.path.read_bytes()
    for bad in (b"", b"{}", b"\xff", good[:-1], good.replace(b'"2"', b'"3"'), b'{"certain":{"peaks":[],"size":"-1"}}'):
        file.path.write_bytes(bad)
        with pytest.raises(UnreadableError):
            ledger.sign()
        assert "not what the signer appended" in _said(ledger)
    file.path.unlink()
    assert audit(ledger)
    _append(ledger, 2)
    assert file.path.stat().st_mode & 0o777 == 0o600
    file.path.unlink()
    _insert(ledger, 3, said(3).encode())
    with pytest.raises(NotAppendedError, match="entry 3"):
        ledger.sign()


def test_a_ledger_behind_the_frontier_is_refused_even_where_no_copy_tells(ledger: Ledger) -> None:
    _append(ledger, 1)
    _append(ledger, 2)
    with ledger.database.writer() as state:
        state.connection.execute(delete(ledger_entries).where(ledger_entries.c.idx == 2))
        state.connection.execute(delete(ledger_checkpoints).where(ledger_checkpoints.c.size == 3))
    ledger.home.copy(ledger.open()).path.unlink()
    with pytest.raises(RefusedError, match="by what was appended here: expected at least 3, found 2"):
        ledger.adopt()
    assert "by what was appended here" in _said(ledger)


# Teams


def test_two_hosts_on_one_postgresql_append_at_once_and_sign_each_others_entries(tmp_path: Path, home: Home) -> None:
    url = server().new_url()
    one = Ledger(Database(url), home, Clock(Ticking().now))
    _append(one, 0)
    two = _elsewhere(one, tmp_path / "two", url)
    with pytest.raises(RefusedError, match="no copy of the last checkpoint"):
        two.sign()
    two.adopt()
    one.database.close()
    two.database.close()

    def write(host: Ledger, first: int) -> Callable[[], None]:
        def work() -> None:
            own = Ledger(Database(url), host.home, host.clock)
            for turn in range(8):
                _append(own, *range(first + 10 * turn, first + 10 * turn + turn))

        return work

    waiting = [_child(write(one, 1000)), _child(write(two, 2000))]
    assert [ended() for ended in waiting] == [0, 0]
    for host in (one, two):
        report = audit(host)
        assert report, report.findings
        assert (report.entries, report.unsigned) == (2 + 2 * sum(range(8)), 0)
    one.database.close()
    two.database.close()


def test_what_a_dead_host_committed_and_did_not_sign_waits_for_it_or_for_a_persons_word(
    ledger: Ledger, url: str, tmp_path: Path
) -> None:
    _append(ledger, 1)
    other, third = (_elsewhere(ledger, tmp_path / name, url) for name in ("other", "third"))
    other.adopt()
    third.adopt()

    def dies() -> None:
        own = Ledger(Database(url), ledger.home, ledger.clock)
        Ledger.sign = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,method-assign,return-value]
        _append(own, 2, 3)

    assert _child(dies)() == signal.SIGKILL
    assert audit(ledger).unsigned == 2
    for attempt in (other.sign, lambda: _append(other, 4), other.adopt):
        with pytest.raises(NotAppendedError, match="entries 2 to 3 were") as refused:
            attempt()
        assert "ebbtide ledger checkpoint" in str(refused.value.hint)
    assert "entries 2 to 3" in _said(other)
    # A person who has looked may take them over, exactly those.
    with pytest.raises(RefusedError, match="4 entries, not 5"):
        third.adopt(up_to=5)
    assert Checkpoint.parse(third.adopt(up_to=4).text).size == 4
    assert "took over 2 entries from index 2 on" in third.notices[-1]
    # The one that died finds its own, signed by now; so does everybody else.
    _append(ledger, 5)
    _append(other, 6)
    assert audit(ledger)
    assert audit(other)
    other.database.close()
    third.database.close()


# Trust from outside


def _wipe(ledger: Ledger) -> None:
    with ledger.database.writer() as state:
        for table in metadata.sorted_tables:
            if table.name.startswith("ledger_"):
                state.connection.execute(delete(table))


def test_a_ledger_that_was_replaced_whole_under_another_key_is_found_and_signed_by_nobody(
    ledger: Ledger, tmp_path: Path
) -> None:
    _append(ledger, 1, 2)
    _wipe(ledger)
    attacker = Ledger(
        ledger.database,
        replace(ledger.home, keys=KeyFolder(tmp_path / "attacker"), folder=tmp_path / "attackers-home"),
        ledger.clock,
        patience=(),
    )
    _append(attacker, 1, 2, 3)
    assert audit(attacker)
    said = _said(ledger)
    assert "key of the ledger" in said
    assert "copy at" in said
    for attempt in (ledger.open, ledger.sign, lambda: _append(ledger, 4), lambda: use.keys(ledger), ledger.adopt):
        with pytest.raises(EbbtideError, match="which is no key in"):
            attempt()
    # The same, rotated to the real key by the attacker, who has only its public half.
    real = ledger.home.signers()[0].key
    with attacker.database.writer() as state:
        step = attacker._begin(state)
        step.append(KeyRotated(at=AT, old=attacker.home.signers()[0].key.encode(), new=real.encode()))
    for attempt in (ledger.sign, lambda: _append(ledger, 4), ledger.adopt):
        with pytest.raises(EbbtideError):
            attempt()
    assert "copy at" in _said(ledger)
    # Nor where nothing is left to contradict it: no copy, no frontier, no checkpoint.
    copy = ledger.home.copy(real).path
    copy.unlink()
    ledger.home.frontier(real.name).path.unlink()
    assert "copy outside" in _said(ledger)
    with pytest.raises(EbbtideError):
        ledger.adopt()
    with ledger.database.writer() as state:
        state.connection.execute(delete(ledger_checkpoints))
    with pytest.raises(NotAppendedError):
        ledger.adopt()
    assert not copy.exists()


def test_an_origin_that_is_not_the_projects_is_a_finding(ledger: Ledger) -> None:
    _append(ledger, 1)
    other = Ledger(ledger.database, replace(ledger.home, origin="example.org/other"), ledger.clock)
    assert "origin of the ledger" in _said(other)


def test_a_key_that_only_the_table_of_keys_names_is_refused(ledger: Ledger) -> None:
    _append(ledger, 1)
    with ledger.database.writer() as state:
        forged = Signer.generate("example.org/acme").key.encode()
        state.connection.execute(insert(ledger_keys), [{"entry": 1, "key": forged}])
    for attempt in (lambda: use.keys(ledger), ledger.sign, lambda: _append(ledger, 2)):
        with pytest.raises(ProofError, match="key of entry 1"):
            attempt()


def test_where_a_copy_is_configured_it_is_the_copy_for_every_home(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, 1)
    path = tmp_path / "shared" / "acme.checkpoint"
    configured = Ledger(ledger.database, replace(ledger.home, checkpoint=path), ledger.clock)
    with pytest.raises(RefusedError, match=str(path)):
        configured.sign()
    assert "copy outside" in _said(configured)
    configured.adopt()
    assert audit(configured).copies == tuple(sorted([str(path), str(ledger.home.copy(ledger.open()).path)]))
    cron = Ledger(ledger.database, replace(configured.home, folder=tmp_path / "cron"), ledger.clock)
    _append(cron, 2)
    assert path.read_bytes() == cron.sign().encode()
    assert not (tmp_path / "cron").exists()
    assert audit(cron)
    path.unlink()
    assert "copy outside" in _said(cron)


# Checked before it is handed out


def test_a_leaf_that_was_replaced_below_the_stored_hashes_is_not_handed_out(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, *range(300))
    body = said(31337).encode()
    with ledger.database.writer() as state:
        values = {"leaf_hash": tree.leaf_hash(body), "body": body}
        state.connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 7).values(values))
        state.connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 9).values(body=body))
    # No root that is signed again shows it: the subtree above is stored.
    assert Checkpoint.parse(ledger.sign().text).size == 301
    for index in (7, 9):
        with pytest.raises(ProofError, match=f"entry {index}"):
            use.entry(ledger, index)
        with pytest.raises(ProofError, match=f"entry {index}"):
            use.prove(ledger, index)
    with pytest.raises(ProofError):
        use.export(ledger, tmp_path / "tiles")
    assert not (tmp_path / "tiles").exists()
    assert use.entry(ledger, 299).leaf == said(298).encode()


def test_a_body_that_is_gone_and_was_not_pruned_is_not_left_out_in_silence(ledger: Ledger, tmp_path: Path) -> None:
    _append(ledger, *range(300))
    with ledger.database.writer() as state:
        state.connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 5).values(body=None))
    with pytest.raises(ProofError, match="body of entry 5: expected a body, for no entry says that it was pruned"):
        use.export(ledger, tmp_path / "tiles")
    assert not (tmp_path / "tiles" / "checkpoint").exists()


def test_up_to_goes_with_adopt(ledger: Ledger) -> None:
    _append(ledger, 1)
    with pytest.raises(InputError):
        use.checkpoint(ledger, up_to=2)
    assert use.checkpoint(ledger, adopt=True) == ledger.sign()


def test_frontiers_are_read_from_the_stored_tree(ledger: Ledger) -> None:
    _append(ledger, *range(300))
    with ledger.reading() as log:
        assert Frontier.read(log.size, log.get) == ledger.home.frontier("example.org/acme").read().certain
