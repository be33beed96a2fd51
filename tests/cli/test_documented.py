"""No verb, option or error without a word in docs/commands.md, and no verb that the README's table lacks."""

from __future__ import annotations

import re

import typer.main

from ebbtide.cli.commands import app
from tests.cli.generate import PAGE, ROOT, commands, error_classes, page, rows


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_verb_has_a_place_in_the_order_of_work_and_words_of_its_own() -> None:
    found = dict(commands())
    root = typer.main.get_command(app)
    assert {name for name in found if name and " " not in name} == {*getattr(root, "commands", {})}
    assert len(found) > 60
    assert [name for name, command in found.items() if not (command.help or "").strip()] == []


def test_every_option_and_argument_says_what_it_is_for() -> None:
    taken = [(name, what, said) for name, command in commands() for what, said in rows(name, command)]
    assert len(taken) > 90
    assert [(name, what) for name, what, said in taken if not said] == []
    assert ("ledger check", "--entry …") in {(name, what) for name, what, _ in taken}


def test_every_error_says_when_it_is_raised() -> None:
    assert len(error_classes()) > 15
    assert [each.__name__ for each in error_classes() if not each.__doc__] == []


def test_the_readme_names_every_verb() -> None:
    table = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if "`ebbtide " in line]
    missing = []
    for name, _ in commands():
        group, _, verb = name.partition(" ")
        about = " ".join(line for line in table if re.search(rf"`ebbtide {re.escape(group)}\b", line))
        if name and not re.search(rf"[`| ]{re.escape(verb or group)}\b", about):
            missing.append(name)
    assert missing == []
