"""`ebbtide ledger check` from outside: exit codes, what it prints, and how little it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ebbtide
from ebbtide.cli.ledger_check import main
from ebbtide.ledger.keys import TrustedKey
from ebbtide.ledger.tiles import export
from tests.ledger.erasure import REQUEST, SECRET, Erasure, closed

COMMAND = "import sys; from ebbtide.cli.ledger_check import main; code = main(sys.argv[1:])"
LEAVE = "; sys.exit(code)"
STEPS = [
    *((1, "certificate"), (2, "checkpoint"), (3, "inclusion"), (4, "entries"), (5, "claims")),
    *((6, "clock"), (7, "summary"), (8, "statement"), (9, "time"), (10, "opening")),
]
HEAVY = [
    "pyspark",
    "sqlalchemy",
    "typer",
    "pyarrow",
    "pydantic",
    "yaml",
    "rich",
    "psycopg",
    "pyiceberg",
    "py4j",
    "numpy",
]


class Files:
    """A certificate, its key file and its opening, as someone was handed them."""

    def __init__(self, folder: Path, erasure: Erasure) -> None:
        self.certificate, self.key, self.opening = (
            folder / name for name in ("certificate.json", "ledger.pub", "opening.json")
        )
        self.certificate.write_bytes(erasure.certificate().encode())
        self.key.write_text(TrustedKey(erasure.ledger.signer.key).line() + "\n")
        self.opening.write_bytes(erasure.opening.encode())

    def arguments(self, *more: str) -> list[str]:
        return [str(self.certificate), "--key", str(self.key), *more]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, closed())


def run(code: str, arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, as a person starts it."""
    source = str(Path(ebbtide.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": source, **environment}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=env, check=False
    )


def test_a_good_certificate_exits_0_with_numbered_steps(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files.arguments("--opening", str(files.opening))) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[:3] for line in lines[:10]] == [[str(number), name, "ok"] for number, name in STEPS]
    assert lines[10].endswith("holds; its time is asserted")
    assert err == ""
    assert SECRET not in out


def test_a_false_certificate_exits_1_and_names_the_step_with_expected_and_found(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.certificate.write_bytes(files.certificate.read_bytes().replace(b'\\"files\\":3', b'\\"files\\":4'))
    assert main(files.arguments()) == 1
    out, err = capsys.readouterr()
    assert " 4 entries      FAILED  leaf hash of entry 4: expected " in out
    assert err.startswith("error: step 4, entries: leaf hash of entry 4: expected ")
    assert ", found " in err


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[" * 9_000, b'{"format":"ebbtide-certificate","v":2}'])
def test_an_unreadable_certificate_exits_2(files: Files, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    files.certificate.write_bytes(content)
    assert main(files.arguments()) == 2
    assert "error: step 1, certificate: " in capsys.readouterr().err


def test_files_that_are_missing_or_no_files_exit_2(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = str(files.certificate)
    for arguments in (
        [str(tmp_path / "none.json"), "--key", str(files.key)],
        [str(tmp_path), "--key", str(files.key)],
        ["\x00", "--key", str(files.key)],
        [good, "--key", str(tmp_path / "none.pub")],
        [good, "--key", good],
        files.arguments("--opening", str(tmp_path / "none.json")),
        files.arguments("--opening", good),
    ):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert "hint: " in err


def test_wrong_arguments_exit_2_and_help_exits_0(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(files.certificate)]) == 2
    assert main(files.arguments("--unknown")) == 2
    assert main(["--help"]) == 0
    assert "usage: ebbtide ledger check" in capsys.readouterr().out


def test_an_endless_file_is_read_up_to_its_limit_only(files: Files) -> None:
    assert main(["/dev/zero", "--key", str(files.key)]) == 2
    assert main([str(files.certificate), "--key", "/dev/zero"]) == 2


def test_simulated_entries_need_the_flag(tmp_path: Path) -> None:
    files = Files(tmp_path, closed(simulated=True))
    assert main(files.arguments()) == 1
    assert main(files.arguments("--simulated")) == 0


def test_json_says_the_same_for_programs(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files.arguments("--json")) == 0
    good = json.loads(capsys.readouterr().out)
    assert (good["ok"], good["request"], good["time"], len(good["steps"])) == (True, REQUEST, "asserted", 9)
    assert set(good["steps"][0]) == {"number", "name", "ok", "says"}
    files.certificate.write_bytes(files.certificate.read_bytes().replace(b'\\"files\\":3', b'\\"files\\":4'))
    assert main(files.arguments("--json")) == 1
    failed = json.loads(capsys.readouterr().out)
    assert failed["ok"] is False
    assert (failed["failed"]["step"], failed["failed"]["name"]) == (4, "entries")
    assert len(failed["failed"]["expected"]) == len(failed["failed"]["found"]) == 64
    assert main(["none.json", "--key", "none.pub", "--json"]) == 2
    missing = json.loads(capsys.readouterr().out)
    assert missing["steps"] == []
    assert missing["failed"]["message"].startswith("none.pub: cannot be read")


def test_a_strangers_file_cannot_write_to_the_terminal(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    old = b'"title":"Erasure'
    assert old in files.certificate.read_bytes()
    evil = '"title":"\\u001b[2J\u202e\u009b'.encode()
    files.certificate.write_bytes(files.certificate.read_bytes().replace(old, evil + b"x" * 5_000))
    assert main(files.arguments()) == 1
    out, err = capsys.readouterr()
    for text in (out, err):
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert max(len(line) for line in text.splitlines()) < 1_000


def test_any_terminal_encoding_will_do(files: Files) -> None:
    files.certificate.write_bytes(files.certificate.read_bytes().replace(b"certified", "zertifiziert é".encode()))
    result = run(COMMAND + LEAVE, files.arguments(), PYTHONIOENCODING="ascii")
    assert result.returncode in (1, 2)
    assert "Traceback" not in result.stderr


def test_neither_spark_nor_a_database_nor_typer_is_loaded(files: Files) -> None:
    shown = COMMAND + "; print(*sys.modules, sep=chr(10), file=sys.stderr)" + LEAVE
    result = run(shown, files.arguments("--opening", str(files.opening), "--json"))
    assert result.returncode == 0
    loaded = {name.partition(".")[0] for name in result.stderr.split()}
    assert "ebbtide" in loaded
    assert "cryptography" in loaded
    assert not loaded & set(HEAVY)


def test_a_proof_and_an_exported_ledger_are_checked_with_as_little(tmp_path: Path) -> None:
    erasure = closed()
    ledger, files = erasure.ledger, Files(tmp_path, erasure)
    proof, entry, folder = tmp_path / "1.tlog-proof", tmp_path / "1.json", tmp_path / "tiles"
    proof.write_bytes(ledger.prove(1).encode())
    entry.write_bytes(ledger.leaves[1])
    export(folder, ledger.checkpoint(), ledger.leaves, ledger.get)
    shown = COMMAND + "; print(*sys.modules, sep=chr(10), file=sys.stderr)" + LEAVE
    for arguments, said in (
        ([str(proof), "--entry", str(entry)], f"{proof} holds; its time is asserted"),
        ([str(folder)], f"{folder} holds; its time is asserted"),
    ):
        result = run(shown, [*arguments, "--key", str(files.key)])
        assert result.returncode == 0, result.stdout
        assert result.stdout.splitlines()[-1] == said
        assert not {name.partition(".")[0] for name in result.stderr.split()} & set(HEAVY)


def test_what_only_costs_time_is_not_loaded_either(files: Files) -> None:
    # dataclasses brings `inspect`, together as long as all of Ebbtide's own modules; pathlib and logging likewise.
    result = run(COMMAND + "; print(*sys.modules, sep=chr(10), file=sys.stderr)" + LEAVE, files.arguments())
    assert result.returncode == 0
    assert not set(result.stderr.split()) & {"dataclasses", "inspect", "pathlib", "logging", "asyncio", "subprocess"}


def test_a_check_takes_less_than_a_second(files: Files) -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert run(COMMAND + LEAVE, files.arguments()).returncode == 0
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0
