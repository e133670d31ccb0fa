"""The end of `archive search`: what was gained over the initial networks, in words and in JSON."""

from __future__ import annotations

import json

import pytest

from archive import agents, spaces
from archive.agents.loop import run
from archive.agents.study_setup import open_study
from archive.searches.call import outcome
from archive.store.records import Result, Study
from archive.trainer.tasks import registry
from tests.support.commands import shell
from tests.support.stores import suggest

SPACE = spaces.get("mlp")


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def search(archive, values, kind="rand", **settings):
    """Fill a study with these values, the first three those of the initial design; nothing is
    trained."""
    given = {
        "space_config": SPACE.config,
        "config": {"agent": kind},
        "objective": "valid_mse",
        "direction": "minimise",
    }
    study = open_study(
        archive, Study("mine", "diabetes", "diabetes/1", "mlp", **given), budget=len(values)
    )

    def serve(_):
        while (claim := archive.proposals.claim("worker", study="mine")) is not None:
            archive.proposals.complete(claim.id, claim.token, Result(values[claim.proposal.number]))

    list(run(archive, study, agents.get(kind, SPACE, **settings), version="0", wait=serve))


def ending(user):
    """Return the line of the gain, or None, and the same from the JSON document."""
    lines = user.types("search", "--study", "mine").stdout.splitlines()
    found = json.loads(user.types("search", "--study", "mine", "--json").stdout)
    return next(
        (line.removeprefix("gain").strip() for line in lines if line.startswith("gain ")), None
    ), found["gain"]


def test_a_gain_is_told_with_the_networks_it_is_over(archive, user):
    search(archive, [0.5, 0.7, 0.6, 0.625, 0.4, 0.45], n_initial=3)
    text, found = ending(user)
    assert text == "-0.1 from the best of the 3 initial networks (0.5), found at evaluation 5 of 6"
    expected = {"initial": 3, "initial_best": 0.5, "best": 0.4, "gain": 0.1, "found_at": 5}
    assert found == pytest.approx(expected)


def test_no_gain_is_told_as_well(archive, user):
    search(archive, [0.5, 0.3, 0.6, 0.625], n_initial=3)
    text, found = ending(user)
    expected = (
        "none: no later network is better than the best of the 3 initial networks (0.3), "
        "found at evaluation 2"
    )
    assert text == f"{expected} of 4"
    assert (found["gain"], found["found_at"]) == (0, 2)


def test_a_design_that_is_not_finished_promises_nothing_of_the_search(archive, user):
    search(archive, [0.5, 0.3], n_initial=3)
    assert ending(user)[0] == "none yet: only initial networks have been evaluated"
    # The rest of a resumed study counts from where it was.
    search(archive, [0.5, 0.3, 0.6, 0.2], n_initial=3)
    text, found = ending(user)
    assert text == "-0.1 from the best of the 3 initial networks (0.3), found at evaluation 4 of 4"
    assert found["initial"] == 3


def test_an_agent_without_an_initial_design_has_no_such_line(archive, user):
    search(archive, [0.5, 0.3], kind="random")
    assert ending(user) == (None, None)


def test_a_study_without_a_success_has_no_gain(archive):
    study = Study("failed", "diabetes", "diabetes/1", "mlp", "valid_mse", "minimise", budget=3)
    archive.studies.create(study)
    agent = archive.proposals.register_agent("rand", {"n_initial": 3}, "0")
    archive.proposals.create("failed", agent, suggest(SPACE.initial_pool()[:1]))
    claim = archive.proposals.claim("worker", study="failed")
    archive.proposals.fail(claim.id, claim.token, "no memory")
    found = outcome(
        archive, archive.studies.snapshot("failed"), "rand", registry.get("diabetes"), None
    )
    assert (found.best, found.gain) == (None, None)
