"""The examples of the documents in Python and Cypher run, in an archive with a small study."""

import re
import shutil
from contextlib import nullcontext
from functools import partial

import pytest

import archive
from archive import agents, spaces
from archive.api import Archive
from archive.runs import life_cycle
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.settings import environment
from archive.space import Space
from archive.store.studies.builds import Build
from tests.conftest import wipe
from tests.support import ROOT, WHOLE
from tests.support.commands import serving
from tests.support.networks.torch_nets import chain, layer, residual

PAGES = [ROOT / "README.md", *sorted(ROOT.joinpath("docs").rglob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language):
    """Return the blocks of a language with the names of their pages; the tutorial has a test of its
    own."""
    return [
        pytest.param(text, id=f"{path.relative_to(ROOT)}-{place}")
        for path in PAGES
        if path.name != "tutorial.md"
        for place, (kind, text) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
        if kind == language
    ]


@pytest.fixture(scope="module")
def filled(migrated_connection):
    """An archive that holds small studies."""
    wipe(migrated_connection)
    store = Archive(migrated_connection)
    study = agents.study(store, "nasbot-cnn-digits", "cnn", task="digits")
    study.run(lambda network: float(network.depth), budget=12, agent="evolution")
    agents.study(store, "ideas", "cnn").enqueue(
        study.best().architecture, motivation="the best one, trained longer"
    )
    # Networks with branches, which the first ones of `cnn` have not.
    for space in ("nasbench201", "darts"):
        agents.study(store, f"cells of {space}", space).run(
            lambda cell: float(cell.depth), budget=3, agent="random"
        )

    # Imported networks: a convolution of each channel by itself, and one with a skip.
    store.architectures.add(
        [chain(layer("convolution", weight=[3, 1, 3, 3], groups=3)), residual()]
    )
    configuration = spaces.of(Space(width=[2, 4])).of_names({"width": 2})
    depthwise = chain(layer("convolution", weight=[3, 1, 3, 3], groups=3))
    build = Build(configuration, depthwise, "models.py:build", None, ["width"], None)
    store.builds.add([build])
    rows = [{"id": 0, "lr": 0.1, "loss": 2.0}, {"id": 1, "up": 0, "lr": 0.3, "loss": 1.0}]
    mapping = RunMapping("loss", "minimise", identity="id", parent="up", values=("lr",))
    import_runs(store, "tuning", rows, mapping)
    network = study.best().architecture
    store.proxies.add(
        "fashion-mnist",
        "fashion-mnist/1",
        "archive/1",
        {network.key: {"synflow": 3.5, "naswot": 210.0}},
    )
    return store


def search(original, *arguments, budget, **options):
    """Search with the trainer of the test; unless everything is run, train one network."""
    return original(*arguments, budget=budget if WHOLE else 1, trainers=0, **options)


@pytest.mark.parametrize("text", blocks("python"))
def test_an_example_in_python(text, filled, store_settings, monkeypatch, capsys):
    for name, value in environment(store_settings).items():
        monkeypatch.setenv(name, value)

    # The trainer of a search would be two more processes that import torch.
    shared = serving(filled) if "archive.search(" in text else nullcontext()
    monkeypatch.setattr("archive.search", partial(search, archive.search))
    # A process of its own would deliver a run while a later test counts.
    monkeypatch.setattr(life_cycle, "start_delivery", lambda _: None)
    with shared:
        exec(compile(text, "example", "exec"), {})

    # Runs that wait there would be delivered while a later test counts.
    shutil.rmtree(store_settings.home / "runs", ignore_errors=True)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("text", blocks("cypher"))
def test_an_example_in_cypher(text, filled):
    answer = filled.query(text)
    # A study whose networks were not trained has no curves, and none of its attempts failed; the
    # published networks are elsewhere.
    absent = ("curve_", "outcome", "'imagenet-1k'", "'inference'", "kv_heads")
    assert answer.rows or any(word in text for word in absent)


QUERIES = sorted(
    {
        query
        for block in blocks("sh")
        for query in re.findall(r'archive query "([^"]*)"', block.values[0])
    }
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_a_shell_example(query, filled):
    assert filled.query(query).columns
