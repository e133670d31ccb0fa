"""Access to the page: nothing without the token, nothing for other hosts and sites, no markup from
names."""

import re

import pytest
from starlette.datastructures import Headers

from archive.dashboard.access import Access
from archive.errors import SettingsError
from tests.dashboard.conftest import HOST, TOKEN
from tests.support import ROOT

STATIC = ROOT / "archive" / "dashboard" / "static"
HTML = {"accept": "text/html"}


@pytest.mark.parametrize(
    "path", ["/", "/study?study=x", "/api/studies", "/events?topic=studies", "/networks/ab.svg"]
)
def test_nothing_is_told_without_the_token(served, path):
    client = served(token=None)
    assert client.get(path).status_code == 401
    page = client.get(path, headers=HTML)
    assert page.status_code == 401 and 'type="password"' in page.text and "home.js" not in page.text
    for header in ("Bearer", "Bearer wrong", f"Basic {TOKEN}"):
        assert client.get(path, headers={"authorization": header}).status_code == 401


def test_the_token_of_the_printed_address_becomes_a_cookie_and_leaves_the_address(served):
    client = served(token=None)
    answer = client.get(f"/study?study=a%26b&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/study?study=a%26b")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and TOKEN not in cookie
    assert client.get("/api/studies").status_code == 200


def test_the_form_lets_in_with_the_token_only_and_leads_to_this_server_only(served):
    client = served(token=None)
    origin = {"origin": HOST}
    wrong = client.post("/login", data={"token": "no", "next": "/ask"}, headers=origin)
    assert (
        wrong.status_code == 401
        and "not the token" in wrong.text
        and "set-cookie" not in wrong.headers
    )
    answer = client.post("/login", data={"token": TOKEN, "next": "//evil.org/x"}, headers=origin)
    assert (answer.status_code, answer.headers["location"]) == (303, "/evil.org/x")
    # The form itself is where the second attempt after a wrong token was made.
    again = client.post("/login", data={"token": TOKEN, "next": "/login"}, headers=origin)
    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert client.get("/login").headers["location"] == "/"
    for foreign in (
        {"origin": "http://evil.org"},
        {"origin": HOST, "sec-fetch-site": "same-site"},
        {},
    ):
        assert client.post("/login", data={"token": TOKEN}, headers=foreign).status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200),
        ("localhost:8765", 200),
        ("[::1]:8765", 200),
        ("evil.org:8765", 421),
        ("127.0.0.1.evil.org:8765", 421),
        ("localhost:80", 421),
        ("", 421),
        ("a@127.0.0.1:8765", 421),
    ],
)
def test_only_the_own_host_is_served(client, host, status):
    assert client.get("/api/studies", headers={"host": host}).status_code == status


def test_other_addresses_serve_addresses_and_named_hosts():
    access = Access(TOKEN, "0.0.0.0", 8765, ("archive.example.org",))
    for host in (
        "10.0.0.7:8765",
        "archive.example.org",
        "archive.example.org:443",
        "localhost:8765",
    ):
        assert access.allows_host(host)

    for host in ("evil.org:8765", "example.org", "archive.example.org.evil.org"):
        assert not access.allows_host(host)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.org"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": HOST},
    ],
)
def test_other_sites_change_nothing_even_with_the_cookie(served, archive, headers):
    client = served(write=True, token=None)
    client.get(f"/?token={TOKEN}")
    answer = client.post("/api/query", json={"cypher": "RETURN 1"}, headers=headers)
    assert answer.status_code == 403
    # A browser always sends the origin; a request without one has no right by its cookie.
    assert client.post("/api/query", json={"cypher": "RETURN 1"}).status_code == 403
    assert (
        client.post("/api/query", json={"cypher": "RETURN 1"}, headers={"origin": HOST}).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("archive.example.org", "https://archive.example.org", True),
        ("archive.example.org:8443", "https://archive.example.org:8443", True),
        ("127.0.0.1:8765", "https://archive.example.org", True),  # a proxy that writes another Host
        ("archive.example.org", "https://archive.example.org:9999", False),
        ("archive.example.org", "http://archive.example.org:1234", False),
        ("127.0.0.1:8765", "http://6.6.6.6:8765", False),
        ("archive.example.org", "archive.example.org", False),
    ],
)
def test_another_port_or_address_is_another_server(host, origin, allowed):
    access = Access(TOKEN, "0.0.0.0", 8765, ("archive.example.org",))
    headers = Headers({"host": host, "origin": origin, "sec-fetch-site": "same-origin"})
    assert access.allows_host(host)
    assert access.allows_origin(headers, "POST") is allowed


def test_every_answer_lets_a_page_load_nothing_from_elsewhere(client):
    for path in (
        "/",
        "/api/studies",
        "/static/style.css",
        "/nowhere",
        "/api/study/points?study=none",
    ):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'self'" in policy and "unsafe" not in policy and "http" not in policy

    assert client.get("/static/parts/page.js").headers["cache-control"] == "no-cache"
    page = client.get("/", headers=HTML).text
    assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=|https?://", page)


def test_no_module_writes_markup_or_names_another_server():
    modules = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts]
    assert len(modules) > 8
    for path in modules:
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new "
            r"Function",
            text,
        ), path
        assert "//" not in re.sub(r"(?m)(^|[\s;{(])//.*$|http://www\.w3\.org/2000/svg", "", text), (
            path
        )

    assert (
        (STATIC / "vendor" / "uplot" / "LICENSE").read_text("utf-8").startswith("The MIT License")
    )


def test_a_short_token_is_refused_and_none_is_shown():
    with pytest.raises(SettingsError, match=r"at least 16 characters, got 3$"):
        Access("abc")

    assert len(Access().token) > 40 and Access().token != Access().token
    assert TOKEN not in repr(Access(TOKEN))


@pytest.mark.parametrize(
    "name",
    ["https://archive.example.org", "archive.example.org:8443", "archive.example.org/x", "a b", ""],
)
def test_a_further_host_is_a_name_without_scheme_port_and_path(name):
    with pytest.raises(
        SettingsError, match=f"as in --allow-host archive.example.org, got {name!r}"
    ):
        Access(TOKEN, names=("proxy", "10.0.0.7", "::1", name))
