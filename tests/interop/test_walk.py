"""The walk for auditors is true: the Go program of the page is built as it stands there, and run on what we export."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ebbtide.ledger.tiles import export
from tests.interop.test_go import GO_SOURCE
from tests.ledger.forest import MemoryLedger

PAGE = Path(__file__).parents[2] / "docs" / "verify-us-without-us.md"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    (source,) = re.findall(r"(?ms)^```go\n(.*?)^```$", PAGE.read_text())
    (folder / "main.go").write_text(source)
    for name in ("go.mod", "go.sum"):  # the versions that the other interop tests lock
        shutil.copy(GO_SOURCE / name, folder)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    assert go is not None, "Go is needed for these tests"
    built = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", "verify", "."], cwd=folder, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    vetted = subprocess.run([go, "vet", "."], cwd=folder, capture_output=True, text=True)
    assert vetted.returncode == 0, vetted.stderr
    return folder / "verify"


@pytest.fixture
def ledger() -> MemoryLedger:
    made = MemoryLedger()
    made.append_leaves([b'{"n":%d}' % number for number in range(600)])
    return made


def _run(program: Path, ledger: MemoryLedger, *arguments: Path) -> tuple[int, str]:
    done = subprocess.run(
        [str(program), ledger.signer.key.encode(), *map(str, arguments)], capture_output=True, text=True
    )
    return done.returncode, (done.stdout or done.stderr).strip()


def test_an_exported_ledger_holds_and_a_changed_one_does_not(
    program: Path, ledger: MemoryLedger, tmp_path: Path
) -> None:
    export(tmp_path, ledger.checkpoint(), ledger.leaves, ledger.get)
    assert _run(program, ledger, tmp_path) == (0, "600 of 600 entries seen, all as signed")
    for path, said in (
        ("tile/entries/001", "is not the one that was signed"),
        ("tile/0/000", "entry "),
        ("checkpoint", ""),
    ):
        file = tmp_path / path
        good = file.read_bytes()
        file.write_bytes(good[:9] + bytes([good[9] ^ 1]) + good[10:])
        code, told = _run(program, ledger, tmp_path)
        assert code == 1, path
        assert said in told
        file.write_bytes(good)
    shutil.rmtree(tmp_path / "tile" / "entries")
    assert _run(program, ledger, tmp_path) == (0, "0 of 600 entries seen, all as signed")
    other = MemoryLedger()
    assert _run(program, other, tmp_path)[0] == 1


def test_pruned_entries_are_counted_as_the_page_shows(program: Path, ledger: MemoryLedger, tmp_path: Path) -> None:
    bodies = [None if index < 256 else leaf for index, leaf in enumerate(ledger.leaves)]
    export(tmp_path, ledger.checkpoint(), bodies, ledger.get, minimum_index=256)
    said = _run(program, ledger, tmp_path)[1]
    assert said == "344 of 600 entries seen, all as signed"
    assert said in PAGE.read_text()


def test_one_entry_is_proved_and_another_is_not(program: Path, ledger: MemoryLedger, tmp_path: Path) -> None:
    proof, entry = tmp_path / "3.tlog-proof", tmp_path / "3.json"
    proof.write_bytes(ledger.prove(3).encode())
    entry.write_bytes(ledger.leaves[3])
    assert _run(program, ledger, proof, entry) == (0, "entry 3 is in a ledger of 600, byte for byte")
    entry.write_bytes(ledger.leaves[4])
    assert _run(program, ledger, proof, entry)[0] == 1
