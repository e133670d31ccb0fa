"""Downloads of dumps: from a server of this machine, within a limit, with a digest."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from archive.errors import UsageError
from archive.exchange import download as module
from archive.exchange.download import digest, download, is_address


class _Files(BaseHTTPRequestHandler):
    def do_GET(self):
        targets = {"/away": "http://example.org/x", "/file": "file:///etc/passwd"}
        if target := targets.get(self.path):
            self.send_response(302)
            self.send_header("Location", target)
        else:
            self.send_response(200 if self.path == "/dump" else 404)

        self.end_headers()
        if self.path == "/dump":
            self.wfile.write(b"x" * 5000)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    with HTTPServer(("127.0.0.1", 0), _Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_file_is_downloaded(address, tmp_path):
    found = download(f"{address}/dump", tmp_path / "dump")
    assert (tmp_path / "dump").read_bytes() == b"x" * 5000
    assert found == digest(tmp_path / "dump") == hashlib.sha256(b"x" * 5000).hexdigest()


def test_a_slow_server_is_given_up(address, tmp_path, monkeypatch):
    seconds = iter((0, 36, 36, 36))
    monkeypatch.setattr(module, "monotonic", lambda: next(seconds))
    with pytest.raises(UsageError, match="less than 1,024 bytes per second"):
        download(f"{address}/dump", tmp_path / "dump")


@pytest.mark.parametrize(
    ("path", "message"),
    [("/none", "Not Found"), ("/away", "over https"), ("/file", "not allowed"), ("/dump", "4,999")],
)
def test_what_is_no_file_is_refused(address, tmp_path, path, message):
    with pytest.raises(UsageError, match=message):
        download(address + path, tmp_path / "dump", most_bytes=4999)


@pytest.mark.parametrize(
    "text", ["http://example.org/a", "ftp://x/y", "file:///a", "https:/[", "s3://a/b"]
)
def test_other_protocols_are_refused(text, tmp_path):
    with pytest.raises(UsageError, match=r"https|no address"):
        download(text, tmp_path / "dump")


def test_addresses_differ_from_paths():
    assert is_address("https://example.org/a.gz")
    assert not is_address("folder/a.gz")
    assert not is_address("-")
