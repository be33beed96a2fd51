"""`Ebbtide.erase`: the verbs of `ebbtide erase` on one project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ebbtide.app.results.built import built, built_rows
from ebbtide.app.results.erasure import (
    CertificateWritten,
    ErasePlanResult,
    EraseRunResult,
    FindResult,
    RequestFiled,
    RequestRow,
    RequestsFiled,
    RequestStatus,
    VerifyResult,
)
from ebbtide.app.results.shown import ResultRows
from ebbtide.app.verb import verb
from ebbtide.config import Project
from ebbtide.model.times import in_utc
from ebbtide.run import RunContext

Subject = Mapping[str, str | Sequence[str]]
"""What is known of a person: values by identity, as in `{"user_id": "…"}`. No result, log or error shows one."""


class EraseVerbs:
    """Requests of people, what is held of them, and the proof that nothing is left."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @verb
    def request(
        self,
        subject: Subject,
        *,
        law: str,
        received: datetime | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> RequestFiled:
        """File a request for one person. Who has an open one gets no second: it is named again."""
        from ebbtide.app.erase_request import file_request

        done = file_request(
            self._project, subject, law=law, received=received and in_utc(received), as_of=as_of, dry_run=dry_run,
            context=context,
        )  # fmt: skip
        return RequestFiled(done.requests[0] if done.requests else None, bool(done.known))

    @verb
    def requests_from(
        self,
        path: str | Path,
        *,
        law: str,
        received: datetime | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> RequestsFiled:
        """File a request for everybody in a CSV or JSON-lines file. Bad lines are in the result; the rest is filed."""
        from ebbtide.app.as_json import as_json
        from ebbtide.app.erase_request import file_requests_from

        done = file_requests_from(
            self._project, Path(path), law=law, received=received and in_utc(received), as_of=as_of, dry_run=dry_run,
            context=context,
        )  # fmt: skip
        filed = len(done.requests) - done.known if done.would_file is None else done.would_file
        bad = [as_json(line) for line in done.bad]
        row = {"filed": filed, "known": done.known, "requests": done.requests, "bad": bad}
        return built(RequestsFiled, row)

    @verb
    def list(self, *, only_open: bool = False) -> ResultRows[RequestRow]:
        """Every request with its deadline, the next one first. Nobody is named."""
        from ebbtide.app.erase_request import list_requests

        return built_rows(RequestRow, list_requests(self._project, only_open=only_open))

    @verb
    def extend(
        self,
        request: str,
        *,
        until: datetime,
        reason: str,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> RequestRow:
        """Give a request a later deadline, within what its law allows. The person is to be told of it, and why."""
        from ebbtide.app.erase_extend import extend_request

        done = extend_request(
            self._project, request, until=in_utc(until), reason=reason, as_of=as_of, dry_run=dry_run, context=context
        )
        return built(RequestRow, done)

    @verb
    def find(
        self,
        *requests: str,
        subject: Subject | None = None,
        rows: str | Path | None = None,
        context: RunContext | None = None,
    ) -> ResultRows[FindResult]:
        """What is held of the people of these requests, or of one person without any. `rows` is a new file for the
        person's own rows, a JSON object a line.
        """
        from ebbtide.app.erase_find import find_people

        file = None if rows is None else Path(rows)
        return built_rows(FindResult, find_people(self._project, requests, subject=subject, rows=file, context=context))

    @verb
    def plan(
        self,
        *requests: str,
        at_once: bool = False,
        most_share: float | None = None,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> ErasePlanResult:
        """What becomes of every place of these requests, or of all that are open: decisions, reasons, costs. Nothing is
        written but the inventory. `at_once` passes the cool-off.
        """
        from ebbtide.app.erase_run import plan_requests

        found = plan_requests(
            self._project, requests, at_once=at_once, most_share=most_share, as_of=as_of, context=context
        )
        return built(ErasePlanResult, found)

    @verb
    def run(
        self,
        *requests: str,
        at_once: bool = False,
        most_share: float | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> EraseRunResult:
        """Erase the people of these requests, or of all that are open, in one batch. Files that were replaced go with a
        later run, once readers in flight have finished (`erasure: {reader_window: 1h}`).
        """
        from ebbtide.app.erase_run import run_erasure

        done = run_erasure(
            self._project, requests, at_once=at_once, most_share=most_share, dry_run=dry_run, as_of=as_of,
            context=context,
        )  # fmt: skip
        return built(EraseRunResult, done)

    @verb
    def status(self, request: str) -> RequestStatus:
        """One request with its deadline, and what became of each place."""
        from ebbtide.app.erase_status import request_status

        return built(RequestStatus, request_status(self._project, request))

    @verb
    def verify(
        self,
        *requests: str,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> ResultRows[VerifyResult]:
        """Read every object that lies in storage and search it for these people: a grade each, and what was found."""
        from ebbtide.app.erase_verify import verify_requests

        found = verify_requests(self._project, requests, dry_run=dry_run, as_of=as_of, context=context)
        return built_rows(VerifyResult, found)

    @verb
    def certificate(
        self,
        request: str,
        file: str | Path,
        *,
        opening: str | Path | None = None,
        dry_run: bool = False,
        as_of: datetime | None = None,
        context: RunContext | None = None,
    ) -> CertificateWritten:
        """Certify a request that was verified and write its certificate, with what opens it in a file of its own
        (`opening.json` beside it), which is personal data.
        """
        from ebbtide.app.erase_verify import write_certificate

        done = write_certificate(
            self._project, request, Path(file), opening=None if opening is None else Path(opening), dry_run=dry_run,
            as_of=as_of, context=context,
        )  # fmt: skip
        return built(CertificateWritten, done)
