"""Agents on the space `darts`: every agent for cells proposes new members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import agents, spaces
from archive.agents.base import History, Pending
from archive.agents.bayesopt import bananas
from archive.agents.bayesopt.portfolio_members import defaults
from archive.architecture.genotypes.codec import from_genotype
from archive.spaces.darts.published import PUBLISHED
from tests.agents.test_contract import CHEAP, ONLY_ON, VARIANTS, check, made, propose
from tests.support import examples, installed_agents
from tests.support.histories import grown, observed
from tests.support.networks.genotypes import genotypes

pytestmark = pytest.mark.usefixtures("few_candidates")

DARTS = spaces.get("darts")
# The variants share all code but their kernels, whose contract runs on this space.
KINDS = [kind for kind in installed_agents() if kind not in ONLY_ON and kind not in VARIANTS]
FAST = (
    "bfs",
    "evolution",
    "hill-climbing",
    "local-search",
    "random",
    "regularized-evolution",
    "reinforce",
    "tpe",
)

pytestmark = pytest.mark.usefixtures("few_candidates")


@pytest.mark.parametrize("kind", KINDS)
def test_proposals_are_new_members(kind):
    seen = grown(DARTS, 14).observations
    history = History(seen[:12], tuple(Pending(one.architecture) for one in seen[12:]))
    check(agent := made(kind, DARTS), history, propose(agent, history), 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_proposals_are_members(kind):
    if kind in FAST or "n_initial" in agents.settings(kind):
        check(agent := made(kind, DARTS), History(), propose(agent, History(), 5), 5)


@given(
    kind=st.sampled_from(FAST),
    cells=st.lists(genotypes(), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
@examples(0.5)
def test_any_history_leads_to_new_members(kind, cells, seed):
    """Genotypes of few distinct choices, as hypothesis prefers them: zeros, isomorphic and dead
    ones among them."""
    networks = {network.functional_key: network for network in map(from_genotype, cells)}
    history = History(observed(networks.values(), np.linspace(0, 1, len(networks))))
    settings = {"n_initial": 1} if "n_initial" in agents.settings(kind) else {}
    agent = made(kind, DARTS, **settings)
    check(agent, history, propose(agent, history, seed=seed), 2)


@pytest.mark.whole
@pytest.mark.parametrize(
    "settings", [{"preset": "paper"}, {"preset": "paper", "acquisition": "its"}, {}]
)
def test_bananas_learns_which_operations_are_good(settings):
    """Scores count the separable convolutions of the normal cell: proposals have more of them than
    the incumbents."""
    rng = np.random.default_rng(0)
    space = spaces.get("darts", none=False)
    networks = [space.sample(rng) for _ in range(60)]
    history = History(observed(networks, [convolutions(network) for network in networks]))
    agent = agents.get("bananas", space, **{**CHEAP["bananas"], "members": 5, **settings})
    # A draw of a random acquisition may be bad: the mean of four is as good as that of any other
    # acquisition.
    suggestions = [one.architecture for _ in range(4) for one in agent.propose(history, 4, rng)]
    assert np.mean([convolutions(one) for one in suggestions]) > np.quantile(
        [convolutions(one) for one in networks], 0.9
    )


def convolutions(network):
    return sum(layer.op.startswith("normal.sep_conv") for layer in network.layers)


def test_the_paper_has_the_path_encoding_and_mutations():
    parts = bananas.encoding(DARTS, "paper").parts
    assert [(part.name, part.counts, part.length) for part in parts] == [("path", False, None)]
    agent = agents.get("bananas", DARTS, preset="paper", n_initial=1)
    incumbent = PUBLISHED["DARTS_V2"].architecture
    suggestions = agent.propose(History(observed([incumbent], [0.9])), 10, np.random.default_rng(0))
    assert {one.parent.key for one in suggestions} == {incumbent.key}
    assert {one.operations for one in suggestions} <= {("swap_label",), ("swap_input",)}


def test_defaults_are_those_of_cells():
    assert DARTS.is_cell
    assert defaults(DARTS) == defaults(spaces.get("nasbench201"))
