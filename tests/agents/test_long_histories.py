"""One pass over a long history: each shortcut gives what a slow, obvious computation gives."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.agents.base import History, Pending, Suggestion
from archive.agents.bayesopt.model_based import _repeatable
from archive.agents.observations import is_noisy, replicates
from archive.architecture.graph import Architecture
from tests.support.histories import Chains, observed

NETWORKS = Chains().every()[:6]
FOREIGN = spaces.get("mlp").initial_pool()[0]

evaluations = st.lists(
    st.tuples(
        st.integers(0, 6), st.sampled_from([0.1, 0.2]), st.sampled_from([None, 1, 2]), st.booleans()
    ),
    max_size=12,
)


def history(drawn):
    networks = [*NETWORKS, FOREIGN]
    seen = observed([networks[at] for at, *_ in drawn], [score for _, score, *_ in drawn])
    settings = [{"rate": 0.1} if other else {} for *_, other in drawn]
    return History(
        tuple(
            replace(one, seed=seed, hyperparameters=setting)
            for one, (_, _, seed, _), setting in zip(seen, drawn, settings, strict=True)
        )
    )


@given(evaluations)
def test_noise_is_that_of_the_groups_of_replicates(drawn):
    seen = history(drawn).usable
    groups = replicates(seen)
    if any(len({one.score for one in group}) > 1 for group in groups):
        expected = True
    elif any(len({one.seed for one in group}) > 1 for group in groups):
        expected = False
    else:
        expected = any(one.seed is not None for one in seen)

    assert is_noisy(seen) is expected


@given(evaluations, st.sets(st.integers(0, 6)), st.sets(st.integers(0, 5)))
def test_repeatable_networks_are_those_of_a_whole_scan(drawn, asked, pending):
    known = replace(history(drawn), pending=tuple(Pending(NETWORKS[at]) for at in sorted(pending)))
    keys = {[*NETWORKS, FOREIGN][at].functional_key for at in asked}
    taken = {one.architecture.functional_key for one in known.pending}
    expected = {
        one.architecture.functional_key: one.architecture
        for one in known.usable
        if not one.hyperparameters and Chains().contains(one.architecture)
    }
    expected = {key: one for key, one in expected.items() if key in keys - taken}
    assert _repeatable(known, keys, Chains()) == expected


@given(evaluations, st.lists(st.integers(0, 5), max_size=3), st.booleans())
def test_a_pending_proposal_changes_nothing_that_was_observed(drawn, added, used):
    start = replace(history(drawn), failed=(NETWORKS[0],))
    if used:
        assert (start.noisy, start.known, start.variances) is not None

    extended = start.with_pending([Suggestion(NETWORKS[at]) for at in added])
    fresh = History(start.observations, tuple(Pending(NETWORKS[at]) for at in added), start.failed)
    assert extended == fresh
    assert list(extended.known.items()) == list(fresh.known.items())
    assert (extended.usable, extended.noisy, extended.variances) == (
        fresh.usable,
        fresh.noisy,
        fresh.variances,
    )


def test_a_network_without_dead_layers_is_made_once():
    rng = np.random.default_rng(0)
    space = spaces.get("nasbench201")
    members = [
        cell for cell in (space.sample(rng) for _ in range(60)) if len(cell.live) < len(cell.layers)
    ]
    assert members
    for cell in itertools.islice(members, 20):
        functional = cell.functional
        assert functional is cell.functional
        again = Architecture(functional.space, functional.layers, functional.connections)
        assert functional.key == again.key == cell.functional_key
        assert functional.functional_key == again.functional_key
        assert functional.functional is functional


def test_variances_survive_pending_proposals():
    seen = observed(NETWORKS[:3], [0.1, 0.2, 0.3])
    start = History(tuple(replace(one, variance=0.5) for one in seen))
    assert start.variances is not None
    extended = start.with_pending([Suggestion(NETWORKS[4])])
    assert np.array_equal(extended.variances, [0.5, 0.5, 0.5])
