"""What runs that died left: their intents are closed, and what earlier acts recorded is found again (invariant 4)."""

from __future__ import annotations

import logging
from collections.abc import Collection

from sqlalchemy import Column, Connection, select

from ebbtide.ledger.attachments import attachment
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Intent, Outcome, parse_entry
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.log import LedgerLog
from ebbtide.state import act_files
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.tables import ledger_acts

_logger = logging.getLogger(__name__)


def close_unfinished(ledger: Ledger, lease: Lease) -> int:
    """Give every act of a run that died an outcome, whoever owns it. What it left is for its owner to plan again.

    An act that paused did not die: its intent stays open until a later run has gone on with it.
    """
    with ledger.sweeping(lease) as step:
        paused = step.state.paused_acts()
        died = [found.intent for found in step.log.recover() if found.intent.act not in paused]
        for intent in died:
            _logger.info("act %s of a run that died is closed: what it left is planned again", intent.act)
            step.append(
                Outcome(
                    at=ledger.clock.now(),
                    act=intent.act,
                    result="partial",
                    because="the run that began it ended",
                    request=intent.request,
                    requests=intent.requests,
                )
            )
        for run in step.state.runs(only_unfinished=True):
            if 0 < run.fence < lease.fence:  # who has no lease may be at work beside any sweeper
                _logger.info("run %s (%s) ended before its end", run.id, run.verb)
                step.state.finish_run(run.id, exit_code=4, summary="it ended before its end", at=ledger.clock.now())
        step.state.forget_files()  # of marks that a person closed since
    return len(died)


def head_of(step: Step[SweepWriter], act: str) -> str | None:
    """Main's head when an earlier act was begun. Of acts before layout 6 only the intent knows it."""
    if (record := step.state.act(act)) is not None:
        return record.head
    intent = _entry(step.state.connection, step.log, ledger_acts.c.intent, act)
    return intent.version if isinstance(intent, Intent) else None


def files_of_act(ledger: Ledger, acts: Collection[str]) -> dict[str, dict[str, int]]:
    """The files that earlier acts named and are not known to be gone, by act."""
    found: dict[str, dict[str, int]] = {}
    with ledger.database.reader() as state:
        log = LedgerLog(state.connection)
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
        log = LedgerLog(state.connection)
        for act in acts:
            outcome = _entry(state.connection, log, ledger_acts.c.outcome, act)
            if isinstance(outcome, Outcome) and outcome.result == "failed":
                failed.add(act)
    return failed


def _entry(connection: Connection, log: LedgerLog, which: Column[int], act: str) -> Entry | None:
    """The intent or the outcome of an act; None where there is none, or where it was pruned."""
    index = connection.execute(select(which).where(ledger_acts.c.act == act)).scalar_one_or_none()
    return None if index is None else parse_entry(log.leaf(index))


def _listed(connection: Connection, digest: str) -> dict[str, int]:
    return act_files.read(attachment(connection, digest))
