"""The agent `arc`: its domain, its covariances against slower ones, its baselines, and a search
that improves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.agents.base import History, Observation, Pending, Suggestion
from archive.agents.bayesopt.arc import MODELS, Arc
from archive.agents.encodings import ANY, Perceptrons
from archive.agents.provenance import history_of
from archive.agents.study_setup import open_study
from archive.agents.surrogates.gp import conditional
from archive.agents.surrogates.gp.conditional import learn, learn_separately
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule
from archive.architecture.graph import Architecture, Layer
from archive.errors import UnknownNameError, UsageError
from archive.kernels.covariance.arc import ArcKernel, LinearKernel, PaddedKernel
from archive.queue.proposals import Result
from archive.spaces.layerwise import chain
from archive.store.records import Study
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry

MLP = spaces.get("mlp")
DOMAIN = Perceptrons(MLP)
EVERY = Perceptrons(MLP, ANY)
CHEAP = {"samples": 3, "burn_in": 3, "thin": 1}
SHORT = SamplingSchedule(3, 3, 1)


def rng(seed=0):
    return np.random.default_rng(seed)


def choices(domain):
    return domain.parameters.option_counts


def network(*units, op="relu"):
    return chain("mlp", [*(Layer(op, each) for each in units), Layer("linear")])


def landscape(suggestion):
    """Best at one layer of about 64 units, and a learning rate of 0.01."""
    rates = suggestion.hyperparameters.get("learning_rate", [1e-3])
    units = suggestion.architecture.layers[1].units
    return (
        -abs(np.log10(rates[0]) + 2)
        - 0.3 * len(suggestion.architecture.layers)
        - 0.2 * abs(np.log2(units / 64))
    )


def recorded(suggestions, start=0):
    return tuple(
        Observation(one.architecture, float(landscape(one)), str(at), None, one.hyperparameters)
        for at, one in enumerate(suggestions, start)
    )


@pytest.fixture(scope="module")
def history():
    return History(recorded(Arc(MLP, n_random=14).propose(History(), 14, rng())))


# The domain.


@given(seed=st.integers(0, 2**32 - 1), any_activation=st.booleans())
def test_what_is_decoded_is_encoded_as_it_was(seed, any_activation):
    domain = EVERY if any_activation else DOMAIN
    for codes in domain.sample(5, rng(seed)):
        architecture, hyperparameters = domain.decode(codes)
        again = domain.encode(architecture, json.loads(json.dumps(hyperparameters)))
        # Units are whole numbers, and hyperparameters have four digits.
        np.testing.assert_allclose(again, codes, atol=0.02)
        assert domain.decode(again) == (architecture, hyperparameters)


def test_the_parameters_are_those_of_the_poster():
    # 4 for each of 5 layers, 2 of the output, 1 of the input; the depth, and whether the protocol
    # trains.
    assert len(DOMAIN.parameters.names) == 23 + 2
    codes = DOMAIN.sample(200, rng())
    existing = DOMAIN.parameters.names
    for row in codes:
        depth = DOMAIN.depth(row)
        present = {name for name, code in zip(existing, row, strict=True) if not np.isnan(code)}
        own = row[existing.index("training")] == 1
        assert 1 <= depth <= 5
        assert {f"units_{at}" in present for at in range(1, depth + 1)} == {True}
        assert len(present) == 2 + depth + (3 + 3 * depth) * own


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.01, 0.5))
def test_variations_are_configurations(seed, scale):
    before = EVERY.sample(20, rng(seed))
    after = EVERY.vary(before, scale, rng(seed + 1))
    assert not np.array_equal(before, after, equal_nan=True)
    for old, codes in zip(before, after, strict=True):
        assert abs(EVERY.depth(codes) - EVERY.depth(old)) <= 1
        architecture, hyperparameters = EVERY.decode(codes)
        actual = EVERY.encode(architecture, hyperparameters)
        assert (np.isnan(actual) == np.isnan(codes)).all()


@pytest.mark.parametrize(
    ("architecture", "hyperparameters"),
    [
        (network(8, op="tanh"), {}),
        (network(*[8] * 6), {}),
        (Architecture("mlp", [Layer("ip"), Layer("relu", 8), Layer("relu", 8), Layer("linear"), Layer("op")],
                      [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]), {}),
        (network(8), {"momentum": 0.9}),
        (network(8), {"weight_decay": 0.1}),
        (network(8), {"learning_rate": [0.1, 0.1, 0.1]}),
        (network(8), {"learning_rate": 3.0}),
    ],
)  # fmt: skip
def test_what_is_outside_says_nothing(architecture, hyperparameters):
    assert DOMAIN.encode(architecture, hyperparameters) is None


def test_what_the_protocol_decides_does_not_exist():
    names = DOMAIN.parameters.names
    plain = DOMAIN.encode(network(64), {})
    assert {name for name, code in zip(names, plain, strict=True) if not np.isnan(code)} == {
        "depth", "training", "units_1"
    }  # fmt: skip
    partly = DOMAIN.encode(network(64), {"learning_rate": 0.01})
    assert not np.isnan(
        partly[[names.index("learning_rate_1"), names.index("learning_rate_output")]]
    ).any()
    assert np.isnan(partly[names.index("norm_1")])


def test_limits_of_the_space_are_kept():
    small = Perceptrons(spaces.get("mlp", max_layers=5, min_units=16, max_units=32))
    for codes in small.sample(50, rng()):
        layers = small.decode(codes)[0].layers
        assert len(layers) <= 5
        assert all(16 <= layer.units <= 32 for layer in layers[1:-2])

    fixed = Perceptrons(spaces.get("mlp", min_units=16, max_units=16))
    assert {layer.units for layer in fixed.decode(fixed.sample(1, rng())[0])[0].layers[1:-2]} == {
        16
    }


def test_layers_of_one_width_have_no_variants():
    space = spaces.get("mlp", max_layers=5, min_units=64, max_units=64)
    first = Arc(space).propose(History(), 4, rng())
    assert len({one.architecture.functional_key for one in first}) == 4
    domain = Perceptrons(space)
    codes = domain.sample(1, rng())[0]
    (only,) = domain.renew(codes)
    np.testing.assert_array_equal(only, codes)


def test_only_perceptrons_can_be_searched():
    with pytest.raises(
        UsageError,
        match=r"chains of hidden layers, in the space mlp alone, got "
        r"'cnn'$",
    ):
        Arc(spaces.get("cnn"))


# The covariances.


@pytest.mark.parametrize("kind", [ArcKernel, PaddedKernel])
def test_tied_is_untied_with_equal_hyperparameters(kind):
    kinds = list(dict.fromkeys(EVERY.kinds))
    groups = [kinds.index(each) for each in EVERY.kinds]
    seed = (7,) if kind is PaddedKernel else ()
    tied = kind(groups, choices(EVERY), *seed)
    free = kind(range(len(groups)), choices(EVERY), *seed)
    theta = rng().uniform(*tied.bounds.T)
    parts = np.split(theta[1:], 2 if kind is ArcKernel else 1)
    spread = np.concatenate([theta[:1], *(part[groups] for part in parts)])
    codes = EVERY.sample(8, rng(1))
    np.testing.assert_allclose(
        tied.value(theta, tied.prepare(codes)), free.value(spread, free.prepare(codes))
    )


@pytest.mark.parametrize("model", ["padded", "linear"])
def test_what_does_not_exist_is_drawn_once(model):
    def make(seed):
        groups = range(len(choices(DOMAIN)))
        return (
            PaddedKernel(groups, choices(DOMAIN), seed)
            if model == "padded"
            else LinearKernel(choices(DOMAIN), seed)
        )

    codes = DOMAIN.sample(6, rng())
    kernel = make(1)
    whole = kernel.prepare(codes)
    assert not np.isnan(whole).any()
    np.testing.assert_array_equal(kernel.prepare(codes[2:3])[0], whole[2])
    assert not np.allclose(make(2).prepare(codes), whole)
    np.testing.assert_allclose(kernel.prior(np.zeros(26)[: len(kernel.bounds)], whole),
                               np.diag(kernel.value(np.zeros(26)[: len(kernel.bounds)], whole)), atol=1e-6)  # fmt: skip


def test_the_linear_model_is_bayesian_regression():
    codes = DOMAIN.sample(15, rng())
    values = rng(1).normal(size=15)
    kernel = LinearKernel(choices(DOMAIN), 3)
    belief = learn(kernel, codes, values, SamplingSchedule(1, 1, 1), rng(2))
    constant, slope, noise = np.exp(belief.thetas[0])
    asked = DOMAIN.sample(4, rng(3))
    x, new = (np.hstack([np.ones((len(each), 1)), kernel.prepare(each)]) for each in (codes, asked))
    prior = np.diag([1 / constant, *[1 / slope] * (x.shape[1] - 1)])
    precision = prior + x.T @ x / noise
    weights = np.linalg.solve(precision, x.T @ values / noise)
    posterior = belief.posterior(asked)
    np.testing.assert_allclose(posterior.means[0], new @ weights, atol=1e-5)
    variances = np.einsum("mi,ij,mj->m", new, np.linalg.inv(precision), new)
    np.testing.assert_allclose(posterior.variances[0], variances, atol=1e-5)


def test_belief_in_what_is_pending_keeps_the_mean():
    codes = DOMAIN.sample(10, rng())
    values = rng(1).normal(size=10)
    kernel = ArcKernel([0] * len(choices(DOMAIN)), choices(DOMAIN))
    belief = learn(kernel, codes, values, SHORT, rng(2))
    asked = DOMAIN.sample(30, rng(3))
    pending = DOMAIN.sample(2, rng(4))
    before = belief.posterior(asked)
    after = belief.hallucinate(pending).posterior(asked)
    np.testing.assert_allclose(after.means, before.means, atol=1e-7)
    assert (after.variances <= before.variances + 1e-9).all()
    assert (
        belief.hallucinate(pending).posterior(pending).variances.max()
        < belief.posterior(pending).variances.max()
    )


def test_hyperparameters_of_many_observations_are_sampled_on_some(monkeypatch):
    monkeypatch.setattr(conditional, "OBSERVATIONS", 15)
    codes = DOMAIN.sample(40, rng())
    sizes = []
    values = np.nan_to_num(codes[:, 0])
    likelihood = conditional.log_likelihood
    monkeypatch.setattr(
        conditional,
        "log_likelihood",
        lambda gram, y: sizes.append(gram.shape) or likelihood(gram, y),
    )
    kernel = PaddedKernel([0] * len(choices(DOMAIN)), choices(DOMAIN), 0)
    belief = learn(kernel, codes, values, SHORT, rng(3))
    assert set(sizes) == {(15, 15)}
    # All are known to the model.
    assert np.abs(belief.posterior(codes).mean - values).max() < 0.2


def test_separate_depths_do_not_learn_from_each_other():
    codes = DOMAIN.sample(40, rng())
    values = rng(1).normal(size=40)
    depths = np.array([DOMAIN.depth(row) for row in codes])
    kernel = PaddedKernel([0] * len(choices(DOMAIN)), choices(DOMAIN), 0)
    keep = depths <= 2
    asked = DOMAIN.sample(30, rng(2))
    at = np.array([DOMAIN.depth(row) for row in asked])
    some = learn_separately(kernel, codes[keep], values[keep], SHORT, rng(3), DOMAIN.depth)
    alone = learn(kernel, codes[depths == 1], values[depths == 1], SHORT, rng(3))
    np.testing.assert_allclose(
        some.posterior(asked[at == 1]).means, alone.posterior(asked[at == 1]).means
    )
    assert (some.posterior(asked[at == 5]).means == 0.0).all()
    assert (some.posterior(asked[at == 5]).variances == 1.0).all()
    pending = asked[at == 2]
    conditioned = some.hallucinate(pending)
    np.testing.assert_array_equal(
        conditioned.posterior(asked[at == 1]).variances, some.posterior(asked[at == 1]).variances
    )
    assert conditioned.posterior(pending).variances.max() < some.posterior(pending).variances.max()


# The agent.


@pytest.mark.parametrize("model", MODELS)
def test_suggestions_are_new_members_that_the_trainer_can_train(model, history):
    agent = Arc(MLP, model=model, **CHEAP)
    pending = tuple(
        Pending(one.architecture, one.hyperparameters) for one in agent.propose(history, 2, rng(5))
    )
    waiting = History(history.observations, pending)
    suggestions = agent.propose(waiting, 3, rng(6))
    keys = {one.architecture.functional_key for one in suggestions}
    assert len(keys) == 3
    assert not keys & set(waiting.known)
    for one in suggestions:
        MLP.validate(one.architecture)
        wanted = Hyperparameters.of(one.hyperparameters)
        count = len(one.architecture.layers) - 2
        assert len(wanted.of_layers("learning_rate", count, 0.0)) == count
        assert np.isfinite([one.mean, one.std, one.acquisition]).all()

    again = Arc(MLP, model=model, **CHEAP).propose(waiting, 3, rng(6))
    assert suggestions == again


def test_it_learns():
    # After 12 random configurations, 8 of the model: on the mean they are better than the best half
    # of the random ones.
    agent = Arc(MLP, n_random=12, **CHEAP)
    seen = recorded(agent.propose(History(), 12, rng()))
    for at in range(12, 20):
        seen = (*seen, *recorded(agent.propose(History(seen), 1, rng(at)), at))

    scores = np.array([one.score for one in seen])
    assert scores[12:].mean() > np.median(scores[:12])
    assert scores[12:].max() > scores[:12].max()


def test_scores_keep_their_unit(history):
    scaled = History(
        tuple(
            Observation(o.architecture, 1e3 * o.score, o.id, None, o.hyperparameters)
            for o in history.observations
        )
    )
    agent = Arc(MLP, transform="standardise", **CHEAP)
    (one,), (large,) = agent.propose(history, 1, rng()), agent.propose(scaled, 1, rng())
    assert large.architecture == one.architecture
    assert [large.mean, large.std, large.acquisition] == pytest.approx(
        [1e3 * one.mean, 1e3 * one.std, 1e3 * one.acquisition], rel=1e-6
    )


@pytest.mark.parametrize("transform", ["rank-normal", "compress-below-median", "log-regret"])
def test_what_it_expects_is_a_score_whatever_it_learns(history, transform):
    # Scores of a unit other than that of quantiles or of standard deviations.
    far = tuple(replace(one, score=100.0 + 50.0 * one.score) for one in history.observations)
    (one,) = Arc(MLP, transform=transform, **CHEAP).propose(History(far), 1, rng())
    scores = np.array([seen.score for seen in far])
    assert np.ptp(scores) > 50.0
    assert scores.min() <= one.mean < scores.max() + scores.std()
    assert 0.02 * scores.std() < one.std < 2.0 * scores.std()


def test_a_known_network_comes_again_as_its_neighbour():
    agent = Arc(MLP, **CHEAP)
    codes = DOMAIN.encode(network(64, 32), {})
    assert agent._new(codes, ()).architecture == network(64, 32)
    known = {network(*units).functional_key for units in ((64, 32), (64, 33))}
    assert agent._new(codes, known).architecture == network(64, 31)


def test_others_evaluations_count_by_the_protocol(history):
    agent = Arc(MLP, n_random=5, **CHEAP)
    plain = tuple(Observation(network(8 + at), 0.1 * at, f"other#{at}") for at in range(5))
    (suggestion,) = agent.propose(History(plain), 1, rng())
    # A suggestion of the model has an acquisition; a random one has none.
    assert suggestion.acquisition is not None
    branches = tuple(Observation(one, 1.0, f"b#{at}") for at, one in enumerate(MLP.initial_pool()))
    (alone,) = agent.propose(history, 1, rng())
    (beside,) = agent.propose(History((*history.observations, *branches)), 1, rng())
    assert alone == beside


def test_nothing_to_learn_from_is_no_obstacle():
    agent = Arc(MLP, n_random=1, **CHEAP)
    failed = History(failed=(network(8),), pending=(Pending(network(9)),))
    assert len({one.architecture.key for one in agent.propose(failed, 4, rng())}) == 4
    one = History((Observation(network(8), float("nan"), "a"), Observation(network(9), 1.0, "b")))
    assert agent.propose(one, 1, rng())[0].acquisition is not None


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"model": "ark"}, UnknownNameError, "unknown model of arc 'ark': did you mean arc"),
        ({"preset": "papr"}, UnknownNameError, "unknown preset of arc 'papr': did you mean paper"),
        (
            {"activation": "relu6"},
            UsageError,
            "activation must be any or one of relu, .*got 'relu6'",
        ),
        ({"n_random": 0}, UsageError, "n_random must be >= 1, got 0"),
        ({"samples": 0}, UsageError, "samples must be >= 1, got 0"),
        ({"acquisition": "ts"}, UsageError, "ts must rank all candidates at once"),
    ],
)
def test_settings_are_checked(wrong, error, message):
    with pytest.raises(error, match=message):
        Arc(MLP, **wrong)


def test_what_it_suggests_is_trained_as_it_says(history):
    (suggestion,) = Arc(spaces.get("mlp", max_units=64), **CHEAP).propose(history, 1, rng(2))
    task = registry.get("diabetes")
    protocol = replace(task.protocol(), epochs=2)
    outcome = train(
        suggestion.architecture, task, protocol, seed=0, hyperparameters=suggestion.hyperparameters
    )
    assert suggestion.hyperparameters
    assert np.isfinite(outcome.value)
    assert outcome.value != train(suggestion.architecture, task, protocol, seed=0).value


def test_hyperparameters_come_back_from_the_archive(archive):
    record = Study("s", "t", "t/1", "mlp", "mse", direction="minimise")
    study = open_study(archive, record, budget=3)
    agent_id = archive.proposals.register_agent("arc", {}, "0")
    asked = {"learning_rate": [0.01, 0.001], "dropout": 0.1}
    wanted = [
        Suggestion(network(8), hyperparameters=asked),
        Suggestion(network(9)),
        Suggestion(network(10)),
    ]
    archive.proposals.create("s", agent_id, wanted)
    for _ in range(2):
        claim = archive.proposals.claim("worker", study="s")
        archive.proposals.complete(claim.id, claim.token, Result(value=1.0))

    read = history_of(archive, study)[0]
    assert [dict(one.hyperparameters) for one in read.observations] == [asked, {}]
    assert [dict(one.hyperparameters) for one in read.pending] == [{}]
    (evaluation, _) = archive.studies.evaluations("s")
    assert evaluation.hyperparameters == asked


@pytest.mark.parametrize(
    "settings", [{"max_norm": None}, {"learning_rate": {"first": 0.1}}, {"dropout": [[0.1], [0.2]]}]
)
def test_hyperparameters_of_another_form_are_of_no_configuration(settings):
    assert DOMAIN.encode(network(32), {"learning_rate": [0.01, 0.01]}) is not None
    assert DOMAIN.encode(network(32), settings) is None
