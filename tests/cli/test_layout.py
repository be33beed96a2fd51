"""Tables on terminals of every width: nothing is cut, and nothing stands where no text is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ebbtide.cli.commands import app
from ebbtide.cli.layout import TableLayout
from tests.cli.command import cold, ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

ROWS = (
    ("lake.payments.a_table_with_a_long_name", "APPEND", "12", "", "it was superseded by a commit more than 7 d ago"),
    ("lake.x", "OVERWRITE", "1234567", "branch:main", ""),
)


def table() -> TableLayout:
    made = TableLayout("table", "~kind", ">rows", "~kept by", "because", title="what there is")
    for row in ROWS:
        made.add_row(*row)
    return made


@pytest.mark.parametrize("width", [200, 120, 80, 60, 40, 20])
def test_every_cell_is_shown_whole_on_every_width(width: int) -> None:
    lines = [text for text, _ in table().lines(width)]
    whole = " ".join(" ".join(line.split()) for line in lines)
    for row in ROWS:
        for cell in row:
            assert cell in whole
    assert [line for line in lines if line != line.rstrip() or not line] == []
    for name in (ROWS[0][0], ROWS[1][0]):
        assert sum(line.split("  ")[0] == name for line in lines) == 1, "ids stand alone, to be copied"


def test_lesser_columns_fold_first_and_then_those_to_the_right() -> None:
    header = {width: list(table().lines(width))[1][0].split() for width in (200, 100, 60, 20)}
    assert header[200] == ["table", "kind", "rows", "kept", "by", "because"]
    assert header[100] == ["table", "rows", "because"]
    assert header[60] == ["table", "rows"]
    assert header[20] == ["table"]


def test_wide_letters_count_twice_and_markup_of_others_is_text() -> None:
    made = TableLayout("name", ">n")
    made.add_row("表", "1")
    made.add_row(r"\[bold]", "10")
    assert [text for text, _ in made.lines(80)] == ["name     n", "表       1", "[bold]  10"]


def test_the_command_line_keeps_names_whole_on_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a_rather_long_name_of_a_table_that_somebody_chose"
    SmallLake(tmp_path).create(name, 2)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    assert ebbtide("scan", cwd=tmp_path).returncode == 0
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")
    for verb in (("tables",), ("history", f"lake.db.{name}")):
        lines = ebbtide(*verb, cwd=tmp_path, columns=80).stdout.splitlines()
        assert lines
        assert max(map(len, lines)) <= 80
        assert [line for line in lines if line != line.rstrip() or not line] == []
    assert f"lake.db.{name} " in ebbtide("tables", cwd=tmp_path, columns=80).stdout


def groups(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if hasattr(command, "commands"):
        yield path
        for name, below in command.commands.items():
            yield from groups(below, (*path, name))


def test_help_is_in_the_order_of_work_and_cuts_no_sentence(tmp_path: Path) -> None:
    verbs = get_command(app)
    for path in groups(verbs):
        said = ebbtide(*path, "--help", cwd=tmp_path, columns=80).stdout
        assert "..." not in said.partition("Options:")[2], path
        assert max(map(len, said.splitlines())) <= 80
    top = ebbtide("--help", cwd=tmp_path).stdout
    places = [
        top.index(f"\n  {verb} ") for verb in ("init", "scan", "tables", "plan", "mark", "sweep", "unmark", "ledger")
    ]
    assert places == sorted(places)
    assert "\nMore:" not in top, "a new verb has its place in cli/order.py"


def test_a_shell_completes_verbs_tables_and_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SmallLake(tmp_path).create("payments")
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "policies").mkdir()
    text = 'policies: [{name: old, select: {tables: ["**"]}, versions: {older_than: 1d}}]'
    (tmp_path / "policies" / "p.yml").write_text(text)
    assert ebbtide("scan", cwd=tmp_path).returncode == 0
    monkeypatch.setenv("_EBBTIDE_COMPLETE", "complete_bash")

    def proposed(line: str, cwd: Path = tmp_path) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return cold(cwd=cwd).stdout.split()

    assert proposed("ebbtide unm") == ["unmark", "unmarks"]
    assert proposed("ebbtide history lake.") == ["lake.db.payments"]
    assert proposed("ebbtide plan --select policy:") == ["policy:old"]
    (tmp_path / "ebbtide.yml").write_text("broken: [")
    assert proposed("ebbtide history lake.") == []
