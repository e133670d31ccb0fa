"""The initial design of a study, reconstructed from its record, and the gain over it."""

from __future__ import annotations

import math

import pytest

from archive import agents, spaces
from archive.agents import study as opened
from archive.agents.initial_design import gain, initial_numbers
from archive.agents.loop import run
from archive.agents.study_setup import open_study
from archive.store.records import Result, Study

SPACE = spaces.get("mlp")


def search(
    archive, values, *, kind="rand", name="s", batch=1, direction="maximise", warm=(), **settings
):
    """Search with a trainer that reports these values by number, and fails where there is none.

    The budget is the number of values.
    """
    asked = Study(name, "t", "t/1", "mlp", "value", direction)
    study = open_study(
        archive, asked, budget=len([v for v in values if v is not None]), sources=warm
    )
    agent = agents.get(kind, SPACE, **settings)

    def serve(_):
        while (claim := archive.proposals.claim("worker", study=name)) is not None:
            value = values[claim.proposal.number]
            if value is None:
                archive.proposals.fail(claim.id, claim.token, "no value")
            else:
                archive.proposals.complete(claim.id, claim.token, Result(value))

    return list(run(archive, study, agent, version="0", batch=batch, retrain=True, wait=serve))[-1]


@pytest.mark.parametrize(
    ("direction", "values", "expected"),
    [
        ("maximise", [0.5, 0.7, 0.6, 0.4, 0.9], (3, 0.7, 0.9, 0.2, 5)),
        ("minimise", [0.5, 0.7, 0.6, 0.4, 0.9], (3, 0.5, 0.4, 0.1, 4)),
        # A later network of the same score is no gain.
        ("maximise", [0.5, 0.7, 0.6, 0.7, 0.1], (3, 0.7, 0.7, 0.0, 2)),
        # Only the initial design is evaluated.
        ("maximise", [0.5, 0.7], (2, 0.7, 0.7, 0.0, 2)),
    ],
)
def test_the_incumbent_is_compared_with_the_best_initial_network(
    archive, direction, values, expected
):
    own = gain(archive, search(archive, values, direction=direction, n_initial=3))
    assert (own.initial, own.initial_best, own.best, own.gain, own.found_at) == pytest.approx(
        expected
    )


def test_of_several_objectives_the_design_counts_as_the_incumbent_does(archive):
    rows = [(0.5, 1.0), (0.9, math.inf), (0.6, 1.0), (0.7, 1.0)]
    study = opened(archive, "two", "mlp", objective=["accuracy", "loss"])
    for (accuracy, loss), asked in zip(rows, study.ask("nsga2", 4), strict=True):
        result = Result(accuracy, {"accuracy": accuracy, "loss": loss})
        archive.proposals.complete(asked.id, asked.token, result)

    snapshot = archive.studies.snapshot("two")
    own = gain(archive, snapshot)
    assert (own.initial_best, own.best) == (0.7, 0.7)


def test_a_design_of_which_one_failed_is_one_longer(archive):
    last = search(archive, [0.5, None, 0.6, 0.8, 0.7, 0.9], n_initial=3)
    assert initial_numbers(archive, last) == {0, 1, 2, 3}
    own = gain(archive, last)
    assert (own.initial, own.initial_best) == (3, 0.8)
    # The failed proposal is no evaluation.
    assert own.found_at == 5


def test_a_batch_that_ends_the_design_is_initial_in_part(archive):
    last = search(archive, [0.1] * 8, batch=2, n_initial=3)
    assert initial_numbers(archive, last) == {0, 1, 2}


def test_a_study_that_is_resumed_keeps_its_design(archive):
    search(archive, [0.5, 0.7], n_initial=3)
    search(archive, [0.5, 0.7, 0.6, 0.8], n_initial=3)
    # The history of another agent, with a longer design, has four evaluations.
    last = search(archive, [0.5, 0.7, 0.6, 0.8, 0.9, 0.2], kind="evolution", n_initial=5)
    assert initial_numbers(archive, last) == {0, 1, 2, 4}
    assert gain(archive, last).initial_best == 0.9


def test_the_setting_of_the_portfolio_counts_too(archive):
    last = search(archive, [0.1, 0.2, 0.3], kind="portfolio", n_design=2)
    assert initial_numbers(archive, last) == {0, 1}


def test_nothing_is_said_where_the_record_does_not_tell(archive):
    # An agent without a design, a study without a value, and one that started from the results of
    # another.
    assert gain(archive, search(archive, [0.5, 0.7], kind="random", name="random")) is None
    assert gain(archive, search(archive, [None, 0.5], name="one", n_initial=1)) is not None
    archive.studies.create(Study("none", "t", "t/1", "mlp", "value", budget=3))
    assert gain(archive, archive.studies.snapshot("none")) is None
    assert (
        gain(archive, search(archive, [0.5, 0.7], name="warm", warm=["one"], n_initial=3)) is None
    )
    # Nor after its source was deleted: the record of its proposals names it.
    archive.studies.delete("one")
    assert archive.studies.sources("warm") == []
    assert gain(archive, archive.studies.snapshot("warm")) is None
    # A network that a person enqueues belongs to no design.
    opened(archive, "told", SPACE).enqueue(SPACE.initial_pool()[0])
    assert initial_numbers(archive, archive.studies.snapshot("told")) == frozenset()


def test_networks_of_a_call_without_a_result_are_initial_however_many(archive):
    # No model can be fitted before the first result.
    last = search(archive, [0.1 * at for at in range(9)], batch=5, n_initial=2)
    assert initial_numbers(archive, last) == {0, 1, 2, 3, 4}
    assert gain(archive, last).initial_best == 0.4
