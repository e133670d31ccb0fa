"""Prospects of a study: the gain of searching on, the rule that stops a search, longer trainings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import archive as package
from archive import space, spaces
from archive.agents import prospects as estimates
from archive.agents.observations import Observation
from archive.errors import UsageError
from archive.searches.events import SearchEnded
from archive.searches.prospects import SearchGain, StopRule, prospects
from archive.spaces.parameters import Parameters
from archive.store.records import Evaluation, Objective, Result
from tests.support.commands import serving, table
from tests.support.stores import cells, study, suggest

SEARCH = space.Space(
    x=space.real(0.0, 1.0), y=space.real(0.0, 1.0), kind=space.choice(["a", "b", "c"])
)


def truth(values):
    return -((values["x"] - 0.3) ** 2) - (values["y"] - 0.6) ** 2 - 0.2 * (values["kind"] != "b")


def observe(count, noise=0.0):
    whole = Parameters(SEARCH)
    rng = np.random.default_rng(5)
    seen = []
    for number in range(count):
        values = SEARCH.sample(rng)
        score = truth(values) + noise * float(rng.standard_normal())
        seed = number if noise else None
        seen.append(Observation(whole.network_of(values), score, str(number), seed=seed))

    return whole, seen


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_gain_of_searching_on_covers_the_truth(noise):
    whole, seen = observe(40, noise)
    keys = {one.architecture.functional_key for one in seen}
    gain = estimates.gain_of(whole, seen, keys)
    missing = -truth(whole.named(gain.recommended))
    assert gain.low - 0.01 <= missing <= gain.high + 0.01
    assert 0.0 <= gain.low <= gain.mean <= gain.high
    assert gain.noise == pytest.approx(noise, abs=0.03)
    assert estimates.gain_of(whole, seen, keys) == gain
    # A network that does not meet the constraints is not recommended.
    others = keys - {gain.recommended.functional_key}
    assert estimates.gain_of(whole, seen, others).recommended.functional_key in others


def test_without_a_model_there_is_no_estimate():
    whole, seen = observe(12)
    keys = {one.architecture.functional_key for one in seen}
    assert estimates.gain_of(whole, seen[:9], keys) is None
    assert estimates.gain_of(whole, seen, set()) is None
    changed = [dataclasses.replace(one, hyperparameters={"lr": 0.1}) for one in seen]
    assert estimates.gain_of(whole, changed, keys) is None


def test_the_gain_of_networks_with_parameters_is_of_both():
    whole = spaces.beside("nasbench201", space.Space(lr=space.real(1e-4, 1e-1, log=True)))
    rng = np.random.default_rng(0)
    seen = {}
    for number in range(20):
        member = whole.sample(rng)
        score = -0.1 * abs(np.log10(member.configuration["lr"]) + 2.0)
        seen[member.functional_key] = Evaluation(
            f"study#{number}", "study", number, "digits", "digits/1", member.network, score,
            hyperparameters=member.configuration,
        )  # fmt: skip

    searched = study(space="nasbench201", space_config=whole.config)
    gain = estimates.expected_gain(whole, list(seen.values()), searched)
    best = seen[gain.recommended.functional_key]
    assert best.score == max(evaluation.score for evaluation in seen.values())
    assert gain.recommended.configuration == best.hyperparameters
    assert gain.low - 0.01 <= -best.score <= gain.high + 0.01


def test_rules_are_read_and_written():
    for text in ("gain<0.001", "gain<noise"):
        assert str(StopRule.parse(text)) == text

    small = SearchGain(0.001, 0.0, 0.004, 0.003, 20)
    assert StopRule.parse(" gain < 5e-3 ").holds(small)
    assert not StopRule.parse("gain<noise").holds(small)
    for wrong in ("gain", "gain>1", "gain<-1", "gain<nan", "gain<1e", "regret<0.1", "gain<0"):
        with pytest.raises(UsageError, match=r"gain<0.001, or gain<noise, got"):
            StopRule.parse(wrong)


def test_a_search_stops_when_its_rule_holds(archive, tmp_path, monkeypatch):
    events = []
    arguments = {"task": table(tmp_path), "study": "mine", "trainers": 0, "progress": events.append}
    monkeypatch.setattr(estimates, "LEAST", 3)
    with serving(archive):
        result = package.search(
            "random", archive=archive, budget=10, stop_when="gain<1e6", **arguments
        )

    # Judged after three and after four results.
    assert result.evaluations == 4 and result.budget == 10 and not result.exhausted
    assert isinstance(events[-1], SearchEnded) and events[-1].stopped == result.stopped
    assert result.stopped.startswith("stopped by gain<1e+06 after 4 evaluations: searching on")
    with serving(archive):
        result = package.search(archive=archive, stop_when="gain<1e-9", **arguments)

    assert result.stopped is None and result.evaluations == 10


def test_a_rule_is_refused_before_anything_starts(archive, tmp_path):
    with pytest.raises(UsageError, match="a search stops when gain<NUMBER"):
        package.search("random", table(tmp_path), archive=archive, stop_when="gain")

    assert archive.studies.names() == []
    archive.studies.create(study(further=(Objective("params", "minimise"),)))
    with pytest.raises(UsageError, match="is of one objective, got accuracy, params"):
        prospects(archive, "study")


def test_gains_from_rung_to_rung_and_projections(archive):
    config = {"agent": "random", "rungs": {"epochs": [2, 4], "reduction": 2}}
    archive.studies.create(study(objective="loss", direction="minimise", config=config))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = []
    for at in range(4):
        begin = 1.0 + 0.1 * at
        curve = [begin + 0.5, begin, begin - 0.2, begin - 0.3 - 0.01 * at]
        outcomes.append(Result(curve[-1], {}, {"loss": curve}, epochs=4))

    archive.proposals.create("study", agent, suggest(cells(4)), outcomes=outcomes)
    report = prospects(archive, "study")
    (step,) = report.longer
    assert (step.begin, step.end, step.trainings) == (2, 4, 4)
    assert step.mean == pytest.approx(0.315)
    assert step.low < step.mean < step.high
    assert report.searching is None and "whole trainings of 10 different networks" in report.reason


def test_paused_trainings_are_projected_to_full_length():
    searched = study(objective="accuracy")
    trainings = []
    for at, network in enumerate(cells(6)):
        partial = at < 3
        curve = [0.5 + 0.05 * at, 0.6 + 0.05 * at]
        if not partial:
            curve += [0.7 + 0.05 * at, 0.75 + 0.05 * at]

        trainings.append(
            Evaluation(
                f"study#{at}", "study", at, "digits", "digits/1", network, curve[-1],
                curve={"accuracy": curve}, epochs=len(curve), partial=partial,
            )
        )  # fmt: skip

    paused = estimates.paused_trainings(trainings, searched)
    assert [training.evaluation for training in paused] == ["study#2", "study#1", "study#0"]
    for training in paused:
        assert training.epochs == 2
        assert training.score < training.expected < 1.0
        assert training.std > 0.0
