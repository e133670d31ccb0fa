"""Every agent under constraints: on known quantities no other network is proposed; measured ones
are no obstacle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents.base import History
from archive.agents.constraints.slacks import StudyConstraints, adapt
from archive.constraints import parse
from archive.errors import InvalidArchitectureError
from archive.spaces.constrained import constrain
from tests.agents.test_contract import CHEAP, ONLY_ON, VARIANTS
from tests.support import installed_agents
from tests.support.histories import Chains, observed, units

pytestmark = pytest.mark.usefixtures("few_candidates")

KNOWN = parse("units<=24")
MEASURED = parse("latency_ms<3")
# The baselines of VARIANTS differ in their kernels alone.
KINDS = [kind for kind in installed_agents() if kind not in VARIANTS]


def told(networks, latencies):
    seen = observed(networks, np.linspace(0.0, 1.0, len(networks)))
    measured = tuple(
        replace(one, measured=(float(at),)) for one, at in zip(seen, latencies, strict=True)
    )
    return History(measured, constraints=StudyConstraints((KNOWN, MEASURED), {"units": units}))


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_meets_known_constraints_is_proposed_and_nothing_else(kind):
    chains = Chains()
    space = constrain(chains, (KNOWN, MEASURED), {"units": units})
    agent = agents.get(kind, space, **CHEAP.get(kind, {}))
    every = chains.every()
    met = [one for one in every if units([one])[0] <= 24]
    assert 8 < len(met) < len(every)
    # The best results do not meet the known constraint: those of a study that this one starts warm
    # from.
    others = [one for one in every if units([one])[0] > 24]
    history = told([*met[:-3], *others], [*range(len(met) - 3), *[0.0] * len(others)])
    suggestions = agent.propose(adapt(agent, history), 5, np.random.default_rng(0))
    assert {one.architecture.functional_key for one in suggestions} == {
        one.functional_key for one in met[-3:]
    }
    if kind not in ("evolution", "nasbot", "portfolio", "tpe"):
        return

    # No result meets the constraints, and one lacks the measured quantity.
    none = told(met[:6], [9.0, 8.0, 7.0, 6.0, 5.0, float("nan")])
    suggestions = agent.propose(adapt(agent, none), 2, np.random.default_rng(0))
    assert len(suggestions) == 2 and all(space.contains(one.architecture) for one in suggestions)


def test_the_only_agents_of_one_space_are_part_of_it():
    assert ONLY_ON == {"arc": ("mlp",)} and Chains().name == "mlp"
    with pytest.raises(
        InvalidArchitectureError, match="the network does not meet units<=24: its units is 32"
    ):
        constrain(Chains(), (KNOWN,), {"units": units}).validate(Chains().every()[-1])
