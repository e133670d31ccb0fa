"""The comparison of trees and a rival, and the rival behind a screen of trees."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from archive import spaces
from archive.agents.bayesopt.portfolio_members import member_model
from archive.agents.surrogates.many.features import Merged
from archive.agents.surrogates.many.surrogate import BLOCK, LATER, PROMISING, ScreenedProcess
from archive.agents.surrogates.many.trees import HELD_OUT, RankComparison, spearman, split
from archive.agents.surrogates.stacking import StackedGP
from archive.errors import UsageError

SPACE = spaces.get("nasbench201")
CELLS = [cell.functional for cell in SPACE.members()[:1500]]


def truth(cells):
    return np.array(
        [
            sum(layer.op == "nor_conv_3x3" for layer in cell.layers) + 0.1 * len(cell.edges)
            for cell in cells
        ]
    )


class Screen:
    """Trees that know the truth."""

    def predict(self, architectures):
        return truth(architectures), np.zeros(len(architectures))


@pytest.fixture(scope="module")
def process():
    rival = StackedGP(
        [member_model(name, SPACE).surrogate("standardise") for name in ("subtrees", "topology")]
    )
    return rival.fit(CELLS[::30], truth(CELLS[::30]), np.random.default_rng(0))


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, (2, 50)).astype(float)
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    assert spearman(first, np.ones(50)) == 0.0


def test_held_out_networks_are_of_one_fold_that_the_others_lack():
    for count in (10, 5000):
        held_out, others = split(count)
        assert len(held_out) == min(HELD_OUT, -(-count // 4))
        assert set((held_out % 4).tolist()) == {0}
        assert (others % 4 != 0).all()


@pytest.mark.parametrize(
    ("usual", "rival", "better"), [(1.0, 0.2, True), (0.2, 1.0, False), (0.45, 0.5, False)]
)
def test_a_rival_is_better_only_beyond_luck(usual, rival, better):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(300)
    noise = rng.standard_normal((2, 300))
    compared = RankComparison.of(scores + usual * noise[0], scores + rival * noise[1], scores)
    assert compared.rival_is_clearly_better is better
    assert 0.0 < compared.deviation < 0.1


def test_evaluations_added_later_are_merged_as_at_once():
    rng = np.random.default_rng(0)
    networks = [CELLS[at] for at in rng.integers(0, 20, 60)]
    scores = rng.standard_normal(60)
    whole = Merged.of(networks, scores)
    parts = Merged.of(networks[:35], scores[:35]).adding(networks[35:], scores[35:])
    assert [one.key for one in parts.networks] == [one.key for one in whole.networks]
    assert (
        parts.position == whole.position == {one.key: at for at, one in enumerate(whole.networks)}
    )
    assert parts.means.tolist() == whole.means.tolist()
    for network, mean in zip(whole.networks, whole.means, strict=True):
        own = [score for one, score in zip(networks, scores, strict=True) if one.key == network.key]
        assert mean == pytest.approx(np.mean(own))


def test_a_screen_changes_no_posterior_of_the_promising_networks(process):
    screened = ScreenedProcess(Screen(), process)
    whole = process.posterior(CELLS)
    assert len(CELLS) > BLOCK
    posterior = screened.posterior(CELLS)
    rows = np.argsort(-truth(CELLS), kind="stable")[:PROMISING]
    assert posterior.means[:, rows] == pytest.approx(whole.means[:, rows])
    assert posterior.variances[:, rows] == pytest.approx(whole.variances[:, rows])
    others = np.setdiff1d(np.arange(len(CELLS)), rows)
    assert (posterior.means[:, others] == posterior.means[:, rows].min(axis=1)[:, None]).all()
    few = screened.posterior(CELLS[:20], joint=True)
    assert few.covariance == pytest.approx(process.posterior(CELLS[:20], joint=True).covariance)


def test_evaluations_since_the_prefix_move_the_posterior(process):
    new = CELLS[7]
    score = truth(CELLS).max() + 3.0
    before = ScreenedProcess.of(Screen(), process, [], np.empty(0))
    after = ScreenedProcess.of(Screen(), process, [new], np.array([score]))
    assert after.posterior([new]).mean[0] > before.posterior([new]).mean[0] + 1.0
    assert (after.posterior([new]).variances < before.posterior([new]).variances).all()
    assert (after.posterior([new]).best > before.posterior([new]).best).all()
    many = ScreenedProcess.of(Screen(), process, CELLS[: LATER + 50], truth(CELLS[: LATER + 50]))
    assert all(len(one.architectures) == len(CELLS[::30]) + LATER for one in many.process.members)


def test_fantasies_shrink_the_variance_behind_a_screen(process):
    screened = ScreenedProcess(Screen(), process)
    before = screened.posterior(CELLS[1:3])
    after = screened.hallucinate(CELLS[1:3]).posterior(CELLS[1:3])
    assert (after.variances < before.variances).all()
    assert screened.noises().tolist() == process.noises().tolist()


def test_members_with_sources_take_no_further_observations(process):
    with pytest.raises(UsageError, match="source studies"):
        replace(process, members=(*process.members, SimpleNamespace())).observe(
            CELLS[:1], np.ones(1)
        )


def test_a_network_is_predicted_once(process, monkeypatch):
    asked = []
    posterior = type(process).posterior
    monkeypatch.setattr(
        type(process),
        "posterior",
        lambda self, some, **kind: asked.extend(some) or posterior(self, some, **kind),
    )
    screened = ScreenedProcess(Screen(), process)
    first = screened.posterior([*CELLS[:5], CELLS[2]])
    again = screened.posterior(CELLS[4:7])
    assert [one.key for one in asked] == [one.key for one in CELLS[:7]]
    assert (again.means[:, 0] == first.means[:, 4]).all()
    assert (first.variances[:, 5] == first.variances[:, 2]).all()
    assert screened.posterior([]).means.shape == (2, 0)
