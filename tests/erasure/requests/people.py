"""People who ask to be erased, for the tests of requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ebbtide.config.laws import load_laws
from ebbtide.erasure.filing import Filed, Person, file_requests
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.ledger import Ledger
from ebbtide.run import RunContext

LAWS = load_laws()
RECEIVED = datetime(2026, 10, 31, 9, 30, tzinfo=UTC)
SECRET = "88413026"


def person(number: int, *, email: bool = True) -> Person:
    """Somebody; the values of all begin alike, and stand nowhere else."""
    identifiers = (Identifier("user_id", f"{SECRET}{number}"),)
    return Person(identifiers + ((Identifier("email", f"{SECRET}.{number}@example.org"),) if email else ()))


def file(ledger: Ledger, people: Sequence[Person], law: str = "gdpr") -> Filed:
    return file_requests(ledger, people, law=LAWS[law], received_at=RECEIVED, run=RunContext("tester"))
