"""A browser without a window, for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1300,900")
_PATIENCE = 60.0
"""Seconds."""


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, driven by Selenium, with a log of its console."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: Any, address: str | Path) -> None:
    """Open a page, a file or an address, and wait until it is drawn."""
    driver.get(address if isinstance(address, str) else address.absolute().as_uri())
    wait(driver, "return document.documentElement.dataset.ready === 'true'")


def wait(driver: Any, script: str) -> Any:
    """Wait until a script returns something true, and return that."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, _PATIENCE, poll_frequency=0.05).until(lambda each: each.execute_script(script))


def complaints(driver: Any) -> list[str]:
    """What the console has of errors and warnings since the last call."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
