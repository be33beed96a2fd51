"""`ebbtide erase request|list` in a process of its own: what is filed, what is refused, and that nobody is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.errors import InputError
from tests.cli.command import ebbtide
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
ledger: {origin: example.org/acme}
"""
SUBJECTS = """\
subjects:
  user_id: {columns: [lake.db.users.id]}
  email: {columns: [lake.db.users.name], match: casefold}
"""
SECRET = "8841302007"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scanned project whose identities are a bigint and a text."""
    root = tmp_path_factory.mktemp("requests")
    SmallLake(root).create("users", 1)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "subjects.yml").write_text(SUBJECTS)
    done = ebbtide("scan", cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def test_a_request_is_filed_once_and_listed_without_a_name(root: Path) -> None:
    person = root / "person.txt"
    person.write_text(f"user_id={SECRET}\nemail=A.{SECRET}@Example.org\n")
    asked = ("erase", "request", "--subject", "@person.txt", "--law", "gdpr", "--received", "2026-01-31")
    tried = ebbtide(*asked, "--dry-run", "--json", cwd=root)
    assert (tried.returncode, json.loads(tried.stdout)) == (0, {"id": None, "known": False})
    first = ebbtide(*asked, cwd=root)
    assert first.returncode == 0, first.stderr
    again = ebbtide(*asked, "--json", cwd=root)
    assert json.loads(again.stdout) == {"id": first.stdout.strip(), "known": True}
    listed = ebbtide("erase", "list", "--json", cwd=root)
    (row,) = [row for row in json.loads(listed.stdout) if row["id"] == first.stdout.strip()]
    assert (row["law"], row["state"], row["deadline"]) == ("gdpr", "received", "2026-02-28T00:00:00.000000Z")
    shown = ebbtide("erase", "list", cwd=root)
    assert row["id"] in shown.stdout
    for done in (tried, first, again, listed, shown):
        assert SECRET not in done.stdout + done.stderr
    assert "history" not in first.stderr
    _nobody_lies_in(root)


def test_a_value_on_the_command_line_works_and_warns(root: Path) -> None:
    done = ebbtide("erase", "request", "--subject", "user_id=41", "--law", "promise", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "shell's history" in done.stderr


def _piped(root: Path, said: bytes, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ebbtide.cli.main", "erase", "request", "--subject", "-", "--law", "gdpr", *more]
    done = subprocess.run(command, cwd=root, input=said, capture_output=True)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_person_comes_from_standard_input_as_from_a_file(root: Path) -> None:
    person = root / "person.txt"
    # As Windows writes a file, and a person: a mark of the encoding, both line ends, an empty line.
    said = f"\ufeffuser_id=9{SECRET}\r\n\nemail=Ü.{SECRET}@Example.org\n".encode()
    person.write_bytes(said)
    piped = _piped(root, said, "--json")
    assert piped.returncode == 0, piped.stderr
    filed = json.loads(piped.stdout)
    assert filed["known"] is False
    assert "history" not in piped.stderr
    asked = ("erase", "request", "--subject", "@person.txt", "--law", "gdpr", "--json")
    assert json.loads(ebbtide(*asked, cwd=root).stdout) == {"id": filed["id"], "known": True}
    assert SECRET not in piped.stdout + piped.stderr
    _nobody_lies_in(root)


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (b"", "nobody is named", "identity=value"),
        (f"user_id=1\n{SECRET}\n".encode(), "line 2 is not identity=value", "user_id=…"),
        (f"user_id={SECRET}\nemail=".encode() + b"\xff\xfe", "standard input is not text in UTF-8", "identity=value"),
    ],
)
def test_standard_input_that_names_nobody_is_wrong_input(root: Path, said: bytes, message: str, hint: str) -> None:
    done = _piped(root, said)
    assert (done.returncode, done.stdout) == (2, "")
    told = done.stderr.splitlines()
    assert message in told[0]
    assert hint in told[1]
    assert SECRET not in done.stderr


def test_of_a_file_of_many_the_good_lines_are_filed_and_the_bad_ones_told(root: Path) -> None:
    lines = ["user_id,email", *(f"{n},{n}@example.org" for n in range(100, 130))]
    lines[5], lines[20] = f"x{SECRET},a@b.org", f"1,2,{SECRET}"
    (root / "many.csv").write_text("\n".join(lines))
    done = ebbtide("erase", "request", "--from", "many.csv", "--law", "gdpr", "--json", cwd=root)
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert (found["filed"], found["known"], [bad["line"] for bad in found["bad"]]) == (28, 0, [6, 21])
    assert len(set(found["requests"])) == 28
    assert all(bad["hint"] for bad in found["bad"])
    assert SECRET not in done.stdout + done.stderr
    tried = ebbtide("erase", "request", "--from", "many.csv", "--law", "gdpr", "--dry-run", cwd=root)
    assert "28 would be filed" in tried.stderr


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (("--subject", f"user={SECRET}"), "'user' is no identity", "did you mean 'user_id'?"),
        (("--subject", SECRET), "--subject is not identity=value", "@FILE"),
        (("--subject", "user_id="), "user_id: an empty value", "identity=value"),
        (("--subject", "user_id=NULL"), "user_id: a value that stands for nobody", "NULL is no person"),
        (("--subject", f"email=*{SECRET}"), "email: a pattern instead of a value", "wildcards match nobody"),
        (("--subject", f"user_id={SECRET}x"), "not of its column's type, bigint", "a whole number of 64 bits"),
        (("--subject", "@nowhere.txt"), "nowhere.txt cannot be read", "@FILE"),
        (("--from", "nowhere.csv"), "nowhere.csv: cannot be read", "CSV"),
        ((), "nobody is named", "--subject"),
        (("--subject", "user_id=5", "--received", "2226-01-01"), "received in the future", "the day"),
        (("--subject", "user_id=5", "--received", "soon"), "not a time", "2026-11-15"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_hint_and_nothing_is_filed(
    root: Path, arguments: tuple[str, ...], said: str, hint: str
) -> None:
    before = ebbtide("erase", "list", "--json", cwd=root).stdout
    done = ebbtide("erase", "request", *arguments, "--law", "gdpr", cwd=root)
    told = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    assert done.returncode == 2
    assert said in told[0]
    assert hint in told[1]
    assert SECRET not in done.stdout + done.stderr
    assert ebbtide("erase", "list", "--json", cwd=root).stdout == before


def test_the_library_says_the_same(root: Path) -> None:
    with Ebbtide(root) as tide:
        tried = tide.erase.request({"user_id": "77", "email": ["a@b.org", "A@B.org"]}, law="gdpr", dry_run=True)
        assert (tried.id, tried.known) == (None, False)
        filed = tide.erase.request({"user_id": "77"}, law="gdpr")
        assert tide.erase.request({"user_id": "0077"}, law="gdpr").to_dict() == {"id": filed.id, "known": True}
        assert filed.id is not None
        assert filed.id in {row.id for row in tide.erase.list(only_open=True)}
        assert tide.erase.status(filed.id).state == "received"
        with pytest.raises(InputError, match="nobody is named"):
            tide.erase.request({}, law="gdpr")
        with pytest.raises(InputError, match="nobody to look for"):
            tide.erase.find()


def test_an_unknown_law_has_a_hint(root: Path) -> None:
    done = ebbtide("erase", "request", "--subject", "user_id=5", "--law", "gpdr", cwd=root)
    assert (done.returncode, "gdpr" in done.stderr) == (2, True)


def _nobody_lies_in(root: Path) -> None:
    """Of everything that is written for a request only the person's own file says who it is."""
    for path in root.rglob("*"):
        if path.is_file() and path.name != "person.txt":
            assert SECRET.encode() not in path.read_bytes(), path


def test_a_night_with_nothing_to_erase_is_no_mistake(tmp_path: Path) -> None:
    SmallLake(tmp_path).create("users", 1)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "subjects.yml").write_text(SUBJECTS)
    assert ebbtide("scan", cwd=tmp_path).returncode == 0
    for verb in (("plan",), ("run", "--yes"), ("run", "--dry-run")):
        done = ebbtide("erase", *verb, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "nobody is to be erased" in done.stderr
    told = json.loads(ebbtide("erase", "run", "--yes", "--json", cwd=tmp_path).stdout)
    assert (told["run"], told["plan"]["requests"], told["left"], told["failed"]) == (None, [], [], [])
