"""`ebbtide ledger`: the door to what was done and can be proved. `check` has a door of its own (`ledger_check.py`).

`checkpoint`, `entry` and `prove` write the very bytes that others verify to stdout, and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.app.results.ledger import Audit, Export, Inclusion, Leaf, LedgerKey, Pruned, SignedCheckpoint
from ebbtide.cli import ledger_log, render, running
from ebbtide.cli.options import DryRunOption, JsonOption, ProjectOption, project_file
from ebbtide.errors import RefusedError

if TYPE_CHECKING:
    from ebbtide.app.ledger import Ledger

app = typer.Typer(no_args_is_help=True, help="The ledger: what was done, signed and provable by anyone.")

app.command()(ledger_log.log)

IndexArgument = Annotated[int, typer.Argument(help="The entry's index, from 0.")]


def _open(ctx: typer.Context, project: Path | None) -> Ledger:
    from ebbtide.app.ledger import open_ledger

    return open_ledger(project_file(ctx, project))


def _tell(ledger: Ledger) -> None:
    for notice in ledger.notices:
        render.note(notice)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@app.command()
def init(
    ctx: typer.Context,
    origin: Annotated[
        str | None, typer.Option(help="Whose ledger it is: a schema-less URL such as example.org/acme. Set once.")
    ] = None,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Make the ledger: its origin, its key and its first entry. Doing it again changes nothing."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    if dry_run:
        with ledger.reading() as log:
            size = log.size
        render.note(f"the ledger has {size} entries already" if size else "would make origin, key and first entry")
        return
    key = use.init(ledger, origin=origin)
    _tell(ledger)
    if json:
        render.write_json(LedgerKey.of(key).to_dict())
    else:
        _write(f"{key.encode()}\n".encode())


@app.command()
def key(
    ctx: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Rotated keys too, each with the size it is trusted up to: a key file.")
    ] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Print the key that verifies the ledger's signatures."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    trust = use.keys(ledger)
    _tell(ledger)
    chosen = trust.ledger if every else trust.ledger[-1:]
    if json:
        render.write_json([{"key": trusted.key.encode(), "until": trusted.until} for trusted in chosen])
    else:
        _write("".join(f"{trusted.line()}\n" for trusted in chosen).encode())


@app.command()
def checkpoint(
    ctx: typer.Context,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Begin on this host, which has no copy of the last checkpoint yet. Once.")
    ] = False,
    up_to: Annotated[
        int | None,
        typer.Option(help="With --adopt: the size up to which entries are taken over that nobody signed. Look first."),
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Print the signed checkpoint of everything that was appended to the ledger."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    with running.shown("signing"):
        note = use.checkpoint(ledger, adopt=adopt, up_to=up_to)
    _tell(ledger)
    if json:
        render.write_json(SignedCheckpoint.of(note).to_dict())
    else:
        _write(note.encode())


@app.command()
def entry(ctx: typer.Context, index: IndexArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Print the exact bytes of an entry: canonical JSON without a newline, the Merkle leaf."""
    from ebbtide.app import ledger as use

    with running.shown("reading the ledger"):
        found = use.entry(_open(ctx, project), index)
    if json:
        render.write_json(Leaf(index, found.leaf_hash.hex(), found.leaf.decode()).to_dict())
    else:
        _write(found.leaf)


@app.command()
def prove(ctx: typer.Context, index: IndexArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Print the proof that an entry is in the ledger (C2SP tlog-proof)."""
    from ebbtide.app import ledger as use

    with running.shown("reading the ledger"):
        proof = use.prove(_open(ctx, project), index)
    if json:
        render.write_json(Inclusion(index, proof.checkpoint.size, proof.encode().decode()).to_dict())
    else:
        _write(proof.encode())


@app.command()
def rotate(
    ctx: typer.Context, project: ProjectOption = None, dry_run: DryRunOption = False, json: JsonOption = False
) -> None:
    """Let a new key sign from now on. The old one is trusted up to the size of the ledger at this moment."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    if dry_run:
        render.note("would make a new key, and sign one checkpoint with both")
        return
    new = use.rotate(ledger)
    _tell(ledger)
    if json:
        render.write_json(LedgerKey.of(new).to_dict())
    else:
        _write(f"{new.encode()}\n".encode())
    render.note("give verifiers the keys that `ebbtide ledger key --all` prints")


_DO = (
    "do: sign nothing; `ebbtide ledger check` an export or a copy of a checkpoint from before against what is here, "
    "and bring the database back from the last backup that holds"
)


@app.command()
def audit(ctx: typer.Context, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Hold the whole database against everything that was signed. Exit 1 when something is not what it was."""
    from ebbtide.app import ledger as use

    with running.shown("reading the ledger"):
        report = use.audit(_open(ctx, project))
    if json:
        render.write_json(Audit.of(report).to_dict())
    for finding in report.findings:
        render.complain(str(finding), None)
    render.note(
        f"entries: {report.entries} ({report.pruned} pruned), checkpoints: {report.checkpoints}, "
        f"attachments: {report.attachments}, copies outside: {len(report.copies)}"
    )
    if report.unsigned:
        sign = "" if report.findings else "; `ebbtide ledger checkpoint` signs them"
        render.note(f"the last {report.unsigned} entries are not signed yet{sign}")
    if not report:
        render.note(_DO)
        raise typer.Exit(1)
    render.note("everything is what was signed")


@app.command()
def witness(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(help="The witness's submission prefix, before /add-checkpoint.")],
    key: Annotated[str, typer.Argument(help="The witness's verifier key: name+hash+base64.")],
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Ask a witness to cosign the last checkpoint, and print it with the cosignature."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    if dry_run:
        render.note(f"would send the last checkpoint to {url}")
        return
    with running.shown("asking the witness"):
        note = use.witness(ledger, url, key)
    _tell(ledger)
    _write(note.encode())


@app.command()
def prune(
    ctx: typer.Context,
    before: Annotated[str, typer.Option(help="Bodies of entries from before this date or instant go.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Remove the bodies of old entries. Their hashes stay, and so do all proofs."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    planned = use.prune(ledger, before, dry_run=True)
    if not dry_run and planned.bodies and not yes:
        if not sys.stdin.isatty():
            raise RefusedError(f"{planned.bodies} bodies would be removed", hint="say --yes where no one can be asked")
        typer.confirm(f"Remove the bodies of {planned.bodies} entries?", abort=True, err=True)
    with running.shown("pruning"):
        done = planned if dry_run or not planned.bodies else use.prune(ledger, before)
    if json:
        render.write_json(Pruned.of(done).to_dict())
    would = "would remove" if dry_run else "removed"
    render.note(f"{would} {done.bodies} bodies and {len(done.attachments)} attachments")


@app.command()
def export(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where the tiles go; a folder that anyone may serve.")],
    project: ProjectOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Write the ledger as static files (C2SP tlog-tiles). Running again adds what is new."""
    from ebbtide.app import ledger as use

    ledger = _open(ctx, project)
    if dry_run:
        render.note(f"would write the ledger as tiles to {folder}")
        return
    with running.shown("writing tiles"):
        done = use.export(ledger, folder)
    if json:
        render.write_json(Export(str(folder), done.written, done.minimum_index).to_dict())
    render.note(f"{done.written} new tiles in {folder}")
    if done.minimum_index:
        render.note(f"entries are served from index {done.minimum_index} on: bodies before it were pruned")


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def check(ctx: typer.Context) -> None:
    """Check a certificate, a proof or an exported ledger offline, without project, state or Spark."""
    from ebbtide.cli.ledger_check import main

    raise typer.Exit(main(ctx.args))
