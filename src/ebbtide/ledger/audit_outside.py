"""The audit's side of `vouched.py`: every check of it, each one that fails a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ebbtide.errors import EbbtideError, NotAppendedError, ProofError, RewoundError
from ebbtide.ledger.frontier import Appended
from ebbtide.ledger.home import Home
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.note import Checkpoint
from ebbtide.ledger.outside import check_continues
from ebbtide.ledger.recompute import Mismatch, span
from ebbtide.ledger.vouched import Outside, check_appended, check_copy_there, check_key, check_origin


def read_outside(home: Home) -> tuple[Outside | None, list[Mismatch]]:
    """What is known without the database; what is there and cannot be read is a finding."""
    try:
        return Outside.read(home), []
    except EbbtideError as error:
        return None, [Mismatch("keys, copies and frontier outside", "what can be read", error.message)]


def vouched_findings(log: LedgerLog, outside: Outside, since: Outside, trust: Trust) -> Iterator[Mismatch]:
    """Origin, key, last checkpoint, copies and appends, by what is known outside, and was just after the snapshot."""
    home, present = outside.home, trust.ledger[-1].key
    signed: Checkpoint | None = None

    def last_checkpoint() -> None:
        nonlocal signed
        # Without any of its keys here there is nothing to hold a signature against; that is a finding already.
        if (here := outside.here(trust)).ledger and (note := log.checkpoint()):
            signed = check_continues(log, note, here, whence="its last checkpoint")

    def appends() -> None:
        appended, later = (known.appended.get(trust.origin, Appended()) for known in (outside, since))
        check_appended(log, appended, signed, also=later.frontiers())

    yield from _found("origin of the ledger", lambda: check_origin(trust.origin, home))
    yield from _found("key of the ledger", lambda: check_key(present, outside))
    yield from _found("last checkpoint", last_checkpoint)
    yield from _found("copy outside", lambda: check_copy_there(trust, home, outside.known_to(trust)))
    yield from _found("appended entries", appends)


def _found(where: str, check: Callable[[], None]) -> Iterator[Mismatch]:
    try:
        check()
    except NotAppendedError as error:
        yield Mismatch(span(error.first, error.last), "appended by a signer of this ledger, or signed", "neither")
    except (RewoundError, ProofError) as error:
        yield Mismatch(error.what, error.expected, error.found)
    except EbbtideError as error:
        yield Mismatch(where, "what is known outside of the database", error.message)
