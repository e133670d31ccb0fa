"""A client of the page's endpoints, without a network; and the page in a real browser, with one
server for a module."""

from __future__ import annotations

import threading

import pytest
from starlette.testclient import TestClient

from archive.api import Archive
from archive.dashboard.access import Access
from archive.dashboard.application import Options, create
from archive.dashboard.server import DashboardServer
from tests.support import wait_until
from tests.support.chromium import chromium

TOKEN = "a token of sixteen"
HOST = "http://127.0.0.1:8765"


@pytest.fixture
def served(archive):
    """Return clients of one archive, by the options of the page; they send the token unless told
    otherwise."""
    opened = []

    def client(*, token=TOKEN, access=None, **options):
        application = create(
            archive, access or Access(TOKEN, "127.0.0.1", 8765), Options(**options)
        )
        opened.append(application)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return TestClient(
            application,
            HOST,
            headers=headers,
            follow_redirects=False,
            raise_server_exceptions=False,
        )

    yield client
    for each in opened:
        each.state.news.close()


@pytest.fixture
def client(served):
    return served()


@pytest.fixture(scope="module")
def server(migrated_connection):
    """A dashboard that may write, in a thread of this process."""
    opened = DashboardServer(
        Archive(migrated_connection), port=0, token=TOKEN, options=Options(write=True)
    )
    thread = threading.Thread(target=opened.run)
    thread.start()
    wait_until(lambda: opened.started, what="the start of the dashboard")
    yield opened
    opened.stop()
    thread.join()


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser, server, archive):
    """Return a function that opens an address, and runs a script before those of the page.

    The test fails for any request elsewhere and any error of a page.
    """
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 1000, "height": 1300})
    context.set_default_timeout(15_000)

    def opened(path="/", *, token=True, script=None):
        # A feed is at most a second old, and so may be of the archive of the test before.
        server.application.state.news.hurry("study:study")
        page = context.new_page()
        if script:
            page.add_init_script(script)

        page.on(
            "request",
            lambda request: (
                faults.append(request.url) if _is_foreign(request.url, server) else None
            ),
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console", lambda said: faults.append(said.text) if _is_error(said) and token else None
        )
        page.goto(
            server.address.rstrip("/")
            + path
            + (("&" if "?" in path else "?") + f"token={TOKEN}" if token else "")
        )
        return page

    yield opened
    context.close()
    assert not faults


def _is_error(said):
    # Chromium itself reports every request while it is offline.
    return said.type == "error" and "ERR_INTERNET_DISCONNECTED" not in said.text


def _is_foreign(url, server):
    return not url.startswith((server.address, "data:", "blob:"))
