"""Forecasts of larger trainings: losses of designs, coverage, gains, flips, studies and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from archive import space, spaces
from archive.agents.base import Suggestion
from archive.agents.scaling import choice, forecast, laws
from archive.agents.scaling.report import ScalingDocument, scaling
from archive.agents.scaling.residuals import ScaledRuns
from archive.errors import UsageError
from archive.store.records import Result, Study
from tests.support.commands import shell
from tests.support.json_documents import faults

DECLARED = {
    "width": space.integer(64, 1024, log=True),
    "rate": space.real(1e-4, 1e-1, log=True),
    "gate": space.choice(["relu", "swiglu"]),
}


def truth(values, tokens):
    """Return the loss: a law, a best learning rate, and a gate that helps."""
    params = 12.0 * values["width"] ** 2
    law = 1.7 + 40.0 / params**0.3 + 60.0 / tokens**0.25
    return law * np.exp(
        0.03 * np.log10(values["rate"] / 3e-3) ** 2 + 0.05 * (values["gate"] == "relu")
    )


def make_runs(searched, count, least, most, seed, noise=0.005):
    rng = np.random.default_rng(seed)
    networks = [searched.sample(rng) for _ in range(count)]
    flops = np.exp(rng.uniform(np.log(least), np.log(most), count))
    params = np.array([12.0 * searched.named(network)["width"] ** 2 for network in networks])
    tokens = flops / (6.0 * params)
    losses = []
    for network, length in zip(networks, tokens, strict=True):
        losses.append(truth(searched.named(network), length) * np.exp(noise * rng.normal()))

    return ScaledRuns(networks, params, tokens, np.array(losses))


@pytest.fixture(scope="module")
def searched():
    return spaces.get("parameters", parameters=space.Space(DECLARED))


def test_larger_trainings_are_inside_of_their_intervals(searched):
    small = make_runs(searched, 60, 1e14, 1e16, 0)
    large = make_runs(searched, 60, 1e16, 1e18, 1)
    model = forecast.fit(searched, small, laws.get("chinchilla"), np.random.default_rng(0))
    found = model.forecast(large)
    errors = np.abs(found.median - large.losses)
    law = laws.fit(laws.get("chinchilla"), small.params, small.tokens, small.losses)
    of_law = np.abs(law.loss(large.params, large.tokens) - large.losses)
    assert errors.mean() < 0.7 * of_law.mean()
    inside = (found.low <= large.losses) & (large.losses <= found.high)
    assert inside.mean() >= 0.75
    assert (found.low < found.median).all() and (found.median < found.high).all()


def test_intervals_widen_with_the_distance_from_the_runs(searched):
    small = make_runs(searched, 30, 1e14, 1e16, 0)
    model = forecast.fit(searched, small, laws.get("chinchilla"), np.random.default_rng(0))
    widths = []
    for factor in (1.0, 1e2, 1e4):
        tokens = factor * small.tokens
        found = model.forecast(ScaledRuns(small.networks, small.params, tokens, np.empty(0)))
        widths.append(float(np.mean(np.log(found.high / found.low))))

    assert widths[0] < widths[1] < widths[2]


def test_two_runs_have_a_forecast_from_the_prior(searched):
    few = make_runs(searched, 2, 1e14, 1e15, 0)
    model = forecast.fit(searched, few, laws.get("kaplan"), np.random.default_rng(0))
    assert model.residual is None and model.stretch == (1.5, 1.5)
    drawn = model.sample(few, np.random.default_rng(0), 50)
    assert drawn.shape == (50, 2) and np.isfinite(drawn).all()


def test_the_gain_of_a_training_is_the_expected_improvement():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((200_000, 2))
    targets = values * 1.0
    # The second candidate is independent of both targets.
    candidates = np.column_stack([values[:, 1], rng.standard_normal(len(values))])
    gains = choice.knowledge_gradients(targets, candidates, noise=0.0)
    # E max(0, Z) of the second target beside an equal first one.
    assert gains[0] == pytest.approx(1.0 / np.sqrt(2.0 * np.pi), abs=0.03)
    assert gains[1] == pytest.approx(0.0, abs=0.01)


def test_the_probability_of_a_flip():
    first = np.array([1.0, 1.0, 1.0, 3.0])
    second = np.array([2.0, 2.0, 2.0, 2.0])
    later = np.array([3.0, 1.0, 1.0, 3.0])
    assert choice.flip_probability(first, second, later, second) == 0.25
    assert choice.flip_probability(first, second, first, second) == 0.0


def fill(archive, searched, runs, name="small", **settings):
    settings = {"direction": "minimise", "objective": "loss", "budget": 100, **settings}
    settings = {"task": "toy", "protocol": "toy/1", "space": searched.name, **settings}
    archive.studies.create(Study(name, space_config=searched.config, **settings))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = []
    for params, tokens, loss in zip(runs.params, runs.tokens, runs.losses, strict=True):
        metrics = {"params": float(params), "tokens": float(tokens)}
        outcomes.append(Result(float(loss), metrics))

    suggestions = [Suggestion(network, repeat=True) for network in runs.networks]
    archive.proposals.create(name, agent, suggestions, outcomes=outcomes)


def test_the_designs_of_a_study_are_forecast(archive, searched, store_settings, tmp_path):
    runs = make_runs(searched, 40, 1e14, 1e16, 3)
    fill(archive, searched, runs)
    report = scaling(archive, ["small"], 1e18)
    assert report.runs == 40 and 5e15 < report.largest <= 1e16
    losses = [design.loss for design in report.designs]
    assert losses == sorted(losses) and len(losses) == 10
    for design in report.designs:
        assert 6.0 * design.params * design.tokens == pytest.approx(1e18)
        assert design.low < design.loss < design.high

    every = []
    for network, params in zip(runs.networks, runs.params, strict=True):
        every.append(truth(searched.named(network), 1e18 / (6.0 * params)))

    best = archive.architectures.get(report.designs[0].architecture)
    reached = truth(searched.named(best), report.designs[0].tokens)
    assert reached <= np.quantile(every, 0.25)
    assert report.next is not None and 1e16 <= report.next.flops <= 1.001e18
    for flip in report.flips:
        assert 0.2 <= flip.probability <= 1.0

    with shell(store_settings, tmp_path) as user:
        shown = user.types("scaling", "small", "--at", "1e18").stdout
        assert "chinchilla law of 40 runs" in shown and "train next: " in shown
        document = json.loads(user.types("scaling", "small", "--at", "1e18", "--json").stdout)
        wrong = user.types("scaling", "small", "--at", "1e18", "--tokens", "token", code=None)

    assert faults(document, ScalingDocument) == []
    assert document["designs"][0]["architecture"] == report.designs[0].architecture
    assert "small has 0 such results" in " ".join(wrong.stderr.split())


def test_a_study_that_no_law_describes_is_named(archive, searched):
    runs = make_runs(searched, 8, 1e14, 1e16, 3)
    fill(archive, searched, runs, direction="maximise")
    with pytest.raises(UsageError, match="the study small maximises its objective"):
        scaling(archive, ["small"], 1e18)

    for number, text in ((-1.0, "-1"), (np.inf, "inf"), (np.nan, "nan")):
        with pytest.raises(UsageError, match=f"must be finite and > 0, got {text}"):
            scaling(archive, ["small"], number)


def test_results_of_several_tasks_have_no_common_law(archive, searched):
    runs = make_runs(searched, 8, 1e14, 1e16, 3)
    fill(archive, searched, runs)
    fill(archive, searched, runs, "other", task="toys", protocol="toys/1")
    with pytest.raises(UsageError, match="studies small and other are of different tasks"):
        scaling(archive, ["small", "other"], 1e18)

    fill(archive, searched, runs, "bits", objective="bits")
    with pytest.raises(UsageError, match="studies small and bits are of different objectives"):
        scaling(archive, ["small", "bits"], 1e18)


def test_trainings_of_less_than_a_token_have_no_forecast(archive, searched):
    runs = make_runs(searched, 8, 1e14, 1e16, 3)
    fill(archive, searched, runs)
    with pytest.raises(UsageError, match=r"must allow a token of each design, .* got 4"):
        scaling(archive, ["small"], 5e-324)


def test_the_only_design_needs_no_further_training(archive, searched):
    runs = make_runs(searched, 8, 1e14, 1e16, 3)
    fill(archive, searched, runs.take(np.array([0] * 8)))
    report = scaling(archive, ["small"], 1e18)
    assert [design.best for design in report.designs] == [1.0]
    assert report.next is None and report.flips == []
