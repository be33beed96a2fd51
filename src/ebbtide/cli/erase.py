"""`ebbtide erase`: parse, call `app`, render. Values of people come in here and are shown nowhere."""

from __future__ import annotations

import csv as csv_
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli import erasing, render, running
from ebbtide.cli.options import (
    DryRunOption,
    JsonOption,
    ProjectOption,
    SubjectOption,
    YesOption,
    open_project,
    sure,
    time_of,
)
from ebbtide.cli.render import escape
from ebbtide.cli.subject import subject_of
from ebbtide.errors import InputError

if TYPE_CHECKING:
    from ebbtide.app.results.erasure import VerifyResult

app = typer.Typer(no_args_is_help=True, help="Requests of people: what is held of them, and the proof of what is not.")

_AsOf = Annotated[
    str | None, typer.Option("--as-of", help="The time that counts; only where the project's clock is simulated.")
]
_Requests = Annotated[list[str] | None, typer.Argument(help="Ids of requests.")]


@app.command()
def request(
    ctx: typer.Context,
    law: Annotated[str, typer.Option(help="The clock that runs: gdpr, dpdp, promise, or one of laws.yml.")],
    subject: SubjectOption = None,
    file: Annotated[
        Path | None, typer.Option("--from", help="Many people: CSV named by identities, or a JSON object a line.")
    ] = None,
    received: Annotated[str | None, typer.Option(help="When it came in: a date or an instant. [default: now]")] = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """File an erasure request, and print its id. Who has an open one gets no second.

    With --from lines that are wrong are told by number, the others are filed, and the exit code is 2.
    """
    if bool(subject) == (file is not None):
        raise InputError("nobody is named", hint="name one person with --subject, or many with --from; not both")
    erase, came = open_project(ctx, project).erase, time_of(received)
    with running.shown("file requests", as_of=time_of(as_of)) as context:
        if file is None:
            one = erase.request(subject_of(subject or ()), law=law, received=came, dry_run=dry_run, context=context)
            many = None
        else:
            many = erase.requests_from(file, law=law, received=came, dry_run=dry_run, context=context)
    if many is None:
        if json:
            render.write_json({"id": one.id, "known": one.known})
        elif one.id is not None:
            sys.stdout.write(f"{one.id}\n")
        render.note("would be filed" if dry_run else "it was filed before, and is open" if one.known else "filed")
        return
    if json:
        render.write_json(many.to_dict())
    else:
        sys.stdout.writelines(f"{each}\n" for each in many.requests)
    for line in many.bad:
        render.complain(f"line {line.line}: {line.because}", line.hint)
    said = "would be filed" if dry_run else "filed"
    render.note(f"{many.filed} {said}, {many.known} had an open request, {len(many.bad)} lines are wrong")
    if many.bad:
        raise typer.Exit(2)


@app.command("list")
def list_(
    ctx: typer.Context,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that are not closed.")] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show every request with its deadline, the next one first. Nobody is named."""
    found = open_project(ctx, project).erase.list(only_open=only_open)
    if json:
        render.write_json(found.to_dicts())
        return
    shown = render.table("request", "law", "state", "received (UTC)", "deadline (UTC)")
    for row in found:
        shown.add_row(row.id, escape(row.law), row.state, _when(row.received_at), _when(row.deadline))
    render.rows(shown, "none: nobody asked" if not only_open else "none is open")


@app.command()
def extend(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="The id of a request.")],
    until: Annotated[str, typer.Option("--until", help="The new deadline: a date or an instant.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; stays in the state.")],
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Give a request a later deadline, before the one that it has, and within what its law allows (exit 3)."""
    at = time_of(until)
    assert at is not None
    context = running.context(as_of=time_of(as_of))
    found = open_project(ctx, project).erase.extend(request, until=at, reason=reason, dry_run=dry_run, context=context)
    if json:
        render.write_json(found.to_dict())
    said = "would be" if dry_run else "is"
    render.note(f"{found.id} {said} due {_when(found.deadline)} (UTC): tell the person, and why")


def _when(text: str) -> str:
    return text[:19].replace("T", " ")


@app.command()
def find(
    ctx: typer.Context,
    requests: _Requests = None,
    subject: SubjectOption = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", help="Write the person's own rows to this new file, for its owner only.")
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Rows as CSV on stdout.")] = False,
) -> None:
    """Show what is held of a person: rows in every dataset, branch, tag and version.

    Exit 4 where a place could not be read.
    """
    if json and csv:
        raise typer.BadParameter("--json and --csv both write to stdout: give one of them")
    tide = open_project(ctx, project)
    person = subject_of(subject) if subject else None
    with running.shown("scan", as_of=None) as context:
        found = tide.erase.find(*(requests or ()), subject=person, rows=rows, context=context)
    if json:
        dicts = found.to_dicts()
        render.write_json(dicts[0] if len(dicts) == 1 else dicts)
    lines = [
        (each.id or "", held.dataset, held.ref, str(held.rows), " ".join(held.columns))
        for each in found
        for held in each.places
    ]
    if csv:
        made = io.StringIO()
        writer = csv_.writer(made, lineterminator="\n")
        writer.writerows([("request", "dataset", "ref", "rows", "columns"), *lines])
        sys.stdout.write(made.getvalue())
        sys.stdout.flush()
    elif not json:
        shown = render.table("request", "dataset", "ref", ">rows", "columns")
        for line in lines:
            shown.add_row(*(escape(text) for text in line))
        render.rows(shown, "none: nothing that is read holds them")
    missed = found[0].not_reachable
    for one in missed:
        render.note(f"not looked at: {one.place}: {one.because}")
    datasets = {held.dataset for each in found for held in each.places}
    render.note(f"{sum(len(each.places) for each in found)} places in {len(datasets)} datasets")
    if any(one.failed for one in missed):
        raise typer.Exit(4)


_Now = Annotated[bool, typer.Option("--now", help="Do not wait for the cool-off of young requests; it is recorded.")]
_MaxShare = Annotated[
    float | None,
    typer.Option("--max-share", min=0, max=1, help="Let a request match this share of a table's rows. [default: 0.01]"),
]


@app.command()
def plan(
    ctx: typer.Context,
    requests: _Requests = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="PLACE", help="One place in full: a dataset, a copy, what is missed."),
    ] = None,
    now: _Now = False,
    max_share: _MaxShare = None,
    project: ProjectOption = None,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Show what becomes of every place that holds these people, or those of all open requests. Nothing is erased.

    Exit 3 where a request matches too much, 4 where a place could not be read.
    """
    tide = open_project(ctx, project)
    with running.shown("scan", as_of=time_of(as_of)) as context:
        found = tide.erase.plan(*(requests or ()), at_once=now, most_share=max_share, context=context)
    place = None if explain is None else erasing.place_of(found, explain)
    if json:
        render.write_json((place or found).to_dict())
    elif place is not None:
        erasing.show_place(place)
    else:
        erasing.show_plan(found)
    if found.failed:
        raise typer.Exit(4)
    if any(each.decision == "refused" for each in found.requests):
        raise typer.Exit(3)


@app.command()
def run(
    ctx: typer.Context,
    requests: _Requests = None,
    now: _Now = False,
    max_share: _MaxShare = None,
    yes: YesOption = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Erase the people of these requests, or of all open ones, in one batch: rows, versions and traces.

    Files that were replaced go with a later run, after readers in flight. Exit 3 where a request matches too much, 4
    where something failed or was left.
    """
    tide, at = open_project(ctx, project), time_of(as_of)
    sure(yes, dry_run, "Erase these people everywhere?")
    with running.shown("scan", as_of=at) as context:
        done = tide.erase.run(*(requests or ()), at_once=now, most_share=max_share, dry_run=dry_run, context=context)
    if json:
        render.write_json(done.to_dict())
    else:
        erasing.show_run(done, dry_run=dry_run)
    if done.exit_code:
        raise typer.Exit(done.exit_code)


@app.command()
def status(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="The id of a request.")],
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show one request: its state, its deadline, and what became of each place."""
    found = open_project(ctx, project).erase.status(request)
    if json:
        render.write_json(found.to_dict())
        return
    render.out().print(f"{found.id}: {found.state}, due {_when(found.deadline)} by {escape(found.law)}", soft_wrap=True)
    if found.steps:
        shown = render.table("place", "kind", "state", "because")
        for step in found.steps:
            shown.add_row(escape(step.place), step.kind, step.state, escape(step.because))
        render.out().print(shown)


@app.command()
def verify(
    ctx: typer.Context,
    requests: Annotated[list[str], typer.Argument(help="Ids of requests.")],
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Read every object that lies in storage and search it for these people, whoever references it.

    A: every byte was read, and is clean. B: clean, and something could not be told. F: found. Exit 1 where one is F.
    """
    tide = open_project(ctx, project)
    with running.shown("scan", as_of=time_of(as_of)) as context:
        found = tide.erase.verify(*requests, dry_run=dry_run, context=context)
    if json:
        dicts = found.to_dicts()
        render.write_json(dicts[0] if len(dicts) == 1 else dicts)
    else:
        for each in found:
            read = f"{each.files} objects, {render.size(each.bytes)} read"
            render.out().print(f"{each.id}: {each.grade} ({read})", soft_wrap=True)
            _show_found(each)
    if dry_run:
        render.note("nothing was recorded")
    if failed := [each.id for each in found if each.grade == "F"]:
        ids = " ".join(failed)
        render.note(f"do: `ebbtide erase run {ids}` takes what is left, then `ebbtide erase verify {ids}` looks again")
        raise typer.Exit(1)


_MOST = 20


def _show_found(found: VerifyResult) -> None:
    if found.found:
        shown = render.table("found in", "role", "how", "where", "referenced by")
        for one in found.found[:_MOST]:
            by = ", ".join(one.referenced_by) or "nothing"
            shown.add_row(*(escape(text) for text in (one.path, one.role, one.how, one.where, by)))
        render.out().print(shown)
    if any(each.role == "unreferenced" for each in found.found):
        render.note(
            "what nothing references is an orphan: a policy's `orphans` takes it, `ebbtide orphans list` shows it"
        )
    if found.left:
        render.note(f"{len(found.left)} times found where it is left for a reason: `ebbtide erase status` says which")
    for each in found.cannot_tell[:_MOST]:
        render.note(f"cannot tell: {each.path}: {each.because}")
    more = max(0, len(found.found) - _MOST), max(0, len(found.cannot_tell) - _MOST)
    if any(more):
        render.note(f"{more[0]} more found, {more[1]} more cannot be told; --json shows all")


@app.command()
def certificate(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="The id of a request that was verified.")],
    file: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the certificate is written.")],
    opening: Annotated[
        Path | None,
        typer.Option(help="Where its opening is written, for its owner only. [default: opening.json beside FILE]"),
    ] = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    as_of: _AsOf = None,
) -> None:
    """Certify a request that was verified, and write its certificate: `ebbtide ledger check` needs nothing else.

    The opening holds the person's identifiers: it is for the person, or an auditor. It is not written again.
    """
    tide = open_project(ctx, project)
    with running.shown("certifying", as_of=time_of(as_of)) as context:
        done = tide.erase.certificate(request, file, opening=opening, dry_run=dry_run, context=context)
    if json:
        render.write_json(done.to_dict())
    verb = "would be written" if dry_run else "written"
    render.note(f"{done.id}: {done.state}; {done.certificate} {verb}")
    if done.opening:
        render.note(f"{done.opening} {verb}: personal data, and the only copy of what opens the certificate")
