"""`ebbtide ledger` and `ebbtide state` as their users meet them: bytes on stdout, words on stderr, exit codes."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from sqlalchemy import update
from typer.testing import CliRunner

from ebbtide.app.ledger import open_ledger
from ebbtide.app.state import open_state
from ebbtide.cli import ledger, state
from ebbtide.config import load_project
from ebbtide.errors import EbbtideError, RefusedError, RewoundError, StateVersionError
from ebbtide.ledger import tree
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.note import Checkpoint, Note, VerifierKey
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.tiles import tile_path
from ebbtide.state.database import Database
from ebbtide.state.migrations import LATEST, migrate
from ebbtide.state.tables import ledger_entries
from tests.ledger.samples import said
from tests.ledger.witness_server import Witness, serve
from tests.state.postgres import server
from tests.tiers import deep_after_first

PROJECT = """\
project: acme
catalogs:
  lake: {{format: iceberg, type: hadoop, warehouse: ./lake}}
state: "{state}"
{more}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    code: int
    out: bytes
    err: str
    error: EbbtideError | None

    @property
    def json(self) -> object:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Command:
    """The two sub-apps, as the main app registers them."""

    folder: Path

    def __call__(self, *arguments: str) -> Done:
        root = typer.Typer()
        root.add_typer(ledger.app, name="ledger")
        root.add_typer(state.app, name="state")
        found = CliRunner().invoke(root, [*arguments, "--project", str(self.folder)])
        error = found.exception if isinstance(found.exception, EbbtideError) else None
        if found.exception and not error and not isinstance(found.exception, SystemExit):
            raise found.exception
        return Done(error.exit_code if error else found.exit_code, found.stdout_bytes, found.stderr, error)

    def write(self, *, state: str = "sqlite:///.ebbtide/state.db", more: str = "") -> None:
        (self.folder / "ebbtide.yml").write_text(PROJECT.format(state=state, more=more))

    def append(self, count: int = 1) -> None:
        with open_ledger(self.folder).writing() as step:
            step.append(*(said(number) for number in range(count)))


@pytest.fixture(params=deep_after_first("sqlite", "postgresql"))
def ebbtide(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))
    command = Command(tmp_path / "project")
    command.folder.mkdir()
    command.write(state="sqlite:///.ebbtide/state.db" if request.param == "sqlite" else server().new_url())
    return command


def test_a_project_that_says_nothing_gets_a_ledger_on_first_use_and_is_told_once(ebbtide: Command) -> None:
    first = ebbtide("ledger", "key")
    key = VerifierKey.parse(first.out.decode().removesuffix("\n"))
    assert key.name.startswith("ebbtide.local/acme/")
    assert "made a key" in first.err
    again = ebbtide("ledger", "key")
    assert (again.out, again.err) == (first.out, "")
    (file,) = (ebbtide.folder / ".ebbtide" / "keys").glob("*.key")
    assert file.stat().st_mode & 0o777 == 0o600
    copies = list((ebbtide.folder.parent / "user-state" / "ebbtide").iterdir())
    assert [copy.read_bytes() for copy in copies] == [ebbtide("ledger", "checkpoint").out]


def test_init_sets_the_origin_once(ebbtide: Command) -> None:
    dry = ebbtide("ledger", "init", "--origin", "example.org/acme", "--dry-run")
    assert (dry.code, dry.out) == (0, b"")
    assert not (ebbtide.folder / ".ebbtide" / "keys").exists()
    done = ebbtide("ledger", "init", "--origin", "example.org/acme", "--json")
    assert done.code == 0
    assert isinstance(done.json, dict)
    assert done.json["origin"] == "example.org/acme"
    assert ebbtide("ledger", "init").out.decode() == done.json["key"] + "\n"
    other = ebbtide("ledger", "init", "--origin", "example.org/other")
    assert (other.code, other.out) == (2, b"")


def test_what_is_printed_is_what_others_verify(ebbtide: Command) -> None:
    ebbtide.append(300)
    key = VerifierKey.parse(ebbtide("ledger", "key").out.decode().strip())
    note = Note.parse(ebbtide("ledger", "checkpoint").out)
    assert [item.key for item in note.verify([key])] == [key]
    assert Checkpoint.parse(note.text).size == 301
    for index in (0, 7, 300):
        leaf = ebbtide("ledger", "entry", str(index)).out
        proof = TlogProof.parse(ebbtide("ledger", "prove", str(index)).out)
        assert proof.verify(tree.leaf_hash(leaf), key.name, [key])
    assert ebbtide("ledger", "entry", "8").out == said(7).encode()
    told = ebbtide("ledger", "entry", "8", "--json").json
    assert told == {"index": 8, "leaf_hash": tree.leaf_hash(said(7).encode()).hex(), "leaf": said(7).encode().decode()}


@pytest.mark.parametrize(
    "verb", [["entry", "0"], ["prove", "0"], ["audit"], ["export", "out"], ["prune", "--before", "2020-01-01"]]
)
def test_a_ledger_that_is_not_there_is_bad_input_and_is_not_made(ebbtide: Command, verb: list[str]) -> None:
    done = ebbtide("ledger", *verb)
    assert (done.code, done.out) == (2, b"")
    assert done.error
    assert done.error.hint == "run `ebbtide ledger init`"
    assert not (ebbtide.folder / ".ebbtide").exists()


@pytest.mark.parametrize("verb", ["entry", "prove"])
def test_an_index_beyond_the_end_is_bad_input(ebbtide: Command, verb: str) -> None:
    ebbtide("ledger", "init")
    assert ebbtide("ledger", verb, "1").code == 2
    assert ebbtide("ledger", verb, "--", "-1").code == 2


def test_a_rotation_leaves_old_and_new_keys_to_verify_with(ebbtide: Command) -> None:
    ebbtide.append()
    before = Note.parse(ebbtide("ledger", "checkpoint").out)
    assert ebbtide("ledger", "rotate", "--dry-run").code == 0
    assert Note.parse(ebbtide("ledger", "checkpoint").out) == before
    new = ebbtide("ledger", "rotate").out
    assert ebbtide("ledger", "key").out == new
    ebbtide.append()
    trust = Trust.parse(ebbtide("ledger", "key", "--all").out)
    assert [trusted.until for trusted in trust.ledger] == [3, None]
    for note in (before, Note.parse(ebbtide("ledger", "checkpoint").out)):
        trust.verify(note)


def test_an_audit_says_what_it_read_and_fails_when_a_row_was_changed(ebbtide: Command) -> None:
    ebbtide.append(3)
    good = ebbtide("ledger", "audit", "--json")
    assert good.code == 0
    assert isinstance(good.json, dict)
    assert (good.json["ok"], good.json["entries"], good.json["findings"]) == (True, 4, [])
    with Database(load_project(ebbtide.folder).state).writer() as writer:
        writer.connection.execute(update(ledger_entries).where(ledger_entries.c.idx == 2).values(body=b"{}"))
    bad = ebbtide("ledger", "audit", "--json")
    assert bad.code == 1
    assert isinstance(bad.json, dict)
    assert bad.json["findings"][0]["where"] == "body of entry 2"
    assert "body of entry 2" in ebbtide("ledger", "audit").err


def test_a_lost_state_is_refused_by_every_door(ebbtide: Command) -> None:
    ebbtide.append(3)
    project = load_project(ebbtide.folder)
    if project.state.startswith("sqlite"):
        for file in (ebbtide.folder / ".ebbtide").glob("state.db*"):
            file.unlink()
    else:
        ebbtide.write(state=server().new_url())
    for verb in (["key"], ["checkpoint"], ["entry", "0"], ["audit"], ["rotate"], ["init"]):
        done = ebbtide("ledger", *verb)
        assert (done.code, done.out) == (3, b""), verb
        assert isinstance(done.error, RewoundError)
    with pytest.raises(RewoundError):
        open_state(load_project(ebbtide.folder))


def test_a_state_that_never_was_is_read_as_an_empty_one(ebbtide: Command) -> None:
    with open_state(load_project(ebbtide.folder)).reader() as reader:
        assert reader.snapshot().holds == ()
    assert not (ebbtide.folder / ".ebbtide").exists()


def test_a_copy_beside_the_state_is_refused(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.write(more="ledger: {checkpoint: .ebbtide/last.checkpoint}")
    done = command("ledger", "init")
    assert done.code == 2
    assert "ledger.checkpoint" in str(done.error)
    command.write(more="ledger: {checkpoint: elsewhere/last.checkpoint}")
    assert command("ledger", "init").code == 0
    assert (tmp_path / "elsewhere" / "last.checkpoint").read_bytes() == command("ledger", "checkpoint").out


def test_another_home_asks_once_and_then_signs(ebbtide: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    ebbtide.append(3)
    here = ebbtide("ledger", "checkpoint").out
    monkeypatch.setenv("XDG_STATE_HOME", str(ebbtide.folder.parent / "cron"))
    refused = ebbtide("ledger", "checkpoint")
    assert (refused.code, refused.out) == (3, b"")
    assert refused.error
    assert "ebbtide ledger checkpoint --adopt" in str(refused.error.hint)
    found = ebbtide("ledger", "audit", "--json")
    assert found.code == 1
    assert isinstance(found.json, dict)
    assert [finding["where"] for finding in found.json["findings"]] == ["copy outside"]
    assert ebbtide("ledger", "checkpoint", "--up-to", "4").code == 2
    assert ebbtide("ledger", "checkpoint", "--adopt", "--up-to", "9").code == 3
    adopted = ebbtide("ledger", "checkpoint", "--adopt")
    assert (adopted.code, adopted.out) == (0, here)
    assert "keeps the last checkpoint" in adopted.err
    ebbtide.append()
    assert ebbtide("ledger", "audit").code == 0
    assert ebbtide("ledger", "checkpoint", "--adopt").err == ""


def test_a_witness_is_asked_over_http(ebbtide: Command) -> None:
    ebbtide.append(3)
    key = VerifierKey.parse(ebbtide("ledger", "key").out.decode().strip())
    witness = Witness({key.name: key})
    with serve(witness) as url:
        assert ebbtide("ledger", "witness", url, witness.signer.key.encode(), "--dry-run").code == 0
        assert witness.asked == []
        done = ebbtide("ledger", "witness", url, witness.signer.key.encode())
        assert ebbtide("ledger", "witness", url, "nonsense").code == 2
    assert done.code == 0
    assert len(Note.parse(done.out).verify([key, witness.signer.key])) == 2
    assert ebbtide("ledger", "checkpoint").out == done.out
    assert ebbtide("ledger", "witness", url, witness.signer.key.encode()).code == 4


def test_pruning_asks_before_it_removes(ebbtide: Command) -> None:
    ebbtide.append(3)
    dry = ebbtide("ledger", "prune", "--before", "2026-11-15T09:00:01Z", "--dry-run", "--json")
    assert isinstance(dry.json, dict)
    assert dry.json["bodies"] == 3
    refused = ebbtide("ledger", "prune", "--before", "2026-11-15T09:00:01Z")
    assert isinstance(refused.error, RefusedError)
    assert refused.code == 3
    done = ebbtide("ledger", "prune", "--before", "2026-11-15T09:00:01Z", "--yes", "--json")
    assert done.json == dry.json
    gone = ebbtide("ledger", "entry", "2")
    assert (gone.code, gone.out) == (3, b"")
    assert ebbtide("ledger", "prove", "2").code == 0
    assert ebbtide("ledger", "audit").code == 0
    for moment in ("soon", "2026-11-15T09:00:01", "2999-01-01"):
        assert ebbtide("ledger", "prune", "--before", moment, "--yes").code == 2


def test_an_export_is_the_ledger_as_files_and_grows_with_it(ebbtide: Command, tmp_path: Path) -> None:
    folder = tmp_path / "tiles"
    ebbtide.append(299)
    assert ebbtide("ledger", "export", str(folder), "--dry-run").code == 0
    assert not folder.exists()
    told = ebbtide("ledger", "export", str(folder), "--json").json
    # The partial tiles of the first checkpoint, over the first entry alone, gave way to full ones.
    assert told == {"folder": str(folder), "written": 5, "minimum_index": 0}
    assert (folder / "checkpoint").read_bytes() == ebbtide("ledger", "checkpoint").out
    leaves = (folder / tile_path("0", 0)).read_bytes() + (folder / tile_path("0", 1, 44)).read_bytes()
    assert leaves[32 * 8 : 32 * 9] == tree.leaf_hash(ebbtide("ledger", "entry", "8").out)
    again = ebbtide("ledger", "export", str(folder), "--json")
    assert isinstance(again.json, dict)
    assert again.json["written"] == 0
    ebbtide.append()
    assert ebbtide("ledger", "export", str(folder)).code == 0
    assert (folder / "checkpoint").read_bytes() == ebbtide("ledger", "checkpoint").out


def test_check_is_reached_through_the_same_command(ebbtide: Command) -> None:
    found = CliRunner().invoke(ledger.app, ["check", str(ebbtide.folder / "none.json"), "--key", "none.pub"])
    assert found.exit_code == 2


def test_an_old_state_is_upgraded_by_its_verb_and_refused_by_all_others(ebbtide: Command) -> None:
    database = Database(load_project(ebbtide.folder).state)
    with database._writer_engine(create=True).begin() as connection:
        migrate(connection, to=1)
    for verb in ("key", "checkpoint", "audit"):
        done = ebbtide("ledger", verb)
        assert isinstance(done.error, StateVersionError)
        assert done.code == 3
        assert done.error.hint == "run `ebbtide state upgrade`"
    assert ebbtide("state", "upgrade", "--dry-run", "--json").json == {"before": 1, "after": LATEST, "dry_run": True}
    assert database.version() == 1
    assert ebbtide("state", "upgrade", "--json").json == {"before": 1, "after": LATEST, "dry_run": False}
    assert "already" in ebbtide("state", "upgrade").err
    assert ebbtide("ledger", "key").code == 0
    database.close()


def test_a_simulated_project_stamps_its_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))
    command = Command(tmp_path)
    command.write(more="clock: simulated")
    command("ledger", "init")
    assert b'"simulated":true' in command("ledger", "entry", "0").out


def test_a_moved_project_keeps_its_ledger(ebbtide: Command) -> None:
    ebbtide.append()
    key = ebbtide("ledger", "key").out
    moved = Command(ebbtide.folder.parent / "moved")
    shutil.move(ebbtide.folder, moved.folder)
    assert moved("ledger", "key").out == key
    assert moved("ledger", "audit").code == 0
