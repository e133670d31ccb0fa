"""The answer of a study: an estimate where results have noise, the value where they have none."""

from __future__ import annotations

import pytest

from archive.errors import ArchiveError
from archive.objectives import Objective
from archive.searches.answer import answer, longer_protocol
from archive.store.records import Result
from tests.support.stores import cells, evaluate, propose, study


def tell(archive, values, seed, **settings):
    propose(archive, cells(len(values)), **settings)
    for value in values:
        claim = archive.proposals.claim("trainer", study="study")
        result = Result(value, {"accuracy": value}, environment={"seed": seed}, seed=seed)
        archive.proposals.complete(claim.id, claim.token, result)


def test_a_noisy_value_has_an_interval_around_its_estimate(archive):
    tell(archive, [0.5, 0.75, 0.25, 0.6, 0.55, 0.7], seed=1)
    found = answer(archive, "study")
    assert found.noisy and found.low < found.value < found.high
    assert found.unknown is None and found.evaluations == 1
    # The second best is compared by its estimate too.
    second = next(row for row in found.beaten if row.kind == "second")
    assert second.gain == pytest.approx(found.value - second.value) and second.gain >= 0
    at_once = answer(archive, "study", estimated=False)
    assert (at_once.value, at_once.low, at_once.number) == (0.75, None, 1)


def test_too_few_noisy_values_have_no_interval(archive):
    tell(archive, [0.5, 0.75], seed=1)
    found = answer(archive, "study")
    assert (found.value, found.low, found.unknown) == (
        0.75,
        None,
        "too few networks for an estimate",
    )


def test_smaller_values_may_be_better(archive):
    evaluate(archive, [0.5, 0.25, 0.75], direction="minimise")
    found = answer(archive, "study")
    assert (found.number, found.noisy) == (1, False)
    assert {row.kind: row.gain for row in found.beaten} == {"second": 0.25, "median": 0.25}


def test_values_of_several_objectives_are_not_called_exact(archive):
    tell(archive, [0.5, 0.75], seed=1, further=(Objective("loss", "minimise"),))
    found = answer(archive, "study")
    assert (found.value, found.low, found.noisy) == (0.75, None, True)


def test_a_study_without_results_has_no_answer(archive):
    propose(archive, cells(1))
    assert answer(archive, "study") is None


@pytest.mark.parametrize(
    ("task", "protocol", "longer"),
    [
        ("digits", "digits/small", "digits/1"),
        ("digits", "digits/1", "digits/long"),
        ("nb201-cifar10", "nb201/12", "nb201/200"),
    ],
)
def test_a_longer_protocol_differs_in_length(archive, task, protocol, longer):
    assert longer_protocol(archive, study(task=task, protocol=protocol)).name == longer


@pytest.mark.parametrize(
    ("task", "protocol", "reason"),
    [
        ("digits", "digits/long", "digits/long is the longest protocol of the task digits"),
        ("nb201-cifar10", "nb201/200", "read from a table, which has no longer training"),
        ("mine", "mine/1", "mine"),
    ],
)
def test_where_no_protocol_is_longer_the_reason_is_told(archive, task, protocol, reason):
    with pytest.raises(ArchiveError, match=reason):
        longer_protocol(archive, study(task=task, protocol=protocol))
