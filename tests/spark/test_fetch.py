"""Jars get into the cache verified and whole, and nothing else there is touched."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ebbtide.errors import Cancelled, SetupError
from ebbtide.run import RunContext
from ebbtide.spark.fetch import _ended, fetch, missing_of
from ebbtide.spark.jars import COORDINATES, LockedJar, jar_folder, locked, paths

_RIGHT, _WRONG = b"the right jar", b"another jar"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("EBBTIDE_CACHE", str(folder))
    return folder


def _jar(name: str, content: bytes = _RIGHT) -> LockedJar:
    return LockedJar(f"example.org:{name}:1.0", hashlib.sha256(content).hexdigest(), len(content))


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_profile_has_a_checksum_and_a_size_of_each_of_its_jars() -> None:
    for profile, coordinates in COORDINATES.items():
        assert [jar.coordinate for jar in locked(profile)] == list(coordinates)
        assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in locked(profile))


def test_a_session_without_jars_says_what_to_type() -> None:
    with pytest.raises(SetupError, match="jars are missing") as raised:
        paths("spark35")
    assert raised.value.hint == "run `ebbtide setup`"


@pytest.mark.parametrize("named", ["example.org_a-1.0.jar", "a-1.0.jar"])
def test_a_folder_is_enough_by_either_name_of_a_jar(tmp_path: Path, named: str) -> None:
    source = tmp_path / "usb"
    source.mkdir()
    (source / named).write_bytes(_RIGHT)
    jar = _jar("a")
    assert fetch([jar], source=source) == [jar]
    assert jar.path.read_bytes() == _RIGHT
    assert _everything(jar_folder()) == {"example.org_a-1.0.jar": _RIGHT}
    assert fetch([jar], source=tmp_path / "gone") == [], "nothing is asked of anybody when nothing is missing"


def test_what_is_there_is_kept_when_a_folder_lacks_the_rest(tmp_path: Path) -> None:
    source = tmp_path / "usb"
    source.mkdir()
    (source / "a-1.0.jar").write_bytes(_RIGHT)
    with pytest.raises(SetupError, match=re.escape("lacks example.org_b-1.0.jar")):
        fetch([_jar("a"), _jar("b")], source=source)
    assert missing_of([_jar("a"), _jar("b")]) == [_jar("b")]


def test_another_file_than_the_locked_one_never_gets_into_the_cache(tmp_path: Path) -> None:
    source = tmp_path / "usb"
    source.mkdir()
    (source / "a-1.0.jar").write_bytes(_WRONG)
    with pytest.raises(SetupError, match=re.escape("checksum of example.org:a:1.0")):
        fetch([_jar("a")], source=source)
    assert _everything(jar_folder()) == {}


def test_a_jar_that_was_changed_in_the_cache_is_replaced_and_its_neighbours_stay(tmp_path: Path) -> None:
    source = tmp_path / "usb"
    source.mkdir()
    (source / "a-1.0.jar").write_bytes(_RIGHT)
    jar_folder().mkdir(parents=True)
    _jar("a").path.write_bytes(_WRONG)
    (jar_folder() / "somebody-else.jar").write_bytes(_WRONG)
    assert missing_of([_jar("a")]) == [_jar("a")]
    assert fetch([_jar("a")], source=source) == [_jar("a")]
    assert _everything(jar_folder()) == {"example.org_a-1.0.jar": _RIGHT, "somebody-else.jar": _WRONG}


def test_what_a_fetch_had_brought_before_it_was_killed_is_not_fetched_again(cache: Path) -> None:
    """No resolver starts here: this test may start no JVM."""
    ivy = cache / "fetching" / "cache" / "example.org" / "a" / "bundles"
    ivy.mkdir(parents=True)
    (ivy / "a-1.0.jar").write_bytes(_RIGHT)
    (ivy / "a-1.0.jar.part").write_bytes(_RIGHT[:4])
    (cache / "tools").mkdir()
    (cache / "tools" / "uv").write_bytes(_WRONG)
    assert fetch([_jar("a")]) == [_jar("a")]
    assert not (cache / "fetching").exists()
    assert {name for name in _everything(cache) if name != "fetching.lock"} == {
        "jars/example.org_a-1.0.jar",
        "tools/uv",
    }


def test_nothing_behind_a_link_is_cleared(cache: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_bytes(_RIGHT)
    cache.mkdir()
    (cache / "fetching").symlink_to(mine)
    with pytest.raises(SetupError, match="is a link"):
        fetch([_jar("a")])
    assert _everything(mine) == {"thesis.txt": _RIGHT}


def test_a_jar_that_nobody_can_bring_is_named_and_leaves_nothing_behind(cache: Path) -> None:
    """The resolver's Java cannot start in this test."""
    with pytest.raises(SetupError, match=re.escape("could not fetch example.org:a:1.0")):
        fetch([_jar("a")])
    assert not (cache / "fetching").exists()
    assert _everything(jar_folder()) == {}


_WITH_A_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


def test_a_resolver_that_is_interrupted_leaves_no_process_behind() -> None:
    command = [sys.executable, "-c", _WITH_A_CHILD]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    with pytest.raises(Cancelled), _ended(process):
        raise Cancelled("interrupted", exit_code=130)
    assert process.returncode == -9
    assert process.stdout.read() == b"", "its child holds the other end until it is gone"
    assert child != process.pid
    process.stdout.close()


class _Watched:
    def __init__(self) -> None:
        self.told: list[tuple[str, int | None, str]] = []

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        self.told.append((step, total, unit))

    def advance(self, n: int = 1) -> None: ...

    def stop(self) -> None: ...


_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>example.org</groupId><artifactId>a</artifactId><version>1.0</version></project>"""


@pytest.mark.jvm
def test_sparks_own_resolver_brings_jars_with_progress(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the local repository of a user, so that the test needs no network."""
    home = tmp_path / "home"
    place = home / ".m2" / "repository" / "example" / "org" / "a" / "1.0"
    place.mkdir(parents=True)
    (place / "a-1.0.pom").write_text(_POM)
    content = _empty_jar()
    (place / "a-1.0.jar").write_bytes(content)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Duser.home={home}")
    jar, watching = _jar("a", content), _Watched()
    assert fetch([jar], context=RunContext("me", progress=watching)) == [jar]
    assert jar.path.read_bytes() == content
    assert watching.told == [("fetching 1 jars", 1, "MiB")]
    assert {each.name for each in cache.iterdir()} - {"fetching.lock"} == {"jars"}
    jar.path.unlink()
    with pytest.raises(SetupError, match=re.escape("checksum of example.org:a:1.0")):
        fetch([_jar("a", _RIGHT)])
    assert _everything(jar_folder()) == {}


def _empty_jar() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\n")
    return made.getvalue()
