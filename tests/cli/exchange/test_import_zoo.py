"""`archive import zoo`, typed as a user types it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from archive.cli.exchange.import_zoo import ZooImport
from archive.trainer.zoo import importing
from archive.trainer.zoo.processes import Built
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.networks import toy_zoo


@pytest.fixture
def zoo(monkeypatch):
    """A zoo named timm with a good and a bad network, built in this process."""

    def build_all(build, waiting, limits):
        for reference in waiting:
            good = reference.isdigit()
            yield Built(reference, build(reference) if good else None, "" if good else "no \x1b[2J")

    networks = [toy_zoo.network("small", "0"), toy_zoo.network("bad", "broken")]
    module = SimpleNamespace(build=toy_zoo.build, published=lambda folder: networks)
    monkeypatch.setattr(importing, "build_all", build_all)
    monkeypatch.setattr(importing, "PACKAGES", {"timm": lambda: "1"})
    monkeypatch.setattr(importing, "ZOOS", {"timm": module})


@pytest.fixture
def user(connection, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_the_import_says_what_is_in_and_what_is_not(user, zoo):
    out = user.types("import", "zoo", "timm", "--retry", "--json").stdout
    # The build prints, which its own process would drop.
    document = json.loads(out[out.index("{") :])
    assert not faults(document, ZooImport)
    assert (document["names"], document["evaluations"]) == (1, 2)
    assert document["left_out"] == [{"name": "bad", "results": 2, "reason": "no \x1b[2J"}]
    listed = user.types("import", "zoo", "timm", "--models", "bad").stdout
    assert r"no \x1b[2J" in listed and "names          0" in listed


def test_a_pattern_that_matches_nothing_is_refused(user, zoo):
    refused = user.types("import", "zoo", "timm", "--models", "smal", code=None).stderr
    assert "unknown model 'smal'" in refused and "small" in refused


def test_a_missing_package_is_one_line(user, monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setattr(importing, "PACKAGES", {"timm": missing})
    refused = user.types("import", "zoo", "timm", code=None).stderr
    assert refused.strip().endswith("timm is not installed: pip install 'nas-archive[zoo]'")
