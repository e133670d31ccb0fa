"""The examples of the documents in Python and Cypher run, in an archive with a small study."""

import re

import pytest

import archive
from archive import agents, settings
from archive.server import embedded
from tests.support import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.joinpath("docs").rglob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language):
    """Return the blocks of a language with the names of their pages; the tutorial has a test of its own."""
    return [
        pytest.param(text, id=f"{path.relative_to(ROOT)}-{place}")
        for path in PAGES
        if path.name != "tutorial.md"
        for place, (kind, text) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
        if kind == language
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an archive that holds small studies."""
    own = settings.load(home=tmp_path_factory.mktemp("examples") / "home", patience=30.0)
    with archive.connect(own) as store:
        study = agents.study(store, "nasbot-cnn-digits", "cnn", task="digits")
        study.run(lambda network: float(network.depth), budget=12, agent="evolution")
        # Networks with branches, which the first ones of `cnn` have not.
        agents.study(store, "cells", "nasbench201").run(lambda cell: float(cell.depth), budget=3, agent="random")
    yield own.home
    embedded.stop(own)


@pytest.mark.parametrize("text", blocks("python"))
def test_an_example_in_python(text, folder, monkeypatch, capsys):
    monkeypatch.setenv("ARCHIVE_HOME", str(folder))
    exec(compile(text, "example", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("text", blocks("cypher"))
def test_an_example_in_cypher(text, folder):
    with archive.connect(home=folder) as store:
        answer = store.query(text)
    # A study whose networks were not trained has no curves, and none of its attempts failed.
    assert answer.rows or "curve_" in text or "outcome" in text


QUERIES = sorted({query for block in blocks("sh") for query in re.findall(r'archive query "([^"]*)"', block.values[0])})


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_a_shell_example(query, folder):
    with archive.connect(home=folder) as store:
        assert store.query(query).columns
