"""Before and after: an intent in the ledger before anything changes, an outcome after it (invariant 4)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import datetime

from ebbtide.acts.act import Act, ActResult
from ebbtide.acts.owner import Owner, Settlement
from ebbtide.errors import RefusedError
from ebbtide.ledger.entries import Intent, Outcome, salted
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.redaction import id_in_ledger
from ebbtide.model.removal import CheckedFolder
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter

_logger = logging.getLogger(__name__)


class _UnlistableError(RefusedError):
    """An act whose files no list of the ledger can hold."""


def begin(
    ledger: Ledger, lease: Lease, run: str, owner: Owner, planned: Act, places: tuple[CheckedFolder, ...]
) -> list[ActResult]:
    """Write the intent of an act, in a transaction in which its owner is asked once more.

    What is no longer wanted is not begun: then the answer is empty. An act that cannot be written down is answered with
    its error, and was not begun.
    """
    try:
        act = _begin(ledger, lease, run, owner, planned)
    except _UnlistableError as error:
        return [ActResult(act=planned, error=error.message)]
    if act is None:
        _logger.info("%s is not begun: nobody wants it any more", planned.told, extra={"run": run})
        return []
    _logger.info("%s begins (%s): %d files named", act.told, owner.verb, len(act.named), extra={"run": run})
    return [ActResult(act=act.within(places))]


def _begin(ledger: Ledger, lease: Lease, run: str, owner: Owner, planned: Act) -> Act | None:
    with ledger.sweeping(lease) as step:
        at = ledger.clock.now()
        act = owner.still_wanted(step, planned, at)
        if act is None:
            if planned.paused:
                let_go(step, planned.id, planned.requests, at, "nobody wants it any more")
            return None
        if act.paused:
            step.state.resume_act(act.id)
            return act
        if any("\t" in path or "\n" in path for path in act.named):
            raise _UnlistableError("the name of a file holds a tab or a line break, which no list of the ledger can")
        salt = step.state.begin_act(act.id, head=act.head, files=act.named).salt
        files = step.attach_files(salt, act.named)
        step.append(
            Intent(
                at=at, act=act.id, verb=owner.verb, run=run, fence=lease.fence, marks=act.marks,
                dataset=step.dataset_in_ledger(act.dataset),
                version=None if act.head is None else id_in_ledger(salt, act.head),
                metadata=None if act.removal is None else salted(salt, act.removal.found.token),
                files=files if files.count else None, target=act.target,
                object=None if act.object is None else salted(salt, act.object), forced_by=act.forced_by,
                requests=act.requests,
            )
        )  # fmt: skip
    return act


def pause(ledger: Ledger, lease: Lease, owner: Owner, result: ActResult) -> None:
    """Keep an act open that goes on in a later run: no outcome yet, and recovery leaves it alone."""
    with ledger.sweeping(lease) as step:
        step.state.pause_act(result.act.id)
        owner.put_off(step, result, ledger.clock.now())
    _logger.info("%s pauses: a later run goes on with it", result.act.told)


def stop(ledger: Ledger, lease: Lease, owner: Owner, acts: Iterable[Act], set_about: Collection[str]) -> None:
    """Close the acts of a run that was asked to stop: what it had not set about is put back, and can be rescued."""
    with ledger.sweeping(lease) as step:
        at = ledger.clock.now()
        for act in acts:
            _logger.info("%s: the run stops %s it", act.told, "at" if act.id in set_about else "before")
            if act.id in set_about:
                because = "the run was asked to stop"
                step.append(Outcome(at=at, act=act.id, result="partial", because=because, requests=act.requests))
            elif act.paused:
                step.state.pause_act(act.id)
            else:
                owner.put_back(step, act)
                # Failed, and not partial: what vanishes from now on did not vanish by this act.
                because = "the run was asked to stop before it"
                step.append(Outcome(at=at, act=act.id, result="failed", because=because, requests=act.requests))
                step.state.leave(act.id, {})


def let_go(step: Step[SweepWriter], act: str, requests: tuple[str, ...], at: datetime, because: str) -> None:
    """A paused act that does not go on."""
    step.state.resume_act(act)
    step.append(Outcome(at=at, act=act, result="nothing", because=because, requests=requests))
    step.state.leave(act, {})


def finish(ledger: Ledger, lease: Lease, result: ActResult, settlement: Settlement, token: str | None) -> None:
    """Write the outcome of an act, and what its owner makes of it, in one transaction."""
    act, removed, left, word = result.act, result.removed, result.left, _word(result, settlement)
    with ledger.sweeping(lease) as step:
        at = ledger.clock.now()
        settlement.write(step, at)
        record = step.state.act(act.id)
        assert record is not None
        salt, version = record.salt, result.committed.version
        gone = step.attach_files(salt, removed)
        still = step.attach_files(salt, left)
        step.state.leave(act.id, {path: size for path, size in act.named.items() if path not in removed})
        step.append(
            Outcome(
                at=at, act=act.id, result=word, version=version and id_in_ledger(salt, version),
                metadata=token and salted(salt, token), removed=gone if gone.count else None,
                left=still if still.count else None, findings=result.findings, because=_said(result),
                requests=act.requests,
            )
        )  # fmt: skip
    size = sum(removed.values())
    _logger.info("%s ends, %s: %d files with %d bytes removed, %d left", act.told, word, len(removed), size, len(left))


def _word(result: ActResult, settlement: Settlement) -> str:
    if result.error:
        return "failed"
    if result.left or settlement.failed:
        return "partial"
    return "done" if result.removed or settlement.finished else "nothing"


def _said(result: ActResult) -> str | None:
    """Why it did not all go, without a path: an error of a store may quote one."""
    if result.error:
        return "a limit of the run" if result.over else "the format refused or failed"
    if result.deletion.failed:
        return f"{len(result.deletion.failed)} files or folders could not be removed"
    return "the format kept what is left" if result.deletion.because else None
