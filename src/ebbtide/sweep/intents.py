"""Before and after: an intent in the ledger before anything changes, an outcome after it (design.md, invariant 4)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Column, Connection, select

from ebbtide.config.policies import Rows
from ebbtide.ledger.attachments import attachment
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Intent, Outcome, parse_entry, salted
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.log import Log
from ebbtide.model.dataset import OF_CHANGELOG
from ebbtide.state import act_files
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.tables import ledger_acts
from ebbtide.state.values import MarkState, Proposal, Snapshot
from ebbtide.sweep.gather import removal_of
from ebbtide.sweep.mark import close_unswept, entry_of
from ebbtide.sweep.values import Act, Going, Result
from ebbtide.sweep.words import dataset_in_ledger, files_in_ledger, id_in_ledger

VERB = "sweep"


def close_unfinished(ledger: Ledger, lease: Lease) -> int:
    """Give every sweep that died an outcome. What it left is planned again, or finished as leftover, by this one."""
    with ledger.sweeping(lease) as step:
        died = [found.intent for found in step.log.recover() if found.intent.verb == VERB]
        for intent in died:
            step.append(
                Outcome(at=ledger.clock.now(), act=intent.act, result="partial", because="the run that began it ended")
            )
        for run in step.state.runs(only_unfinished=True):
            if 0 < run.fence < lease.fence:  # who has no lease may be at work beside any sweeper
                step.state.finish_run(run.id, exit_code=4, summary="it ended before its end", at=ledger.clock.now())
        step.state.forget_files()  # of marks that a person closed since
    return len(died)


def begin(
    ledger: Ledger, lease: Lease, run: str, acts: Iterable[Act], snapshot: Snapshot, rows: Mapping[str, Rows]
) -> list[Act]:
    """Write the intents. Holds and unmarks are read again in the transaction of each: what came meanwhile stays.

    What is asked of the format is made here, of what still goes. `rows` are the policies' rows targets by policy. An
    act that cannot be written down gets its error, and is not begun.
    """
    begun = []
    for act in acts:
        with ledger.sweeping(lease) as step:
            act.objects = tuple(_still_going(step, act, snapshot))
            if not act.objects:
                continue
            if any("\t" in path or "\n" in path for path in act.named):
                act.error = "the name of a file holds a tab or a line break, which no list of the ledger can"
                continue
            at = ledger.clock.now()
            _mark_along(step, act, run, at)
            if not act.objects:
                continue
            act.objects = tuple(_rows_that_went(step, act, going) for going in act.objects)
            if act.found is not None and act.objects[0].key.target != "orphans" and not act.along:
                act.removal = replace(removal_of(act.found, act.objects, rows), places=act.places)
            marks = [going.mark.id for going in act.objects if going.mark]
            step.state.begin(marks, act=act.id)
            head = _head_before(act)
            salt = step.state.begin_act(act.id, head=head, files=act.named).salt
            files = step.attach_files(files_in_ledger(salt, act.named))
            step.append(
                Intent(
                    at=at, act=act.id, verb=VERB, run=run, fence=lease.fence, marks=tuple(marks),
                    dataset=dataset_in_ledger(step.state.condemned(), act.dataset),
                    version=None if head is None else id_in_ledger(salt, head),
                    metadata=None if act.removal is None else salted(salt, act.removal.found.token),
                    files=files if files.count else None,
                )
            )  # fmt: skip
        begun.append(act)
    return begun


def _still_going(step: Step[SweepWriter], act: Act, snapshot: Snapshot) -> list[Going]:
    """Without what was unmarked, or lies in a dataset that was held, since the plan read the state."""
    known = {hold.id for hold in snapshot.holds}
    names = (act.dataset, *act.called_before)
    if any(hold.dataset in names and hold.id not in known for hold in step.state.holds()):
        return []
    open_marks = {mark.id for mark in step.state.marks(datasets=[act.dataset])}
    known_pins = {pin.id for pin in snapshot.unmarks if pin.released_at is None}
    unmarks = (pin for name in names for pin in step.state.unmarks(dataset=name))
    pins = (pin for pin in unmarks if pin.released_at is None)
    pinned = {pin.object for pin in pins if pin.id not in known_pins}
    return [
        going
        for going in act.objects
        # A table does not go while anything of it is pinned.
        if not (pinned if going.key.target == "tables" else pinned & _names_of(going.key.object))
        and (going.mark is None or going.mark.id in open_marks)
    ]


def _names_of(object_: str) -> set[str]:
    """An object's native id, and for a changelog that of the snapshot which it was."""
    return {object_, re.sub(OF_CHANGELOG, r"/\1", object_)}


def _mark_along(step: Step[SweepWriter], act: Act, run: str, at: datetime) -> None:
    """Versions that go under a partition's or a row target's mark get one of their own now, without a second grace."""
    bare = {going.key: going for going in act.objects if going.mark is None}
    proposals = [
        Proposal(
            key=key, policy=going.row["policy"], because=going.row["because"], fingerprint=going.row["fingerprint"],
            grace_until=at, rows=going.row["rows"] or 0, bytes=going.row["bytes"] or 0, facts=going.facts,
        )
        for key, going in bare.items()
    ]  # fmt: skip
    made, condemned = {}, step.state.condemned()
    for answer in step.state.mark(proposals, run=run, at=at) if proposals else ():
        if answer.mark is not None:
            made[answer.proposal.key] = answer.mark
            step.append(entry_of(answer, at, condemned))
    act.objects = tuple(
        going if going.mark else going.with_mark(made[going.key])
        for going in act.objects
        if going.mark or going.key in made
    )


def _rows_that_went(step: Step[SweepWriter], act: Act, going: Going) -> Going:
    """A row object that an earlier act was begun for and that did not say what became of it: main may have moved by it.

    Without this the delete is made again, matches nothing, and looks as if no version had ever held the rows.
    """
    mark = going.mark
    if mark is None or mark.act is None or mark.acted_at is not None or going.key.target != "rows" or act.head is None:
        return going
    before = _head_of(step, mark.act)
    return going if before in (None, act.head[0]) else replace(going, tried_at=(before, act.head[1]))


def _head_of(step: Step[SweepWriter], act: str) -> str | None:
    """Main's head when an earlier act was begun. Of acts before layout 6 only the intent knows it."""
    if (record := step.state.act(act)) is not None:
        return record.head
    intent = _entry(step.state.connection, step.log, ledger_acts.c.intent, act)
    return intent.version if isinstance(intent, Intent) else None


def _head_before(act: Act) -> str | None:
    """Main's head when the act was begun; or, where it tries rows again, when that was tried first."""
    tried = [going.tried_at[0] for going in act.objects if going.tried_at is not None]
    return tried[0] if tried else act.head and act.head[0]


def _entry(connection: Connection, log: Log, which: Column[int], act: str) -> Entry | None:
    """The intent or the outcome of an act; None where there is none, or where it was pruned."""
    index = connection.execute(select(which).where(ledger_acts.c.act == act)).scalar_one_or_none()
    return None if index is None else parse_entry(log.leaf(index))


def files_of_act(ledger: Ledger, acts: Collection[str]) -> dict[str, dict[str, int]]:
    """The files that earlier acts named and are not known to be gone, by act."""
    found: dict[str, dict[str, int]] = {}
    with ledger.database.reader() as state:
        log = Log(state.connection)
        for act in acts:
            if state.act(act) is not None:
                found[act] = state.files_of_act(act)
                continue
            # Before layout 6 the attachments held the paths themselves.
            intent = _entry(state.connection, log, ledger_acts.c.intent, act)
            if not isinstance(intent, Intent) or intent.files is None:
                continue
            found[act] = _listed(state.connection, intent.files.digest)
            outcome = _entry(state.connection, log, ledger_acts.c.outcome, act)
            if isinstance(outcome, Outcome) and outcome.removed is not None:
                for path in _listed(state.connection, outcome.removed.digest):
                    found[act].pop(path, None)
    return found


def failed_acts(ledger: Ledger, acts: Collection[str]) -> set[str]:
    """Those of these acts that the format refused: what vanished since did not vanish by them."""
    failed: set[str] = set()
    with ledger.database.reader() as state:
        log = Log(state.connection)
        for act in acts:
            outcome = _entry(state.connection, log, ledger_acts.c.outcome, act)
            if isinstance(outcome, Outcome) and outcome.result == "failed":
                failed.add(act)
    return failed


def _listed(connection: Connection, digest: str) -> dict[str, int]:
    return act_files.read(attachment(connection, digest))


def finish(
    ledger: Ledger,
    lease: Lease,
    run: str,
    act: Act,
    results: Collection[Result],
    token: str | None,
    findings: int | None,
) -> None:
    """Write the outcome of an act, and what became of each of its marks, in one transaction."""
    removed, left = act.removed, act.left
    with ledger.sweeping(lease) as step:
        at = ledger.clock.now()
        marks = {going.key: going.mark for going in act.objects if going.mark}
        for result in results:
            mark = marks.get(result.key)
            if mark is None or step.state.get_mark(mark.id).state is not MarkState.SWEEPING:
                continue
            if result.acted_at is not None or result.again:
                step.state.acted(mark.id, at=result.acted_at)
            if result.state == "swept":
                step.state.sweep(mark.id, because=result.because, at=at, carried_into=result.carried_into)
            elif result.state == "unmarked":
                close_unswept(step, mark, run, result.because, at)
            else:
                step.state.wait(mark.id, waits_for=(result.because,))
        states = {result.state for result in results}
        outcome = (
            "failed"
            if act.error
            else "partial"
            if left or "failed" in states
            else "done"
            if removed or states == {"swept"}
            else "nothing"
        )
        record = step.state.act(act.id)
        assert record is not None
        salt, version = record.salt, act.committed.version
        gone = step.attach_files(files_in_ledger(salt, removed))
        still = step.attach_files(files_in_ledger(salt, left))
        step.state.leave(act.id, {path: size for path, size in act.named.items() if path not in removed})
        step.append(
            Outcome(
                at=at, act=act.id, result=outcome, version=version and id_in_ledger(salt, version),
                metadata=token and salted(salt, token), removed=gone if gone.count else None,
                left=still if still.count else None, findings=findings, because=_said(act),
            )
        )  # fmt: skip


def _said(act: Act) -> str | None:
    """Why it did not all go, without a path: an error of a store may quote one."""
    if act.error:
        return "a limit of the run" if act.over else "the format refused or failed"
    if act.freed.because or act.freed.failed:
        return (
            f"{len(act.freed.failed)} files or folders could not be removed"
            if act.freed.failed
            else "the format kept what is left"
        )
    return None
