"""`Ebbtide.tier`: the verbs of `ebbtide tier`, one method each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.app.results.shown import ResultRows
from ebbtide.config import Project

if TYPE_CHECKING:
    from ebbtide.app.results.tier import HotTableStatus, TierChange, TierResult
    from ebbtide.run import RunContext


@dataclass(frozen=True, slots=True)
class TierVerbs:
    """The hot tier of one project. No method starts a JVM."""

    project: Project

    def init(self, *, dry_run: bool = False) -> TierChange:
        """Bring Ebbtide's functions and event triggers to the servers; a superuser does it once."""
        from ebbtide.app.tier_setup import init

        return init(self.project, dry_run=dry_run)

    def add(
        self, table: str, *, partition: bool = False, dry_run: bool = False, context: RunContext | None = None
    ) -> TierChange:
        """Adopt a table's chunks, and copy and mirror it into its cold table where it has one.

        `partition`: a plain table becomes a partitioned one first, while it is in use.
        """
        from ebbtide.app.tier_setup import add

        return add(self.project, table, partition=partition, dry_run=dry_run, context=context)

    def resync(
        self, table: str, *, confirm: bool = False, dry_run: bool = False, context: RunContext | None = None
    ) -> TierChange:
        """Copy what is in the hot tier again; rows that are in the lake only stay. `confirm`: what went is meant."""
        from ebbtide.app.tier_setup import resync

        found = resync(self.project, table, confirm=confirm, dry_run=dry_run, context=context)
        if dry_run:
            from ebbtide.app.tier_opened import refuse_not_as_added

            refuse_not_as_added(self.project, table)
        return found

    def remove(self, table: str, *, dry_run: bool = False, context: RunContext | None = None) -> TierChange:
        """End the mirror of a table and forget its chunks. No row goes."""
        from ebbtide.app.tier_remove import remove

        return remove(self.project, table, dry_run=dry_run, context=context)

    def sync(
        self, table: str | None = None, *, confirm: bool = False, context: RunContext | None = None
    ) -> ResultRows[TierResult]:
        """Mirror what is new. `confirm`: what stopped the mirror of this table is meant."""
        from ebbtide.app.tier import confirm as confirm_table
        from ebbtide.app.tier import run_tier
        from ebbtide.errors import InputError

        if confirm:
            if table is None:
                raise InputError("--confirm needs a table", hint="name the one whose mirror stopped")
            confirm_table(self.project, table, context=context)
        return ResultRows(run_tier(self.project, only=table, sync_only=True, context=context))

    def run(
        self,
        table: str | None = None,
        *,
        as_of: datetime | None = None,
        dry_run: bool = False,
        context: RunContext | None = None,
    ) -> ResultRows[TierResult]:
        """Mirror, prove and drop what is due. What fails is in the results, and not raised."""
        from ebbtide.app.tier import run_tier

        return ResultRows(run_tier(self.project, only=table, as_of=as_of, dry_run=dry_run, context=context))

    def drop(
        self,
        table: str,
        chunk: str | None = None,
        *,
        force: bool = False,
        as_of: datetime | None = None,
        dry_run: bool = False,
        context: RunContext | None = None,
    ) -> TierResult:
        """Drop chunks past `drop_after`. `force` passes the gate, never a hold, and is in the ledger."""
        from ebbtide.app.tier import drop_chunks

        return drop_chunks(self.project, table, chunk, force=force, as_of=as_of, dry_run=dry_run, context=context)

    def untier(self, table: str, chunk: str, *, dry_run: bool = False, context: RunContext | None = None) -> TierChange:
        """Bring a dropped chunk back from the lake, equal by digest."""
        from ebbtide.app.tier_untier import untier

        return untier(self.project, table, chunk, dry_run=dry_run, context=context)

    def status(self, table: str | None = None) -> ResultRows[HotTableStatus]:
        """Each table's mirror and chunks, as the last run saw them."""
        from ebbtide.app.tier_status import hot_status

        return ResultRows(hot_status(self.project, table))
