"""The check of an exported ledger from its files: every file that it reads is changed once, and it is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbtide.app.ledger_check import CheckReport, check_file
from ebbtide.ledger.keys import TrustedKey
from ebbtide.ledger.note import Signer
from ebbtide.ledger.tiles import export, minimum_index
from tests.ledger.forest import MemoryLedger

SIZE = 600


@pytest.fixture(scope="module")
def ledger() -> MemoryLedger:
    made = MemoryLedger()
    made.append_leaves([b'{"n":%d}' % number for number in range(SIZE)])
    return made


@pytest.fixture
def folder(ledger: MemoryLedger, tmp_path: Path) -> Path:
    export(tmp_path / "tiles", ledger.checkpoint(), ledger.leaves, ledger.get)
    return tmp_path / "tiles"


def _check(folder: Path, ledger: MemoryLedger) -> CheckReport:
    keys = folder.parent / "ledger.pub"
    keys.write_text(TrustedKey(ledger.signer.key).line())
    return check_file(str(folder), str(keys))


def _failed(report: CheckReport) -> tuple[str, int]:
    assert report.failed is not None
    return report.steps[-1].name, report.exit_code


def test_a_whole_ledger_holds(folder: Path, ledger: MemoryLedger) -> None:
    report = _check(folder, ledger)
    assert (report.exit_code, report.time, report.request) == (0, "asserted", None)
    assert [(step.name, step.ok) for step in report.steps] == [
        ("checkpoint", True), ("tiles", True), ("entries", True), ("time", True),
    ]  # fmt: skip
    assert report.steps[1].says == "600 hashes lead to the root that was signed"
    assert report.steps[2].says == "0 to 599 are those that were signed"


@pytest.mark.parametrize("size", [1, 255, 256, 257, 512])
def test_a_ledger_of_any_size_holds(tmp_path: Path, size: int) -> None:
    ledger = MemoryLedger()
    ledger.append_leaves([b"%d" % number for number in range(size)])
    export(tmp_path / "tiles", ledger.checkpoint(), ledger.leaves, ledger.get)
    assert _check(tmp_path / "tiles", ledger).exit_code == 0


def test_nothing_follows_from_an_empty_ledger(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    export(tmp_path / "tiles", ledger.checkpoint(), [], ledger.get)
    assert _failed(_check(tmp_path / "tiles", ledger)) == ("tiles", 1)


def _change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _add(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize("change", [_change_a_byte, _cut, _add, Path.unlink])
def test_no_file_can_be_changed_cut_lengthened_or_taken_away(
    folder: Path, ledger: MemoryLedger, change: Callable[[Path], None]
) -> None:
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert len(files) == 8, "a checkpoint, four tiles of hashes, three of entries"
    for file in files:
        copy = folder.parent / "copy"
        shutil.copytree(folder, copy)
        change(copy / file)
        report = _check(copy, ledger)
        entries = file.parts[1:2] == ("entries",)
        if change is Path.unlink and entries and file.name != "001":
            # The first and the last bundle may have been pruned, which is said.
            assert report.exit_code == 0
            assert "others of 600 are not here" in report.steps[2].says
        else:
            assert report.exit_code in (1, 2), file
            assert report.failed is not None
            assert report.failed.hint or report.exit_code == 1
            if report.steps:
                step = report.steps[-1].name
                assert step == ("entries" if entries else "checkpoint" if file.name == "checkpoint" else "tiles")
        shutil.rmtree(copy)


def test_the_head_of_another_ledger_and_another_key_are_refused(folder: Path, ledger: MemoryLedger) -> None:
    other = MemoryLedger(ledger.signer)
    other.append_leaves([b"%d" % number for number in range(SIZE)])
    good = (folder / "checkpoint").read_bytes()
    (folder / "checkpoint").write_bytes(other.checkpoint().encode())
    assert _failed(_check(folder, ledger)) == ("tiles", 1)
    (folder / "checkpoint").write_bytes(good)
    assert _failed(_check(folder, MemoryLedger(Signer.generate("example.org/acme")))) == ("checkpoint", 1)


def test_an_older_checkpoint_holds_in_the_folder_of_a_newer_one(tmp_path: Path, ledger: MemoryLedger) -> None:
    export(tmp_path / "tiles", ledger.checkpoint(), ledger.leaves, ledger.get, [590])
    (tmp_path / "tiles" / "checkpoint").write_bytes(ledger.checkpoint(size=590).encode())
    report = _check(tmp_path / "tiles", ledger)
    assert report.exit_code == 0, report.failed
    assert report.steps[2].says == "0 to 589 are those that were signed"


def test_what_was_pruned_is_counted_and_everything_else_is_checked(tmp_path: Path, ledger: MemoryLedger) -> None:
    bodies: list[bytes | None] = [None if index in (100, 590) else leaf for index, leaf in enumerate(ledger.leaves)]
    export(tmp_path / "tiles", ledger.checkpoint(), bodies, ledger.get, [580], minimum_index=minimum_index(100))
    report = _check(tmp_path / "tiles", ledger)
    assert report.exit_code == 0, report.failed
    assert report.steps[2].says == "256 to 579 are those that were signed; 276 others of 600 are not here"
    shutil.rmtree(tmp_path / "tiles" / "tile" / "entries")
    bare = _check(tmp_path / "tiles", ledger)
    assert bare.exit_code == 0
    assert bare.steps[2].says == "none of 600 is here: what they say cannot be looked at"


def test_a_folder_without_a_checkpoint_is_none_of_a_ledger(tmp_path: Path, ledger: MemoryLedger) -> None:
    (tmp_path / "empty").mkdir()
    report = _check(tmp_path / "empty", ledger)
    assert (report.exit_code, report.steps) == (2, ())
    assert report.failed is not None
    assert "no checkpoint is in it" in report.failed.message
    assert "ledger export" in str(report.failed.hint)


def test_the_walk_for_auditors_shows_what_is_said(tmp_path: Path, ledger: MemoryLedger) -> None:
    page = (Path(__file__).parents[2] / "docs" / "verify-us-without-us.md").read_text()
    bodies = [None if index < 256 else leaf for index, leaf in enumerate(ledger.leaves)]
    export(tmp_path / "tiles", ledger.checkpoint(), bodies, ledger.get, minimum_index=256)
    for step in _check(tmp_path / "tiles", ledger).steps[1:]:
        assert f"{step.number:2} {step.name:12} ok      {step.says}\n" in page
