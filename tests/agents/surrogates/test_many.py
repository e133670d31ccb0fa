"""Surrogates of many evaluations: threshold, cache of a prefix, corrections by later evaluations,
choice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History
from archive.agents.bayesopt.bananas import encoding
from archive.agents.bayesopt.portfolio_members import member_model
from archive.agents.objectives import selection
from archive.agents.objectives.front import estimate_front
from archive.agents.objectives.goals import Goals
from archive.agents.surrogates.base import Fitted, Posterior, Surrogate
from archive.agents.surrogates.many import features, trees
from archive.agents.surrogates.many import surrogate as many_surrogate
from archive.agents.surrogates.many.features import Merged, SparseFeatures, relevant
from archive.agents.surrogates.many.prefix import prefix_size
from archive.agents.surrogates.many.surrogate import (
    BLOCK,
    CorrectedTrees,
    ManyEvaluations,
    ScreenedProcess,
)
from archive.agents.surrogates.many.trees import CrossFittedTrees
from archive.store.records import Objective
from tests.support import whole
from tests.support.histories import observed

pytestmark = pytest.mark.lasts(1)

SPACE = spaces.get("nasbench201")
CELLS = [cell.functional for cell in SPACE.members()[:: len(SPACE.members()) // 300]]
FIRST = 60


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trees.SETTINGS, "max_iter", 30)
        yield


def truth(cell):
    counts = [
        sum(layer.op == name for layer in cell.layers) for name in ("nor_conv_3x3", "avg_pool_3x3")
    ]
    return counts[0] - 0.5 * counts[1] + 0.1 * len(cell.edges)


SCORES = np.array([truth(cell) for cell in CELLS])


class Stub(Surrogate):
    """Predicts the truth times a factor, and remembers what it was fitted to."""

    def __init__(self, factor):
        self.factor = factor
        self.fits = []

    def fit(self, architectures, scores, rng, variances=None):
        self.fits.append(([one.key for one in architectures], np.array(scores), rng))
        return StubFitted(self.factor)


class StubFitted(Fitted):
    def __init__(self, factor):
        self.factor = factor

    def posterior(self, architectures, *, joint=False):
        means = self.factor * np.array([truth(one) for one in architectures])
        return Posterior(means[None], np.ones((1, len(means))), np.zeros(1))

    def hallucinate(self, architectures):
        return self

    def observe(self, architectures, scores):
        assert len(architectures) == len(scores)
        self.observed = [one.key for one in architectures]
        return self


def surrogate(few=None, transform="standardise"):
    errors = member_model("structure", SPACE).surrogate("none")
    few = few or Stub(-1.0)
    numbers = SparseFeatures(encoding(SPACE, "default").parts)
    return ManyEvaluations(few, numbers, errors, few, transform, None, FIRST)


def fit(model, count, scores=SCORES):
    return model.fit(CELLS[:count], scores[:count], np.random.default_rng(0))


@pytest.fixture(scope="module")
def model():
    return surrogate()


@pytest.fixture(scope="module")
def fitted(model):
    return fit(model, 100)


def test_few_evaluations_are_those_of_the_inner_surrogate():
    few = Stub(1.0)
    rng = np.random.default_rng(0)
    assert isinstance(surrogate(few).fit(CELLS[:FIRST], SCORES[:FIRST], rng), StubFitted)
    [(keys, scores, generator)] = few.fits
    assert keys == [cell.key for cell in CELLS[:FIRST]]
    assert scores.tolist() == SCORES[:FIRST].tolist()
    assert generator is rng


def test_any_number_of_evaluations_of_few_networks_are_those_of_the_inner_surrogate():
    few = Stub(1.0)
    networks = [CELLS[at % 3] for at in range(2 * FIRST)]
    fitted = surrogate(few).fit(
        networks, np.resize(SCORES[:3], 2 * FIRST), np.random.default_rng(0)
    )
    assert isinstance(fitted, StubFitted)
    assert few.fits[0][0] == [one.key for one in networks]


def test_a_prefix_of_two_networks_is_not_cut_off():
    # Trees of four folds need four networks; the history has enough for them.
    networks = [*(CELLS[at % 2] for at in range(550)), *CELLS[2:68]]
    scores = np.array([truth(cell) for cell in networks])
    assert prefix_size(len(networks), FIRST) == 550
    fitted = surrogate().fit(networks, scores, np.random.default_rng(0))
    assert np.corrcoef(fitted.posterior(CELLS[100:200]).mean, SCORES[100:200])[0, 1] > 0.5


def test_a_prefix_grows_by_a_tenth_and_leaves_out_the_latest():
    sizes = [prefix_size(n) for n in range(1001, 5000)]
    assert sizes[0] == 1000
    assert all(size <= 0.98 * n or size == 1000 for n, size in enumerate(sizes, 1001))
    assert all(second in (first, first * 11 // 10) for first, second in itertools.pairwise(sizes))
    assert prefix_size(100_000) > 0.88 * 100_000


def test_trees_are_fitted_once_for_a_prefix(monkeypatch):
    fits = []
    fit_trees = CrossFittedTrees.fit
    monkeypatch.setattr(CrossFittedTrees, "fit", lambda *args: fits.append(1) or fit_trees(*args))
    model = surrogate()
    for count in (100, 101, 102):
        fit(model, count)

    assert len(fits) == 1
    changed = SCORES.copy()
    changed[3] += 1.0
    fit(model, 102, changed)
    assert len(fits) == 2


def test_a_cached_prefix_changes_no_prediction(fitted):
    other = surrogate()
    # Features are numbered in the order in which networks are seen.
    other.features.varying(CELLS[:120:-1])
    fit(other, 103)
    again = fit(other, 100).posterior(CELLS[150:160])
    assert np.array_equal(again.means, fitted.posterior(CELLS[150:160]).means)
    assert np.array_equal(again.variances, fitted.posterior(CELLS[150:160]).variances)


def test_trees_rank_networks_without_an_evaluation(fitted):
    assert isinstance(fitted, CorrectedTrees)
    predicted = fitted.posterior(CELLS[100:300]).mean
    assert np.corrcoef(predicted, SCORES[100:300])[0, 1] > 0.8
    assert fitted.posterior(CELLS[:1]).best[0] == pytest.approx(SCORES[:100].max())


def test_an_evaluation_since_the_prefix_corrects_the_prediction_near_it(model):
    scores = SCORES.copy()
    before = fit(model, 100, scores).posterior(CELLS[100:101])
    scores[100] = before.mean[0] + 3.0 * np.std(SCORES)
    after = fit(model, 101, scores).posterior(CELLS[100:101])
    assert after.mean[0] > before.mean[0] + 0.5 * np.std(SCORES)


def test_out_of_fold_predictions_know_nothing_of_their_own_scores():
    rng = np.random.default_rng(0)
    inputs = rng.random((200, 3)).astype(np.float32)
    noise = rng.standard_normal(200)
    model = CrossFittedTrees.fit(inputs, noise)
    assert abs(np.corrcoef(model.out_of_fold, noise)[0, 1]) < 0.25
    assert np.corrcoef(model.predict(inputs)[0], noise)[0, 1] > 0.5


def test_fantasies_keep_the_mean_and_shrink_the_variance(fitted):
    pending = CELLS[200:203]
    before = fitted.posterior(pending)
    after = fitted.hallucinate(pending).posterior(pending)
    assert after.mean == pytest.approx(before.mean, abs=1e-6)
    assert (after.variances < before.variances).all()
    assert fitted.hallucinate([]) is fitted


def test_joint_and_marginal_posteriors_agree(fitted):
    joint = fitted.posterior(CELLS[200:220], joint=True)
    marginal = fitted.posterior(CELLS[200:220])
    assert joint.means == pytest.approx(marginal.means)
    assert np.diagonal(joint.covariance) == pytest.approx(marginal.variances[0])
    assert fitted.posterior([]).means.shape == (1, 0)


def test_the_most_promising_of_many_networks_are_corrected(fitted):
    many = [cell.functional for cell in SPACE.members()[: BLOCK + 1]]
    whole = fitted.posterior(many)
    best = np.argsort(-whole.mean)[:20]
    alone = fitted.posterior([many[at] for at in best])
    assert whole.mean[best] == pytest.approx(alone.mean)
    assert whole.variances[0, best] == pytest.approx(alone.variances[0])
    assert whole.variances[0, np.argmin(whole.mean)] == whole.variances.min()


@pytest.mark.parametrize(("factor", "kind"), [(1.0, ScreenedProcess), (-1.0, CorrectedTrees)])
def test_a_clearly_better_ranking_of_held_out_networks_is_chosen(factor, kind):
    few = Stub(factor)
    assert isinstance(fit(surrogate(few), 300), kind)
    held_out = {cell.key for cell in CELLS[: prefix_size(300, FIRST) : 4]}
    assert not held_out & set(few.fits[0][0])
    assert all(len(keys) <= FIRST for keys, _, _ in few.fits)


def test_the_rival_knows_every_evaluation_of_its_networks(monkeypatch):
    monkeypatch.setattr(many_surrogate, "LATER", 20)
    few = Stub(1.0)
    best = int(np.argmax(SCORES[:200]))
    size = 200
    networks = [*CELLS[:200], *[CELLS[best]] * 100]
    scores = np.array([*SCORES[:200], *(SCORES[best] + np.tile([4.0, -4.0], 50))])
    while prefix_size(size, FIRST) < 250:
        size += 1

    fitted = surrogate(few).fit(networks[:size], scores[:size], np.random.default_rng(0))
    prefix = prefix_size(size, FIRST)
    assert isinstance(fitted, ScreenedProcess)
    assert few.fits[-1][0].count(CELLS[best].key) == 1 + prefix - 200
    assert few.fits[-1][1].max() > SCORES.max()
    # Of those since, not the luckiest alone.
    assert fitted.process.observed == [CELLS[best].key] * (size - prefix)


@pytest.mark.parametrize("factor", [whole(1.0), -1.0])
def test_everywhere_all_networks_are_predicted_whatever_ranks_better(factor):
    many = [cell.functional for cell in SPACE.members()[: BLOCK + 500]]
    whole = surrogate(Stub(factor)).everywhere()
    fitted = fit(whole, 300)
    posterior = fitted.posterior(many)
    alone = fitted.posterior(many[:100])
    worst = np.argsort(posterior.mean)[:BLOCK]
    assert np.corrcoef(posterior.mean[worst], [truth(many[at]) for at in worst])[0, 1] > 0.8
    assert (posterior.variances[0, :100] > 0.9 * alone.variances[0]).all()


@pytest.mark.whole
def test_of_many_candidates_the_greatest_hypervolume_improvement_is_suggested():
    # A cheap network must not have the scores of promising ones, not even in the first ranking of
    # all.
    def edges(networks):
        return np.array([float(len(each.edges)) for each in networks])

    goals = Goals((Objective("accuracy"), Objective("edges", "minimise")), {"edges": edges})
    history = History(observed(CELLS[:250], SCORES[:250]), goals=goals)
    agent = agents.get("portfolio", SPACE)._exact[0]
    agent.method = replace(agent.method, many=surrogate(Stub(1.0)), shortlist=1)
    (suggestion,) = agent.propose(history, 1, np.random.default_rng(0))

    models = selection.ObjectiveModels.fit(
        agent.method, agent.slacks, history, goals, np.random.default_rng(0)
    )
    rank = models.ranking(*estimate_front(history, models.fitted, posterior=False))
    members = [one for one in SPACE.members() if one.functional_key not in history.known]
    gains = np.concatenate([rank(members[at : at + BLOCK]) for at in range(0, len(members), BLOCK)])
    chosen = rank([suggestion.architecture])[0]
    assert (gains > chosen).sum() < 5
    assert suggestion.mean == pytest.approx(truth(suggestion.architecture.functional), abs=0.5)


def test_evaluations_of_one_network_are_averaged():
    content = Merged.of([CELLS[0], CELLS[1], CELLS[0]], np.array([1.0, 5.0, 2.0]))
    assert [one.key for one in content.networks] == [CELLS[0].key, CELLS[1].key]
    assert content.means.tolist() == [1.5, 5.0]


def test_relevant_networks_are_the_best_the_latest_and_others():
    values = -np.arange(100.0)
    chosen = relevant(values, 20)
    assert len(chosen) == 20
    assert set(range(10)) | set(range(95, 100)) <= set(chosen.tolist())
    assert relevant(values[:7], 20).tolist() == list(range(7))


@pytest.mark.whole
def test_portfolio_searches_a_history_of_many_evaluations(monkeypatch):
    agent = agents.get("portfolio", SPACE, members=["subtrees"])
    for policies in (agent._exact, agent._noisy):
        for policy in policies:
            monkeypatch.setattr(policy.method.many, "first", FIRST)

    known = History(observed(CELLS[:100], SCORES[:100].tolist()))
    suggestions = agent.propose(known, 2, np.random.default_rng(0))
    scores = [truth(one.architecture.functional) for one in suggestions]
    assert len(suggestions) == 2
    assert min(scores) > np.quantile(SCORES, 0.9)
    assert all(one.std > 0.0 for one in suggestions)


def test_a_memory_that_is_full_changes_no_prediction(fitted, monkeypatch):
    expected = fitted.posterior(CELLS[150:200])
    monkeypatch.setattr(features, "MOST_KNOWN", 10)
    again = fit(surrogate(), 100)
    assert len(again.prefix.features._known) == 10
    assert np.array_equal(again.posterior(CELLS[150:200]).means, expected.means)


@pytest.mark.parametrize("seed", [None, whole(1)])
def test_up_to_the_threshold_proposals_are_those_without_trees(monkeypatch, seed):
    seen = observed(CELLS[:FIRST], SCORES[:FIRST].tolist())
    known = History(tuple(replace(one, seed=seed) for one in seen))
    proposals = []
    for many in (True, False):
        agent = agents.get("portfolio", SPACE, members=["subtrees", "topology"])
        for policy in (*agent._exact, *agent._noisy):
            if many:
                monkeypatch.setattr(policy.method.many, "first", FIRST)
            else:
                policy.method = replace(policy.method, many=None)

        proposals.append(agent.propose(known, 2, np.random.default_rng(0)))

    assert proposals[0] == proposals[1]


def test_a_network_that_is_evaluated_often_is_certain():
    noisy = SCORES[:100] + 0.3 * np.random.default_rng(0).standard_normal(100)
    stds = []
    for repeats in (1, 30):
        networks = [*CELLS[:100], *[CELLS[99]] * repeats]
        scores = [*noisy, *[noisy[99]] * repeats]
        fitted = surrogate().fit(networks, np.array(scores), np.random.default_rng(0))
        stds.append(fitted.posterior([CELLS[99]]).std[0])

    assert stds[1] < 0.5 * stds[0]


def test_incumbents_have_the_greatest_means_and_are_known_to_the_process(model):
    # The last network has the greatest score, and a low mean.
    networks = [*CELLS, *[CELLS[-1]] * 9]
    scores = np.array([*SCORES[:-1], SCORES.max() + 1.0, *[SCORES.min()] * 9])
    incumbents = {one.key for one in model.incumbents(networks, scores)}
    means = {cell.key: score for cell, score in zip(CELLS[:-1], SCORES[:-1], strict=True)}
    assert CELLS[-1].key not in incumbents
    assert min(means[key] for key in incumbents) >= max(
        score for key, score in means.items() if key not in incumbents
    )
    fitted = model.fit(networks, scores, np.random.default_rng(0))
    assert incumbents <= {one.key for one in fitted.process.architectures}
