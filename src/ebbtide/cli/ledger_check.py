"""`ebbtide ledger check`: the door for whoever holds a certificate, a proof or an exported ledger, and nothing else.

It starts several times faster than the other verbs, because it loads neither typer nor Spark nor a database: argparse
reads the arguments, and what checks is imported after that.

Exit codes: 0 it holds; 1 it was read and is false; 2 it, the keys, the entry or the opening cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, TextIO

from ebbtide.cli.visible import visible
from ebbtide.errors import InputError, ProofError

if TYPE_CHECKING:
    from ebbtide.app.ledger_check import CheckReport

_WIDEST = 400
_HELP_WIDTH = 100


def main(argv: list[str]) -> int:
    """Check one file or folder and say what was found. `argv` is what follows `ledger check`."""
    try:
        asked = _arguments().parse_args(argv)
    except SystemExit as leaving:
        # argparse leaves by itself: 0 after --help, 2 after wrong arguments.
        return leaving.code if isinstance(leaving.code, int) else InputError.exit_code
    from ebbtide.app.ledger_check import check_file

    report = check_file(
        asked.file, asked.key, entry=asked.entry, opening=asked.opening, simulated=asked.simulated
    )  # fmt: skip
    if asked.json:
        _print_json(report)
    else:
        _print_text(report, asked.file)
    return report.exit_code


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ebbtide ledger check",
        description="Check a certificate, the proof of an entry or an exported ledger offline, step by step: exit 0 if "
        "it holds, 1 if it is false, 2 if unreadable.",
        # With a width of its own it need not ask the terminal, for which it would load shutil and all compressions.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=_HELP_WIDTH),
    )
    parser.add_argument("file", help="a certificate.json, a tlog-proof, or the folder of an exported ledger")
    parser.add_argument("--key", required=True, help="file of the ledger's verifier keys and witnesses', one a line")
    parser.add_argument("--entry", help="the bytes of the entry that a tlog-proof is of, as `ledger entry` prints them")
    parser.add_argument("--opening", help="the opening.json: check also whom the certificate is about")
    parser.add_argument("--simulated", action="store_true", help="accept entries of a simulated clock (rehearsals)")
    parser.add_argument("--json", action="store_true", help="write the result as JSON")
    return parser


def _print_json(report: CheckReport) -> None:
    import json

    result: dict[str, object] = {"ok": bool(report), "request": report.request, "time": report.time}
    result["steps"] = [step._asdict() for step in report.steps]
    if error := report.failed:
        failed: dict[str, object] = {"message": error.message, "hint": error.hint}
        if report.steps:
            failed |= {"step": report.steps[-1].number, "name": report.steps[-1].name}
        if isinstance(error, ProofError):
            failed |= {"what": error.what, "expected": error.expected, "found": error.found}
        result["failed"] = failed
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def _print_text(report: CheckReport, path: str) -> None:
    for step in report.steps:
        _say(sys.stdout, f"{step.number:2} {step.name:12} {'ok' if step.ok else 'FAILED':7} {step.says}")
    if report.failed is None:
        _say(sys.stdout, f"{path} holds; its time is {report.time}")
        return
    where = f"step {report.steps[-1].number}, {report.steps[-1].name}: " if report.steps else ""
    _say(sys.stderr, f"error: {where}{report.failed.message}")
    if report.failed.hint:
        _say(sys.stderr, f"hint: {report.failed.hint}")


def _say(stream: TextIO, line: str) -> None:
    """Write a line of which parts come from a stranger's file: cut, and with nothing that a terminal would obey."""
    if len(line) > _WIDEST:
        line = f"{line[:_WIDEST]}… ({len(line)} characters)"
    line = visible(line)
    encoding = stream.encoding or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
