"""Warm starts of configurations: from other tasks, and from spaces that share parameters."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.base import History, Observation, SourceStudy
from archive.agents.configurations.sources import SourceReader
from archive.agents.surrogates import outcome_transforms
from archive.errors import UsageError
from archive.parameters.sharing import carry, shared_names

OLD = space.Space(
    lr=space.real(1e-5, 1e-1, log=True),
    depth=space.integer(1, 8),
    act=["relu", "tanh"],
    gone=space.real(0, 1),
    kind=["a", "b"],
)
NEW = space.Space(
    lr=space.real(1e-4, 1, log=True),
    depth=space.integer(2, 6),
    act=["relu", "gelu"],
    dropout=space.real(0, 0.5, default=0.1),
    kind=space.real(0, 1),
    stage=space.repeat({"op": ["conv", "skip"]}, "depth"),
)


def score(values):
    """A function of the learning rate and the depth, with its best at 0.0006 and 6."""
    return -((np.log10(values["lr"]) + 3.2) ** 2) - ((values["depth"] - 6) / 4) ** 2


def source_of(count, sign=1.0, seed=0):
    searched = spaces.of(OLD)
    rng = np.random.default_rng(seed)
    observations = []
    for number in range(count):
        network = searched.sample(rng)
        value = sign * score(searched.named(network))
        observations.append(Observation(network, score=value, id=f"old{number}"))

    return SourceStudy("old", "other", "other/1", "parameters", tuple(observations))


def test_names_are_shared_where_values_are():
    assert shared_names(OLD, NEW) == ["lr", "depth", "act"]
    assert shared_names(OLD, space.Space(x=[1, 2], lr=3.0)) == []
    values = {"lr": 0.01, "depth": 3, "act": "relu", "gone": 0.3, "kind": "a"}
    carried = carry(NEW, values, {"lr", "depth", "act"})
    assert NEW.check(carried) == carried
    assert (carried["lr"], carried["depth"], carried["dropout"]) == (0.01, 3, 0.1)
    assert carried["kind"] == NEW["kind"].central
    assert carried["stage_3_op"] == "conv"
    assert carry(NEW, {**values, "act": "tanh"}, {"lr", "depth", "act"}) is None
    assert carry(NEW, {**values, "depth": 8}, {"lr", "depth", "act"}) is None


def run(sources, count=10, seed=0):
    """Return the best scores of a search of the new space after each evaluation."""
    searched = spaces.of(NEW)
    agent = agents.get("portfolio", searched)
    rng = np.random.default_rng(seed)
    observations = []
    best = []
    for number in range(count):
        history = History(tuple(observations), sources=sources)
        (suggestion,) = agent.propose(history, 1, rng)
        searched.validate(suggestion.architecture)
        value = score(searched.named(suggestion.architecture))
        observations.append(Observation(suggestion.architecture, score=value, id=str(number)))
        best.append(max(value, *best[-1:]) if best else value)

    return best, suggestion


def test_a_source_that_shares_parameters_helps_and_a_wrong_one_costs_little():
    seeds = range(2)
    cold = [run((), seed=seed)[0] for seed in seeds]
    warm = [run((source_of(60, seed=9),), seed=seed) for seed in seeds]
    wrong = [run((source_of(60, sign=-1.0, seed=9),), seed=seed) for seed in seeds]
    # The first evaluation is at the best of the source.
    assert np.mean([best[0] for best, _ in warm]) > np.mean([best[4] for best in cold])
    assert np.mean([best[-1] for best, _ in warm]) >= np.mean([best[-1] for best in cold])
    # A source of the opposite order is recognised as such.
    assert np.mean([best[-1] for best, _ in wrong]) >= np.mean([best[-1] for best in cold]) - 0.5
    for _, suggestion in warm:
        assert suggestion.task_correlations.keys() == {"old"}

    assert all(suggestion.task_correlations["old"] <= 0 for _, suggestion in wrong)


def test_sources_that_are_too_small_or_share_nothing_are_left_out():
    reader = SourceReader(spaces.of(NEW), outcome_transforms.get("compress-below-median"))
    assert reader.read((source_of(3),)) == []
    strange = spaces.of(space.Space(x=space.real(0, 1)))
    rng = np.random.default_rng(0)
    rows = [
        Observation(strange.sample(rng), score=float(number), id=str(number))
        for number in range(20)
    ]
    other = SourceStudy("x", "other", "other/1", "parameters", tuple(rows))
    assert reader.read((other,)) == []
    (source,) = reader.read((source_of(60),))
    assert source.studies == ("old",)
    values = spaces.of(NEW).parameters.decode(source.best()[0])
    assert 1e-4 <= values["lr"] < 1e-2


@pytest.mark.parametrize("task", [None, "theirs"])
def test_a_study_starts_warm_from_one_with_other_parameters(archive, task):
    old = agents.study(archive, "old", OLD, task="mine")
    for trial in old.ask("random", 12):
        old.tell(trial, score(trial.parameters))

    study = agents.study(archive, "new", NEW, task=task or "mine", warm_start="old")
    (trial,) = study.ask("portfolio")
    best = old.best()
    values = dict(archive.studies.snapshot("old").proposals[0].configuration)
    assert values.keys() == set(OLD.names)
    assert trial.parameters["dropout"] == 0.1
    assert best is not None
    study.tell(trial, score(trial.parameters))
    (row,) = study_sources(archive)
    assert (row.study, row.same_task, row.evaluations) == ("old", False, 12)


def study_sources(archive):
    from archive.agents.transfer.report import read_contributions

    return read_contributions(archive, "new")


def test_spaces_without_a_shared_parameter_are_refused(archive):
    agents.study(archive, "old", space.Space(x=space.real(0, 1)), task="mine")
    with pytest.raises(UsageError, match="share no parameter: it has x, and 'new' has lr, depth"):
        agents.study(archive, "new", NEW, task="mine", warm_start="old")

    assert archive.studies.names() == ["old"]
