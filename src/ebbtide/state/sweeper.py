"""What only the sweeper writes: marks and runs. `Database.sweeper(lease)` is the one way to get this class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from ebbtide.errors import InputError, RefusedError
from ebbtide.state import act_files, tables
from ebbtide.state.values import ActRecord, Hold, Mark, Marking, MarkState, ObjectKey, Proposal, RunRecord
from ebbtide.state.writer import StateWriter, new_id, new_salt


class SweepWriter(StateWriter):
    """A writer whose lease was proved in this transaction. `fence` is its number."""

    def __init__(self, connection: Connection, *, fence: int) -> None:
        super().__init__(connection)
        self.fence = fence

    def mark(self, proposals: Sequence[Proposal], *, run: str, at: datetime) -> tuple[Marking, ...]:
        """Mark what is neither marked nor pinned. Marking again keeps the first mark as it was (spec §1).

        Unmarks and holds by name are read here, in the transaction that marks. Holds on subjects are the plan's to
        trace: this room does not know whose rows an object carries.
        """
        marked = {mark.key: mark for mark in self.marks(datasets={proposal.key.dataset for proposal in proposals})}
        unmarked = {(pin.dataset, pin.object): f"unmark {pin.id}" for pin in self.unmarks() if pin.active(at)}
        held: dict[str | None, list[Hold]] = {}
        for hold in self.holds():
            held.setdefault(hold.dataset, []).append(hold)
        answers: list[Marking] = []
        for proposal in proposals:
            key = proposal.key
            covering = (
                f"hold {hold.id}" for hold in held.get(key.dataset, ()) if hold.covers(key.dataset, proposal.days)
            )
            if pinned_by := next(covering, None) or unmarked.get((key.dataset, key.object)):
                answers.append(Marking(proposal=proposal, mark=None, is_new=False, pinned_by=pinned_by))
            elif first := marked.get(key):
                answers.append(Marking(proposal=proposal, mark=first, is_new=False))
            else:
                marked[key] = new = _new_mark(proposal, run, at)
                answers.append(Marking(proposal=proposal, mark=new, is_new=True))
        if rows := [_row(answer.mark) for answer in answers if answer.mark and answer.is_new]:
            self.connection.execute(insert(tables.marks), rows)
        return tuple(answers)

    def begin(self, mark_ids: Sequence[str], *, act: str) -> None:
        """An intent to sweep these is being written: from here on a person can no longer rescue them."""
        for mark_id in mark_ids:
            self._set_mark(mark_id, MarkState.SWEEPING, act=act)

    def begin_act(self, act_id: str, *, head: str | None, files: Mapping[str, int]) -> ActRecord:
        """Keep what the intent of an act holds in keyed forms only: what recovers a crash needs it (spec §5)."""
        record = ActRecord(id=act_id, head=head, salt=new_salt())
        self.connection.execute(insert(tables.acts), [asdict(record)])
        act_files.keep(self.connection, act_id, files)
        return record

    def pause_act(self, act_id: str) -> None:
        """The next stage of an act is for a later run: its intent stays open, and its list is kept."""
        if act_id not in self.paused_acts():
            self.connection.execute(insert(tables.paused_acts), [{"act": act_id}])

    def resume_act(self, act_id: str) -> None:
        """A later run goes on with an act. One that dies in it is closed like any other."""
        gone = self.connection.execute(delete(tables.paused_acts).where(tables.paused_acts.c.act == act_id))
        if gone.rowcount != 1:
            raise RefusedError(f"act {act_id} is not paused", hint="plan again")

    def leave(self, act_id: str, files: Mapping[str, int]) -> None:
        """An act is over and left these. Lists that no open mark needs are dropped, this one included."""
        self.forget_files()
        waiting = select(tables.marks.c.id).where(tables.marks.c.act == act_id, tables.marks.c.closed_at.is_(None))
        if self.connection.execute(waiting.limit(1)).first() is not None:
            act_files.keep(self.connection, act_id, files)

    def forget_files(self) -> None:
        """Drop the lists of acts that no open mark needs."""
        act_files.forget(self.connection)

    def acted(self, mark_id: str, *, at: datetime | None) -> Mark:
        """Rows were deleted under this mark: what is left of them lies in versions from before. None: it is to be done
        again.
        """
        return self._set_mark(mark_id, self.get_mark(mark_id).state, acted_at=at)

    def wait(self, mark_id: str, *, waits_for: Sequence[str]) -> Mark:
        """The object's files are still referenced: it waits, and says for what."""
        if not waits_for:
            raise InputError("a waiting object must name what it waits for", hint="pass `waits_for`")
        return self._set_mark(mark_id, MarkState.WAITING, waits_for=tuple(waits_for))

    def rebind(self, mark_id: str, *, fingerprint: str) -> Mark:
        """What the mark saw was rewritten by an erasure, and by nobody else."""
        found = self.get_mark(mark_id)
        return self._set_mark(mark_id, found.state, fingerprint=fingerprint, waits_for=found.waits_for)

    def sweep(self, mark_id: str, *, because: str, at: datetime, carried_into: Sequence[str] = ()) -> Mark:
        """A listing after the act showed that nothing of the object is left, but for what others have by now."""
        more = {}
        if carried_into:
            facts = json.loads(self.get_mark(mark_id).facts or "{}")
            more["facts"] = json.dumps(facts | {"carried_into": list(carried_into)})
        return self._set_mark(mark_id, MarkState.SWEPT, closed_at=at, closed_because=because, **more)

    def send_back(self, mark_id: str, *, because: str, at: datetime) -> Mark:
        """The sweep could not prove again what the mark saw: the object stays (`unmarked: reason`)."""
        return self._set_mark(mark_id, MarkState.UNMARKED, closed_at=at, closed_because=because)

    def start_run(self, verb: str, *, at: datetime, actor: str | None = None) -> RunRecord:
        """A run of this sweeper begins."""
        return self.begin_run(verb, actor=actor, at=at, fence=self.fence)

    def finish_run(self, run_id: str, *, exit_code: int, summary: str, at: datetime) -> RunRecord:
        """A run ended, or was found dead by the next sweeper."""
        if self.get_run(run_id).finished_at is not None:
            raise RefusedError(f"run {run_id} is finished already", hint="start a new one")
        values = {"finished_at": at, "exit_code": exit_code, "summary": summary}
        self.connection.execute(update(tables.runs).where(tables.runs.c.id == run_id).values(values))
        return self.get_run(run_id)


def _new_mark(proposal: Proposal, run: str, at: datetime) -> Mark:
    return Mark(
        id=new_id(),
        key=proposal.key,
        policy=proposal.policy,
        because=proposal.because,
        fingerprint=proposal.fingerprint,
        frozen=proposal.frozen,
        files=proposal.files,
        facts=_facts(proposal),
        rows=proposal.rows,
        bytes=proposal.bytes,
        run=run,
        marked_at=at,
        grace_until=proposal.grace_until,
        state=MarkState.MARKED,
        waits_for=(),
        closed_at=None,
        closed_because=None,
        salt=new_salt(),
    )


def _facts(proposal: Proposal) -> str | None:
    if proposal.key.target != "partitions" or proposal.days is None:
        return proposal.facts
    return json.dumps({"days": [day.isoformat() for day in proposal.days]})


def _row(mark: Mark) -> dict[str, object]:
    row = asdict(mark)
    key: ObjectKey = mark.key
    del row["key"]
    return row | {"dataset": key.dataset, "target": key.target, "object": key.object}
