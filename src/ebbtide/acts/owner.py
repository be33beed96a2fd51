"""Who is asked while an act is carried out: its owner, what the owner makes of it, and the executor of its kind."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from ebbtide.acts.act import Act, ActResult
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Step
from ebbtide.state.sweeper import SweepWriter


class Settlement(Protocol):
    """What an act's end means to its owner, found out before the transaction that writes the outcome."""

    @property
    def failed(self) -> bool:
        """Whether something of it could not be done."""
        ...

    @property
    def finished(self) -> bool:
        """Whether all of it is done."""
        ...

    def write(self, step: Step[SweepWriter], at: datetime) -> None:
        """Say it in the state, in the transaction of the outcome."""
        ...


class Owner(Protocol):
    """Whoever wants something gone: retention's marks, a person's request, a chunk that was tiered."""

    verb: str
    """What its intents are called in the ledger."""

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
        """The act as it is still wanted, asked in the transaction that writes its intent; None where nothing of it is.

        What a person said since the plan counts from here on; afterwards the act can no longer be stopped.
        """
        ...

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:
        """Its act was begun, and the run was asked to stop before anything was done: it is as before."""
        ...

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:
        """Its next stage is for a later run: say what was done so far, in the transaction that says so."""
        ...

    def settle(self, result: ActResult, after: Inventory) -> Settlement:
        """What became of what it owns, by what `after` and a listing show; never by what the executor said."""
        ...


class Executor(Protocol):
    """Carries out the stages of one kind of act. The engine asks it for one stage of many acts, several at once."""

    def commit(self, result: ActResult) -> ActResult:
        """Change metadata as the act's first stage says. Asked again after a crash it does what is left of it."""
        ...

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:
        """Remove the files of the act that nothing needs (`result.deletes`).

        `also` are such as earlier acts named and left, for formats whose own operation is the only way to remove them.
        """
        ...
