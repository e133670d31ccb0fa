"""Comparison of studies: what counts as a repeat, and sentences that do not claim too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archive.searches.answer import StudyAnswer
from archive.searches.repeats import StudyGroup, compare_studies, verdict
from tests.support.stores import evaluate

ANSWER = StudyAnswer(0, "key", 0.9, 0.9, 0.88, 0.92, True, None, 1, {}, {}, None, 0, None, None, ())


def group(name, *bests):
    return StudyGroup(name, tuple(f"{name}{index}" for index in range(len(bests))), None, bests)


def test_repeats_are_told_from_chance_only_where_they_are_enough():
    def said(first, second):
        return verdict(group("a", *first), group("b", *second), "maximise", 10, {})

    assert "too few" in said((0.9, 0.91), (0.1, 0.11))
    assert "finds better" in said((0.9, 0.91, 0.92, 0.93), (0.1, 0.11, 0.12, 0.13))
    assert "may be equally good" in said((0.9, 0.5, 0.92, 0.6), (0.8, 0.55, 0.91, 0.61))
    assert "single study" in said((0.9, 0.91), (0.5,))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(ANSWER, value=0.89), "may be equally good"),
        (replace(ANSWER, value=0.7, low=0.69, high=0.71), "better than the one of b"),
        (replace(ANSWER, value=0.95, low=0.94, high=0.96), "network of b is better"),
        (replace(ANSWER, low=None, high=None, value=0.8), "noise of a training is not known"),
    ],
)
def test_single_studies_are_compared_by_their_intervals(other, words):
    answers = {"a": ANSWER, "b": other}
    first = StudyGroup("a", ("a",), None, (0.9,))
    second = StudyGroup("b", ("b",), None, (0.9,))
    assert words in verdict(first, second, "maximise", 10, answers)


def test_studies_that_differ_in_the_seed_are_repeats(archive):
    for seed, values in enumerate(([0.25, 0.5], [0.5, 0.75, 0.875])):
        evaluate(archive, values, f"first {seed}", seed=seed)

    evaluate(archive, [0.125, 0.25], "second")
    agents = {"first 0": "random", "first 1": "random", "second": "nasbot"}
    found = compare_studies(archive, list(agents), agents=agents)
    assert found.evaluations == 2
    assert [(each.name, each.studies) for each in found.groups] == [
        ("random", ("first 0", "first 1")),
        ("second", ("second",)),
    ]
    # The longer search has no advantage.
    assert found.groups[0].bests == (0.5, 0.75) and found.groups[0].band.median[-1] == 0.625
    assert len(found.verdicts) == 1
    (spread,) = compare_studies(archive, ["first 0", "first 1"], agents=agents).verdicts
    assert spread.startswith("2 repeats of one search by random") and "0.5 to 0.75" in spread


def test_two_groups_of_one_agent_have_two_names(archive):
    for seed in (0, 1):
        evaluate(archive, [0.25, 0.5], f"a {seed}", seed=seed)
        evaluate(archive, [0.5, 0.75], f"b {seed}", seed=seed, config={"agent": "b"})

    names = [f"{group} {seed}" for group in "ab" for seed in (0, 1)]
    found = compare_studies(archive, names, agents=dict.fromkeys(names, "random"))
    assert [each.name for each in found.groups] == ["random (b 0, …)", "random (a 0, …)"]
