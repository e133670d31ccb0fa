"""BANANAS: candidates, batches and transforms, beyond the contract of every agent."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.bayesopt import bananas
from archive.agents.bayesopt.bananas import Bananas, JoinedFeatures
from archive.agents.constructor_arguments import BatchOptions
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.ensemble.model import Ensemble
from archive.agents.surrogates.transformed import OutcomeTransformed
from archive.errors import UnknownNameError, UsageError
from archive.kernels.features.paths import PathEncoding
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from tests.support.listed import known, score, small_table


def propose(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_good_cells_come_first(tmp_path, preset):
    space = small_table(tmp_path)
    members = sorted(space.members(), key=score)
    history = known(members[:-1:2])
    suggestions = [
        one.architecture
        for one in propose(Bananas(space, BatchOptions(preset=preset, n_initial=0)), history, 5)
    ]
    unknown = [score(one) for one in members if one.functional_key not in history.known]
    assert np.mean([score(one) for one in suggestions]) > np.quantile(unknown, 0.6)


def test_the_paper_mutates_the_best(tmp_path):
    space = small_table(tmp_path)
    history = known(space.members()[:30])
    best = sorted(history.observations, key=lambda seen: -seen.score)[:10]
    for one in propose(Bananas(space, BatchOptions(preset="paper")), history, 4):
        assert one.parent.key in {seen.architecture.key for seen in best}
        assert one.operations


@pytest.mark.parametrize("acquisition", ["ucb", "ei", "pi", "its", "ts"])
def test_every_acquisition(tmp_path, acquisition):
    space = small_table(tmp_path)
    history = known(space.members()[:12])
    suggestions = propose(
        Bananas(space, BatchOptions(acquisition=acquisition), members=2, width=4), history, 3
    )
    assert len({one.architecture.functional_key for one in suggestions} - set(history.known)) == 3


def test_posteriors_are_in_score_units(tmp_path):
    space = small_table(tmp_path)
    cells = list(space.members()[:20])
    scores = np.array([score(one) for one in cells])
    plain = (
        Ensemble(members=3)
        .fit(cells, scores, np.random.default_rng(0))
        .posterior(cells, joint=True)
    )
    transformed = OutcomeTransformed(
        Ensemble(members=3), outcome_transforms.get("standardise")
    ).fit(cells, scores, np.random.default_rng(0))
    posterior = transformed.posterior(cells, joint=True)
    for what in ("means", "variances", "best", "covariances"):
        np.testing.assert_allclose(
            getattr(posterior, what), getattr(plain, what), rtol=1e-2, atol=1e-3
        )

    conditioned = transformed.hallucinate(cells[:2]).posterior(cells)
    assert (conditioned.variances <= posterior.variances + 1e-9).all()
    assert conditioned.variances.sum() < posterior.variances.sum()


def test_encodings_side_by_side(tmp_path):
    cells = small_table(tmp_path).members()[:6]
    parts = (PathEncoding(), WeisfeilerLehman())
    joined = JoinedFeatures(parts)
    for cell in cells:
        assert joined.prepare(cell).features == tuple(
            part.prepare(cell).features[0] for part in parts
        )

    plain = np.concatenate(
        [parts[0].distances(cells).stack, WeisfeilerLehman().distances(cells).stack]
    )
    np.testing.assert_array_equal(joined.distances(cells).stack[0], plain[0])


def test_settings():
    cnn = spaces.get("cnn")
    agent = Bananas(cnn, BatchOptions(kappa=0.25), members=3)
    assert agent.method.acquisition.kappa == 0.25
    assert (agent.config["members"], agent.config["kappa"], agent.config["layers"]) == (
        3,
        0.25,
        None,
    )
    assert bananas.PRESETS["paper"].layers == 10
    with pytest.raises(UnknownNameError, match="unknown preset 'papers'"):
        Bananas(cnn, BatchOptions(preset="papers"))

    with pytest.raises(UsageError, match="members must be >= 2, got 1"):
        Bananas(cnn, members=1)
