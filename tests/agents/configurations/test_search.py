"""The portfolio on spaces of parameters: proposals, priors and constraints."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.base import History, Observation, Pending
from archive.agents.configurations.candidates import DOUBT, Candidates
from archive.parameters.declaration import CONFIDENCES


def conditional():
    return space.Space(
        depth=space.integer(1, 6),
        lr=space.real(1e-5, 1e-1, log=True),
        act=space.choice(["relu", "gelu", None]),
        dropout=space.real(0.0, 0.5, when="depth >= 4"),
        momentum=space.real(0.0, 1.0, when="act == 'relu'"),
        layers=space.repeat({"op": space.choice(["conv", "skip"])}, "depth"),
    )


def grid():
    return space.Space(
        width=space.ordinal([16, 32, 64, 128]),
        depth=space.integer(1, 8),
        act=space.choice(["relu", "gelu"]),
        constraints=["width * depth <= 512"],
    )


def numbers():
    return space.Space(x=space.real(0.0, 1.0), y=space.real(0.0, 1.0))


SPACES = {"conditional": conditional, "grid": grid, "numbers": numbers}


def score(values):
    total = 0.0
    for value in values.values():
        total += value if isinstance(value, int | float) else len(str(value))

    return float(np.sin(total))


def observed(searched, count, seed=0, *, noisy=False):
    rng = np.random.default_rng(seed)
    observations = []
    for number in range(count):
        network = searched.sample(rng)
        observations.append(
            Observation(
                network,
                score=score(searched.named(network)),
                id=str(number),
                seed=number if noisy else None,
            )
        )

    return History(tuple(observations))


@pytest.fixture(params=SPACES.values(), ids=SPACES)
def searched(request):
    return spaces.get("parameters", parameters=request.param())


def propose(agent, history, n=2, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


def keys(suggestions):
    return [suggestion.architecture.functional_key for suggestion in suggestions]


@pytest.mark.parametrize("count", [0, 1, 13])
@pytest.mark.parametrize("noisy", [False, True])
def test_proposals_are_new_members(searched, count, noisy):
    history = observed(searched, count, noisy=noisy)
    agent = agents.get("portfolio", searched)
    suggestions = propose(agent, history, 3)
    assert len(set(keys(suggestions))) == 3
    assert not set(keys(suggestions)) & set(history.known)
    for suggestion in suggestions:
        searched.validate(suggestion.architecture)

    assert keys(propose(agents.get("portfolio", searched), history, 3)) == keys(suggestions)


def test_pending_configurations_are_not_proposed_again(searched):
    history = observed(searched, 13)
    agent = agents.get("portfolio", searched)
    first = propose(agent, history, 1)
    pending = History(history.observations, (Pending(first[0].architecture),))
    assert keys(propose(agent, pending, 1)) != keys(first)


def test_an_exhausted_space_ends_the_search():
    searched = spaces.get("parameters", parameters=space.Space(x=space.integer(1, 3)))
    history = observed(searched, 1)
    agent = agents.get("portfolio", searched, n_design=1)
    assert len(propose(agent, history, 5)) == 2


def with_prior(confidence):
    prior = (0.9, confidence)
    return space.Space(x=space.real(0.0, 1.0, prior=prior), y=space.real(0.0, 1.0, prior=prior))


def test_the_expected_configuration_comes_first():
    searched = spaces.get("parameters", parameters=with_prior("high"))
    (first,) = propose(agents.get("portfolio", searched), History(), 1)
    assert searched.named(first.architecture) == {"x": 0.9, "y": 0.9}


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_wrong_prior_changes_ranks_by_a_bounded_amount(confidence):
    codes = np.linspace(0.0, 1.0, 50)[:, None] * np.ones(2)
    logs = Candidates(with_prior(confidence)).log_prior(codes)
    assert logs.max() <= 0.0
    assert logs.min() >= 2 * np.log(DOUBT)
    # The rank rises towards the expected value.
    assert (np.diff(logs[codes[:, 0] < 0.9]) > 0.0).all()


def test_a_prior_that_results_contradict_is_dropped():
    plain = spaces.get("parameters", parameters=numbers())
    searched = spaces.get("parameters", parameters=with_prior("medium"))
    for sign, equal in ((-1.0, True), (1.0, False)):
        proposed = []
        for owner in (plain, searched):
            observations = []
            for index, (x, y) in enumerate(np.random.default_rng(0).random((12, 2)).tolist()):
                network = owner.of_names({"x": x, "y": y})
                score = sign * (x + y)
                observations.append(Observation(network, score=score, id=str(index)))

            agent = agents.get("portfolio", owner, patience=0)
            (suggestion,) = propose(agent, History(tuple(observations)), 1)
            proposed.append(suggestion.acquisition)

        # Without a weight the rank is the acquisition itself: no more than a search can find.
        assert (abs(proposed[0] - proposed[1]) < 0.05 * proposed[0]) == equal


def test_a_wrong_prior_costs_few_evaluations():
    searched = spaces.get("parameters", parameters=with_prior("high"))
    agent = agents.get("portfolio", searched)
    observations = []

    def tell(values):
        loss = (values["x"] - 0.2) ** 2 + (values["y"] - 0.3) ** 2
        network = searched.of_names(values)
        observations.append(Observation(network, score=-loss, id=str(len(observations))))

    # A design that believes the prior.
    for x, y in np.random.default_rng(0).uniform(0.75, 1.0, (12, 2)).tolist():
        tell({"x": x, "y": y})

    for seed in range(8):
        (suggestion,) = propose(agent, History(tuple(observations)), 1, seed)
        tell(searched.named(suggestion.architecture))

    assert max(observation.score for observation in observations) > -5e-3


@pytest.mark.whole
def test_the_optimum_of_a_smooth_function_is_found():
    searched = spaces.get("parameters", parameters=numbers())
    rng = np.random.default_rng(0)
    agent = agents.get("portfolio", searched)
    observations = []
    for number in range(30):
        (suggestion,) = agent.propose(History(tuple(observations)), 1, rng)
        values = searched.named(suggestion.architecture)
        loss = (values["x"] - 0.31) ** 2 + (values["y"] - 0.77) ** 2
        observations.append(Observation(suggestion.architecture, score=-loss, id=str(number)))

    assert max(observation.score for observation in observations) > -1e-4


def branched():
    names = "abcd"
    declared = {"kind": space.choice(list(names))}
    for name in names:
        declared[f"x_{name}"] = space.real(0.0, 1.0, when=f"kind == '{name}'")

    return space.Space(declared)


def test_a_design_covers_branches():
    searched = spaces.get("parameters", parameters=branched())
    suggestions = propose(agents.get("portfolio", searched, n_design=8), History(), 8)
    kinds = [searched.named(suggestion.architecture)["kind"] for suggestion in suggestions]
    assert sorted(kinds) == sorted(2 * "abcd")


def test_a_branch_that_began_badly_is_tried_again():
    searched = spaces.get("parameters", parameters=branched())
    observations = []
    for number, values in enumerate(searched.parameters.sample(_seeded(n)) for n in range(25)):
        kind = values["kind"]
        loss = (values[f"x_{kind}"] - 0.5) ** 2 + 10.0 * (kind != "a")
        network = searched.of_names(values)
        observations.append(Observation(network, score=-loss, id=str(number)))

    agent = agents.get("portfolio", searched, patience=0)
    kinds: dict[int, set[str]] = {24: set(), 25: set()}
    for count, seen in kinds.items():
        history = History(tuple(observations[:count]))
        for seed in range(6):
            (suggestion,) = propose(agent, history, 1, seed)
            seen.add(searched.named(suggestion.architecture)["kind"])

    assert kinds[24] == {"a"}
    assert len(kinds[25]) > 1


def test_the_search_climbs_a_narrow_peak_beside_a_broad_one():
    parameters = branched()
    candidates = Candidates(parameters)
    kind, *numbers = range(len(parameters))

    def rank(codes):
        narrow = 2.0 - 40.0 * np.abs(np.nan_to_num(codes[:, numbers[0]], nan=9.0) - 0.3)
        broad = 1.0 - np.square(np.nan_to_num(codes[:, numbers[1]], nan=9.0) - 0.6)
        return np.maximum(narrow, broad)

    starts = np.empty((0, len(parameters)))
    codes, ranks = candidates.search(rank, starts, set(), 5, np.random.default_rng(0))
    assert codes[0, kind] == 0.0
    assert ranks[0] > 1.9
    assert (np.diff(ranks) <= 0.0).all()


def _seeded(number):
    return np.random.default_rng(number)
