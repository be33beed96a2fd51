"""The overview in a real browser, offline: it lays it out, and nothing in it is kept from being shown."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.operations.markup import Page
from tests.operations.test_overview import POLICIES

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found is not None, "Chromium is needed for these tests; install it, or leave them to another machine"
    return found


def test_a_browser_shows_the_whole_page(tmp_path: Path, browser: str) -> None:
    root = tmp_path / "project"
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    assert ebbtide("scan", cwd=root).returncode == 0
    assert ebbtide("report", "overview", "--html", "page.html", cwd=root).returncode == 0
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=900,1200"]
    options += [f"--user-data-dir={tmp_path / 'profile'}", "--disable-background-networking"]
    page = (root / "page.html").as_uri()
    shown = subprocess.run([browser, *options, "--dump-dom", page], capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert "Content Security Policy" not in shown.stderr, "nothing that the page asks for is refused to it"
    written = Page.read((root / "page.html").read_text())
    assert "lake.db.payments" in shown.stdout
    assert shown.stdout.count("<svg") == written.tags.count("svg"), "the browser reads it as our parser does"
    picture = tmp_path / "page.png"
    subprocess.run([browser, *options, f"--screenshot={picture}", page], capture_output=True, timeout=120, check=True)
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert (width, height) == (900, 1200)
    assert picture.stat().st_size > 20_000, "an empty page is far smaller"
