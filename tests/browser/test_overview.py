"""The overview in a real browser, offline: all of it is laid out and can be heard, and nothing is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.operations.test_overview import POLICIES

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("browser") / "project"
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    assert ebbtide("scan", cwd=root).returncode == 0
    assert ebbtide("report", "overview", "--html", "page.html", cwd=root).returncode == 0
    return root / "page.html"


@pytest.fixture
def page(browser: Browser) -> Page:
    return browser.new_page(viewport={"width": 900, "height": 1200}, offline=True)


def test_nothing_is_refused_and_nothing_is_fetched(page: Page, written: Path) -> None:
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(written.as_uri())
    assert said == [], "its Content Security Policy allows all that it needs"
    assert asked == [written.as_uri()]


def test_every_chart_has_a_size_and_is_heard(page: Page, written: Path) -> None:
    page.goto(written.as_uri())
    assert page.get_by_role("heading", level=1).count() == 1
    charts = page.get_by_role("img").all()
    assert charts, "who cannot see a chart is told what it shows"
    for chart in charts:
        box = chart.bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 5
    heard = page.locator("body").aria_snapshot()
    assert "lake.db.payments" in heard
    assert len(re.findall(r'img "[^"]+"', heard)) == len(charts), "none is an image without a name"


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_it_fits_the_window(page: Page, written: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1200})
    page.goto(written.as_uri())
    wanted, given = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wanted <= given, "nobody scrolls sideways: what is wide scrolls by itself"
    assert len(page.screenshot()) > 10_000, "an empty page is far smaller"
