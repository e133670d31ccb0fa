"""The first picture of the README: the page of a study, as a browser shows it.

    archive search --agent nasbot --budget 40           a study with results, in ARCHIVE_HOME
    python docs/scripts/page_picture.py STUDY           writes docs/pictures/page.png

Needs Chromium and `pip install -e '.[dev]'`.
"""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path
from urllib.parse import quote

from PIL import Image

import archive
from archive.dashboard.server import DashboardServer
from tests.support import wait_until
from tests.support.chromium import chromium

PATH = Path(__file__).resolve().parents[1] / "pictures" / "page.png"
SIZE = {"width": 1360, "height": 1150}
COLOURS = 128
"""Colours of the file: few more than the page has."""
TOKEN = "a token of sixteen"


def shoot(server: DashboardServer, study: str) -> bytes:
    """Return the upper part of a study's page as PNG, in light colours."""
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE, color_scheme="light", device_scale_factor=1.25)
        page.goto(f"{server.address}study?study={quote(study)}")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        page.locator(".answer .viewed .aa-node").first.wait_for()
        page.locator("canvas").locator("visible=true").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(2000)
        return bytes(page.screenshot())


def main(study: str) -> None:
    """Write the picture."""
    with archive.connect() as store:
        server = DashboardServer(store, port=0, token=TOKEN)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started, what="the start of the dashboard")
            picture = Image.open(io.BytesIO(shoot(server, study))).convert("RGB")
        finally:
            server.stop()
            thread.join()

    picture.quantize(COLOURS).save(PATH, optimize=True)
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
