"""A real browser: Debian's Chromium, without a download."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = (
    # Without what only windows need: half the processor time.
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium/chromium",
    "/usr/bin/chromium",
)
CHROMIUM = next((path for path in PROGRAMS if Path(path).exists()), None)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"
)

SHORT_WAITS = """
const original = window.setTimeout;
window.setTimeout = (work, wait, ...rest) => original(work, Math.min(wait, 1000), ...rest);
"""
"""A script before those of a page: what is drawn every five seconds is drawn every second."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Run the browser; skip the test where playwright is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        opened = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()
