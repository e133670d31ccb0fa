"""Optuna's samplers as agents: the trials they receive, the draws that are kept, and no state left
behind."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Pending
from archive.errors import SettingsError, UsageError
from tests.support import whole
from tests.support.histories import grown, observed, with_goals

optuna = pytest.importorskip("optuna")

from archive.agents.baselines.optuna_samplers import GpOptuna, Tpe, _quiet  # noqa: E402


@pytest.fixture
def space():
    return spaces.get("nasbench201")


def cells_with_scores(space, count, seed=0):
    rng = np.random.default_rng(seed)
    every = list(
        {
            cell.functional_key: cell for cell in (space.sample(rng) for _ in range(2 * count))
        }.values()
    )[:count]
    return every, [sum(layer.op == "nor_conv_3x3" for layer in cell.layers) / 6 for cell in every]


def keys(suggestions):
    return [suggestion.architecture.functional_key for suggestion in suggestions]


def test_the_study_holds_the_history(space):
    every, scores = cells_with_scores(space, 6)
    history = History(observed(every[:4], scores[:4]), tuple(Pending(cell) for cell in every[4:]))
    agent = Tpe(space)
    with _quiet(optuna):
        study = agent._study(history, 0)

    states = [trial.state.name for trial in study.get_trials()]
    assert states == ["COMPLETE"] * 4 + ["RUNNING"] * 2
    assert [trial.value for trial in study.get_trials()[:4]] == scores[:4]
    for trial, cell in zip(study.get_trials(), every, strict=True):
        made = tuple(d.choices.index(trial.params[d.name]) for d in agent._decisions.decisions)
        assert agent._decisions.decode(made).functional_key == cell.functional_key


def test_it_is_a_replay_of_the_history(space):
    every, scores = cells_with_scores(space, 40)
    history = History(observed(every, scores))
    agent = Tpe(space)
    first = agent.propose(history, 3, np.random.default_rng(5))
    agent.propose(History(observed(every[:20], scores[:20])), 3, np.random.default_rng(6))
    assert keys(agent.propose(history, 3, np.random.default_rng(5))) == keys(first)
    assert keys(Tpe(space).propose(history, 3, np.random.default_rng(5))) == keys(first)
    flipped = History(observed(every, [-score for score in scores]))
    assert keys(agent.propose(flipped, 3, np.random.default_rng(5))) != keys(first)


@pytest.mark.parametrize("config", [{}, {"multivariate": False}])
def test_larger_scores_are_better(space, config):
    every, scores = cells_with_scores(space, 60)
    suggestions = Tpe(space, **config).propose(
        History(observed(every, scores)), 8, np.random.default_rng(0)
    )
    mean = np.mean(
        [
            sum(layer.op == "nor_conv_3x3" for layer in s.architecture.layers) / 6
            for s in suggestions
        ]
    )
    assert mean > np.mean(scores) + 0.15


def test_samplers_are_those_of_their_names(space):
    # The process itself is Optuna's; a run of it would load torch.
    with _quiet(optuna):
        assert type(GpOptuna(space)._sampler(0, History())) is optuna.samplers.GPSampler
        assert type(Tpe(space)._sampler(0, History())) is optuna.samplers.TPESampler

    assert (
        len(
            GpOptuna(space, startup=50).propose(
                History(observed(*cells_with_scores(space, 9))), 2, np.random.default_rng(0)
            )
        )
        == 2
    )


@pytest.mark.parametrize("names", ["all", "some"])
def test_listed_networks_are_ranked_by_the_acquisition_of_optuna(names, monkeypatch):
    # Of 64 combinations, some may be listed. The acquisition is recorded when Optuna asks for its
    # maximum.
    from archive.agents.baselines.listed_gp_sampler import ListedGpSampler

    rng = np.random.default_rng(0)
    every = (
        np.stack(np.meshgrid(*[range(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(float)
    )
    listed = every if names == "all" else every[rng.permutation(64)[:24]]
    taken = {0, 5, 7}
    distributions = {name: optuna.distributions.CategoricalDistribution("abcd") for name in "xyz"}
    ranked = []

    def searched(sampler, acqf, best):
        ranked.append(acqf.eval_acqf_no_grad(every))
        return optimize(sampler, acqf, best)

    optimize = ListedGpSampler._optimize_acqf
    monkeypatch.setattr(ListedGpSampler, "_optimize_acqf", searched)
    monkeypatch.setattr("archive.agents.baselines.listed_gp_sampler.BLOCK", 7)
    with _quiet(optuna):
        sampler = ListedGpSampler("zyx", listed[:, ::-1], taken, seed=0, n_startup_trials=5)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for row in every[rng.permutation(64)[:12]]:
            params = {name: "abcd"[int(at)] for name, at in zip("xyz", row, strict=True)}
            study.add_trial(
                optuna.trial.create_trial(
                    params=params, distributions=distributions, value=float(row @ [3, 2, -1])
                )
            )

        drawn = []
        for _ in range(3):
            trial = study.ask(distributions)
            drawn.append(tuple("abcd".index(trial.params[name]) for name in "xyz"))
            left = [
                tuple(row)
                for at, row in enumerate(listed)
                if at not in taken and tuple(row) not in drawn[:-1]
            ]
            values = {tuple(row): value for row, value in zip(every, ranked[-1], strict=True)}
            assert drawn[-1] == max(left, key=values.__getitem__)

    assert len(set(drawn)) == 3


def test_the_members_of_a_space_are_proposed_until_none_is_left():
    whole_space = spaces.get("choices", decisions={"a": ["x", "y", "z"], "b": ["x", "y", "z"]})
    every = list(whole_space.members())
    history = History(observed(every[:7], np.linspace(0, 1, 7)))
    agent = GpOptuna(whole_space, startup=3, candidates="members")
    assert sorted(keys(agent.propose(history, 4, np.random.default_rng(0)))) == sorted(
        member.functional_key for member in every[7:]
    )


def test_members_need_a_space_that_can_be_listed(space):
    with pytest.raises(
        UsageError, match="candidates 'members' needs a space that can be listed, got 'cnn'"
    ):
        GpOptuna(spaces.get("cnn"), candidates="members")

    with pytest.raises(UsageError, match="unknown candidates 'member': did you mean members"):
        GpOptuna(space, candidates="member")


def test_all_trials_of_a_cell_have_all_parameters():
    space = spaces.get("nasbench101")
    rng = np.random.default_rng(0)
    agent = Tpe(space)
    history = History(observed([space.sample(rng) for _ in range(9)], np.linspace(0, 1, 9)))
    with _quiet(optuna):
        study = agent._study(history, 0)

    assert {len(trial.params) for trial in study.get_trials()} == {26}


def test_verbosity_and_warnings_are_left_as_they_were(space):
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    Tpe(space).propose(History(), 1, np.random.default_rng(0))
    assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    optuna.logging.set_verbosity(optuna.logging.INFO)


def test_without_optuna_the_way_out_is_named(space, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        SettingsError,
        match=r"agent tpe needs Optuna: pip install "
        r"'nas-archive\[bench\]'",
    ):
        Tpe(space)


def test_settings_are_checked(space):
    with pytest.raises(UsageError, match="startup must be >= 1, got 0"):
        Tpe(space, startup=0)

    with pytest.raises(UsageError, match="candidates must be >= 1, got 0"):
        Tpe(space, candidates=0)


@pytest.mark.parametrize("kind", ["tpe", whole("gp-optuna")])
def test_a_sampler_gets_all_objectives(kind, chains, monkeypatch):
    history = with_goals(grown(chains, 12))
    studies = []
    agent = agents.get(kind, chains, startup=5)
    study_of = agent._study
    monkeypatch.setattr(
        agent, "_study", lambda *given: studies.append(study_of(*given)) or studies[-1]
    )
    (suggestion,) = agent.propose(history, 1, np.random.default_rng(0))
    assert suggestion.architecture.functional_key not in history.known
    (study,) = studies
    assert [direction.name for direction in study.directions] == ["MAXIMIZE"] * 3
    told = [trial.values for trial in study.trials if trial.values]
    expected = history.goals.scores(history.observations[1:])
    assert np.array(told) == pytest.approx(expected)
