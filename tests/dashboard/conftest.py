"""A client of the page's endpoints, without a network."""

import pytest
from starlette.testclient import TestClient

from archive.dashboard.access import Access
from archive.dashboard.application import Options, create

TOKEN = "a token of sixteen"
HOST = "http://127.0.0.1:8765"


@pytest.fixture
def served(archive):
    """Return clients of one archive, by the options of the page; they send the token unless told otherwise."""
    opened = []

    def client(*, token=TOKEN, access=None, **options):
        application = create(archive, access or Access(TOKEN, "127.0.0.1", 8765), Options(**options))
        opened.append(application)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return TestClient(application, HOST, headers=headers, follow_redirects=False, raise_server_exceptions=False)

    yield client
    for each in opened:
        each.state.news.close()


@pytest.fixture
def client(served):
    return served()
