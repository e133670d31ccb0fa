"""A space of cells from another package is searched like the built-in ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History
from archive.agents.bayesopt import bananas, tree_wasserstein
from archive.agents.bayesopt.portfolio_members import defaults, member_model
from archive.agents.encodings import ABSENT, decisions_of
from archive.agents.transfer.cell_vocabulary import comparable, translate
from archive.architecture import codec
from archive.architecture.operations import Operation, define, vocabulary
from archive.errors import UnknownNameError, UsageError
from archive.kernels.distances.tree_wasserstein.operation_trees import default_tree
from archive.kernels.features.paths import PathEncoding
from archive.spaces.base import Space
from tests.agents.test_contract import (  # noqa: F401
    agent,
    test_config_remakes_the_agent,
    test_empty_history,
    test_equal_values,
    test_everything_failed,
    test_full_history,
    test_nothing_is_changed,
    test_observed_and_pending,
    test_one_observation,
    test_pending_only,
    test_same_seed_same_suggestions,
)
from tests.support.histories import observed
from tests.support.networks import motifs
from tests.support.networks.motifs import LABELS, Motifs

pytestmark = pytest.mark.usefixtures("few_candidates")

KINDS = ("tpe", "gp-optuna", "reinforce", "treebo", "portfolio", "tw", "bananas")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def space():
    return Motifs()


def test_it_is_taken_for_cells(space):
    assert space.is_cell
    assert [spaces.get(name).is_cell for name in ("nasbench101", "nasbench201", "cnn", "mlp")] == [
        True,
        True,
        False,
        False,
    ]
    assert defaults(space) == defaults(spaces.get("nasbench101")) != defaults(spaces.get("cnn"))
    for member in ("features", "paths", "sums"):
        member_model(member, space)

    with pytest.raises(UnknownNameError, match="otmann"):
        member_model("otmann", space)

    kinds = [type(one) for one in tree_wasserstein.distances(space, "default", None)]
    assert PathEncoding in kinds
    assert len(bananas.encoding(space, "default").parts) == 3


def test_decisions_make_its_cells(space):
    decisions = decisions_of(space, "tpe")
    rng = np.random.default_rng(0)
    assert [len(decision.choices) for decision in decisions.decisions] == [2] * 15 + [4] * 4
    for _ in range(100):
        cell = space.sample(rng)
        made = decisions.encode(cell)
        assert decisions.decode(made).key == cell.key
        # A vertex that the cell lacks has no label.
        assert sum(choice != ABSENT for choice in made[15:]) == len(cell.layers) - 2


def test_cells_that_can_be_listed_need_not_say_more(space):
    """Decisions of a space that defines none: as many vertices as its largest cell."""
    rng = np.random.default_rng(0)
    some = [space.sample(rng) for _ in range(30)]

    class Few(Motifs):
        decisions = Space.decisions

        def members(self):
            return some

    derived = Few().decisions()
    assert derived.vertices == max(len(cell.layers) for cell in some)
    assert all(derived.decode(derived.encode(cell)).key == cell.key for cell in some)
    del Few.members
    assert Few().decisions() is None


def test_agents_learn_from_it_by_decisions(space):
    """Cells score by their share of pools; REINFORCE draws pools from then on."""
    rng = np.random.default_rng(0)
    seen = {cell.functional_key: cell for cell in (space.sample(rng) for _ in range(120))}
    scores = [
        sum(layer.op == "pool" for layer in cell.layers) / len(cell.layers)
        for cell in seen.values()
    ]
    history = History(observed(list(seen.values()), scores))
    suggestions = agents.get("reinforce", space).propose(history, 20, rng)
    share = np.mean(
        [layer.op == "pool" for one in suggestions for layer in one.architecture.layers[1:-1]]
    )
    assert share > 0.5


def test_its_own_tree_and_words_are_used(space):
    paths = default_tree("motifs").paths
    assert [node.name for node in paths["sep3"]] == ["convolution", "sep3"]
    assert comparable("motifs", "nasbench201")
    cell = motifs._cell(["sep3", "none-but-skip"], [(0, 1), (1, 2), (2, 3)])
    translated = translate(cell)
    assert [layer.op for layer in translated.layers] == ["ip", "conv3x3-bn-relu", "op"]
    assert translated.edges == ((0, 1), (1, 2))


SEARCH = """
import numpy as np
from archive import agents, spaces
from archive.architecture import codec
from archive.agents.base import History, Observation
from archive.errors import CodecError

cell = codec.from_json(TEXT)
print(cell.space, [layer.op for layer in cell.layers])
space = spaces.get("motifs")
rng = np.random.default_rng(0)
seen = [Observation(one, float(at), str(at)) for at, one in enumerate(space.initial_pool(rng))]
for kind in ("tpe", "reinforce", "treebo"):
    (found,) = agents.get(kind, space).propose(History(tuple(seen)), 1, rng)
    print(kind, found.architecture.space)
try:
    codec.from_json(TEXT.replace("motifs", "motif"))
except CodecError as error:
    print(error)
"""


def test_an_installed_package(tmp_path: Path):
    """Its networks can be read before the space is loaded: a trainer reads them from the
    archive."""
    shutil.copy(motifs.__file__, tmp_path / "some_motifs.py")
    info = tmp_path / "some_motifs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-motifs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[archive.spaces]\nmotifs = some_motifs:Motifs\n")
    cell = Motifs().sample(np.random.default_rng(0))
    code = f"TEXT = {codec.to_json(cell)!r}\n{SEARCH}"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert lines[0] == f"motifs {[layer.op for layer in cell.layers]}"
    assert lines[1:4] == ["tpe motifs", "reinforce motifs", "treebo motifs"]
    assert lines[4].startswith("unknown space 'motif'")


def test_words_are_complete():
    with pytest.raises(
        UsageError,
        match="common must name every operation of toy and no other: 'b' is missing or unknown",
    ):
        define("toy", [Operation("a", "cell"), Operation("b", "cell")], common={"a": "maxpool3x3"})

    with pytest.raises(UnknownNameError):
        vocabulary("toy")

    assert set(vocabulary("motifs").common) == set(LABELS)
