"""The page of the data model names what archives hold: every label, relationship and property, with
its type."""

import importlib.util
import math
import re

import pytest

from archive import agents, space, spaces
from archive.agents.ask_tell import enqueueing
from archive.agents.ask_tell.types import EnqueuedArchitecture
from archive.agents.base import Suggestion
from archive.agents.distance_sync import DistanceSync
from archive.queries import data_model
from archive.queue import workers
from archive.queue.causes import Cause, MemoryNeed
from archive.queue.updates import Failure, Release
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store.properties import METRIC
from archive.store.studies.builds import Build
from tests.dashboard.recorded_runs import StoredRun, store_runs
from tests.support import ROOT
from tests.support.commands import Shell, serving, table
from tests.support.networks.block_nets import language_net, mobile_net, residual_net

FOLDER = ROOT / "docs"
PAGE = (FOLDER / "data-model.md").read_text(encoding="utf-8")

KINDS = {str: "STRING", bool: "BOOLEAN", int: "INTEGER", float: "FLOAT"}

NODES = (
    "MATCH (n) UNWIND keys(n) AS key RETURN DISTINCT labels(n)[0] AS owner, key, "
    "head(collect(n[key])) AS value"
)
RELATIONS = (
    "MATCH ()-[r]->() UNWIND keys(r) AS key RETURN DISTINCT type(r) AS owner, key, "
    "head(collect(r[key])) AS value"
)
ENDS = "MATCH (a)-[r]->(b) RETURN DISTINCT labels(a)[0], type(r), labels(b)[0]"


def _model():
    spec = importlib.util.spec_from_file_location(
        "data_model", FOLDER / "scripts" / "data_model.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODEL = _model()
DOCUMENTED = MODEL.documented(PAGE)
IMPORTED = [language_net(), mobile_net(gated=True), residual_net(deep=True, groups=4)]
ATTRIBUTES = {
    ("Layer", name) for network in IMPORTED for layer in network.layers for name in layer.attributes
}
"""Properties of layers of imported models, which have the names of PyTorch."""
"""Label or type of relationship to its properties, with their types."""


def kind(value):
    """Return the name of a value's type as the page has it."""
    return f"LIST<{kind(value[0])}>" if isinstance(value, list) else KINDS[type(value)]


def documented(owner, name):
    """Return the type that the page gives a property, by its own name or its family's."""
    of_owner = DOCUMENTED.get(owner, {})
    return of_owner.get(name) or of_owner.get(f"{name.partition('_')[0]}_*")


def fill(archive, shell, folder):
    """Store what asking and telling, failing, importing, and a search with rungs and a warm start
    leave behind."""
    first = agents.study(
        archive, "first", "mlp", task="diabetes", protocol="diabetes/1", objective="valid_mse"
    )
    for trial in first.ask("evolution", 13):
        first.report(trial, 1, {"loss": 1.0})
        first.tell(trial, 1 / len(trial.architecture.layers), metrics={"loss": 0.5}, seconds=1.0)

    scores = {
        each.architecture.key: {"synflow": 1.0, "naswot": math.nan} for each in first.evaluations()
    }
    archive.proxies.add("diabetes", "diabetes/1", "archive/1", scores)
    DistanceSync(archive).keep(
        {each.architecture.key: each.architecture for each in first.evaluations()}
    )
    for retry in (True, False):
        (last,) = first.ask("nasbot", 1)
        archive.proposals.fail(
            last.id, last.token, "out of memory", log="the end of the log", retry=retry
        )

    _out_of_reach(archive, first)
    enqueueing.add(archive, "first", first.space, _idea(first), enqueueing.LANGUAGE_MODEL)
    again = Suggestion(first.best().architecture, repeat=True)
    archive.proposals.create("first", archive.proposals.register_agent("random", {}, "1"), [again])
    (waiting,) = first.ask("nasbot", 1)
    first.report(waiting, 1, {"loss": 1.0})
    shell.types("import", "table", table(folder))
    configuration = spaces.of(space.Space(width=[2, 4])).of_names({"width": 2})
    # Layers of imported models have further attributes.
    network = first.best().architecture
    built = Build(configuration, network, "models.py:build", "sha256:1", ["width"], "state")
    archive.builds.add([built])
    archive.architectures.add(IMPORTED)
    rows = [{"id": 0, "up": None, "loss": 1.0}, {"id": 1, "up": 0, "loss": 2.0}]
    mapping = RunMapping("loss", "minimise", identity="id", parent="up")
    import_runs(archive, "recorded", rows, mapping)
    texts = {"diff": "+x = 1", "log_end": "done"}
    store_runs(archive, [StoredRun({"lr": 0.1}, 1.0, properties=texts)], "program")
    search = (
        "search",
        "--agent",
        "random",
        "--task",
        "diabetes",
        "--space",
        "mlp",
        "--study",
        "second",
    )
    rungs = ("--rungs", "1,2", "--reduction", "2", "--budget", "2")
    with serving(archive):
        shell.types(*search, "--warm-start", "first", *rungs, "--trainers", "0")


def _out_of_reach(archive, study):
    """A proposal that one worker refuses, and that runs out of memory on another."""
    capabilities = {"tasks": ["diabetes"], "spaces": ["mlp"], "recipes": ["default"]}
    workers.arrive(
        archive.connection, "other", **capabilities, devices=["cuda:0 (H100)"], memory_bytes=1 << 31
    )
    refused = study.ask("nasbot", 1)[0]
    archive.proposals.settle([Release(refused.id, refused.token, "no driver", Cause.DEVICE)])
    (held,) = archive.proposals.claim_many("other", 1, study="first")
    memory = MemoryNeed(1 << 30, 1 << 31, alone=False)
    failure = Failure(
        held.id, held.token, "out of memory", cause=Cause.OUT_OF_MEMORY, memory=memory
    )
    archive.proposals.settle([failure])
    archive.proposals.cancel(held.id)


def _idea(study):
    """A network that the study has not, with all that a language model may say about it."""
    known = study.best().architecture
    evaluated = {each.architecture.functional_key for each in study.evaluations()}
    ideas = (mutation.child for mutation in study.space.neighbours(known))
    new = next(idea for idea in ideas if idea.functional_key not in evaluated)
    return EnqueuedArchitecture(new, 0.0, "one layer more", (known.key,), known, ("layer added",))


@pytest.fixture
def filled(archive, store_settings, tmp_path):
    fill(archive, Shell(store_settings, tmp_path), tmp_path)
    return archive


def test_an_archive_holds_nothing_that_the_page_lacks(filled):
    held = [*filled.query(NODES).rows, *filled.query(RELATIONS).rows]
    lacking = [
        (owner, name, kind(value))
        for owner, name, value in held
        if documented(owner, name) not in (kind(value), "ANY") and (owner, name) not in ATTRIBUTES
    ]
    assert not lacking, "docs/data-model.md lacks these, or names other types"
    assert {tuple(row) for row in filled.query(ENDS).rows} == MODEL.relationships(PAGE)
    # The search was one that leaves traces of everything.
    seen = {(owner, name) for owner, name, _ in held}
    assert {
        ("CLAIMED", "log"),
        ("CLAIMED", "promoted"),
        ("Proposal", "rung_values"),
        ("Proposal", "mean"),
    } <= seen
    assert {
        ("DISTANCE", "otmann"),
        ("Evaluation", "partial"),
        ("Weights", "sha256"),
        ("Worker", "ended"),
    } <= seen


def test_every_property_of_the_page_is_one_of_the_code():
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("archive", "kernels")
        for path in (ROOT / folder).rglob("*.py")
    ]
    words = set(re.findall(r"\w+", "\n".join(sources)))
    names = {
        name for of_owner in DOCUMENTED.values() for name in of_owner if not name.endswith("*")
    }
    names = {name.removeprefix(METRIC) for name in names}
    assert names <= words | {"otmann_normalised", "gromov_wasserstein"}


def test_the_table_of_constraints_is_up_to_date():
    assert MODEL.replaced(PAGE) == PAGE, "run: python docs/scripts/data_model.py"


def test_the_packaged_data_model_is_that_of_the_page():
    assert MODEL.PACKAGED.read_text(encoding="utf-8") == MODEL.packaged(PAGE), (
        "run: python docs/scripts/data_model.py"
    )
    packaged = data_model.read()
    parts = {**packaged["labels"], **packaged["relationships"]}
    for name, part in parts.items():
        assert {each: about["type"] for each, about in part["properties"].items()} == DOCUMENTED[
            name
        ]

    assert parts.keys() >= {name for name in DOCUMENTED if DOCUMENTED[name]}
    assert len(packaged["patterns"]) == len(MODEL.relationships(PAGE))
