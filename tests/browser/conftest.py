"""A real browser: Chromium's headless shell, which `make setup-browser` fetches, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from ebbtide.spark.jars import cache_dir


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    homes = sorted((cache_dir() / "browser").glob("*/chromium"))
    assert homes, "run `make setup-browser`"
    home = homes[-1].parent
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=home / "chromium",
            # It has no helper for a sandbox, and looks at pages of our own only.
            args=["--no-sandbox", "--no-zygote", "--disable-gpu"],
            env={"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_PATH": str(home)},
        )
        yield browser
        browser.close()
