"""Writes docs/commands.md from the command line itself, and from the classes of errors: `make docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from ebbtide import errors
from ebbtide.cli.commands import app
from ebbtide.cli.ledger_check import _arguments
from ebbtide.cli.order import SECTIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "commands.md"
_HEAD = """\
# Every verb, option and error

<!-- Written by `make docs` from src/ebbtide/cli and src/ebbtide/errors.py: change those, not this. -->

`ebbtide VERB --help` says the same. What stands under `ebbtide` goes before the verb; `--project` goes before or
after it. `--json` writes data as JSON on stdout, `--dry-run` only says what would be done, `--yes` answers the
question that is asked at a terminal. Exit codes: 0 done, 1 a check failed, 2 wrong input, 3 refused for safety, 4
something failed or did not answer, 10 `plan --detailed-exitcode` found something to do, 130 and 143 stopped by a
signal.
"""
_ONCE = {"--project", "--json", "--dry-run", "--yes", "--help"}
"""Said once, above."""
_ELSEWHERE = "ledger check"
"""It has a parser of its own, which starts quicker."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every verb by its whole name, in the order of work, each group before what is in it."""
    root: Any = typer.main.get_command(app)
    yield "", root
    for name in (name for names in SECTIONS.values() for name in names if name in root.commands):
        yield from _inside(name, root.commands[name])


def _inside(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for inner, each in getattr(command, "commands", {}).items():
        yield from _inside(f"{name} {inner}", each)


def rows(name: str, command: Any) -> list[tuple[str, str]]:
    """What a verb takes: arguments as they are written, options with what they take, each with its meaning."""
    if name == _ELSEWHERE:
        given = [(each.option_strings, each.nargs == 0, each.dest, each.help) for each in _arguments()._actions]
    else:
        given = [
            ([] if each.param_type_name == "argument" else [*each.opts, *each.secondary_opts],
             getattr(each, "is_flag", False), _argument(each), each.help)
            for each in command.params
        ]  # fmt: skip
    made = []
    for options, is_flag, argument, said in given:
        if not _ONCE & {*options}:
            what = f"{', '.join(options)}{'' if is_flag else ' …'}" if options else argument.upper()
            made.append((what, " ".join((said or "").split())))
    return made


def _argument(param: Any) -> str:
    name = param.metavar or param.name
    many = "…" if param.nargs == -1 and not name.endswith("...") else ""
    return f"{name}{many}" if param.required or name.startswith("[") else f"[{name}]{many}"


def _section(name: str, command: Any) -> str:
    level = "##" if " " not in name else "###"
    said = " ".join((command.help or "").split())
    listed = [f"| `{what.replace('|', chr(92) + '|')}` | {_cell(meaning)} |\n" for what, meaning in rows(name, command)]
    table = f"\n| | |\n|---|---|\n{''.join(listed)}" if listed else ""
    return f"\n{level} ebbtide {name}".rstrip() + f"\n\n{said}\n{table}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def error_classes() -> list[type]:
    found = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    return [each for each in found if issubclass(each, errors.EbbtideError)]


def _errors() -> str:
    head = (
        "\n## Errors\n\nWhat the library raises (`ebbtide.errors`), and the exit code of the command line. Each has a "
        "`message` and\nmost a `hint`. `Cancelled`, of a run that was asked to stop, is no `Exception`.\n"
    )
    listed = sorted(error_classes(), key=lambda each: each.__name__)
    told = [
        f"| `{each.__name__}` | {each.exit_code} | {_cell(' '.join((each.__doc__ or '').split()))} |\n"  # type: ignore[attr-defined]
        for each in listed
    ]
    return f"{head}\n| error | exit code | |\n|---|---|---|\n{''.join(told)}"


def page() -> str:
    return _HEAD + "".join(_section(name, command) for name, command in commands()) + _errors()


if __name__ == "__main__":
    PAGE.write_text(page())
