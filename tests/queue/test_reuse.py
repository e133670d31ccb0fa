"""Reuse of known results on each server: across studies, for the same task and protocol only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents import loop
from archive.architecture import codec
from archive.store.records import Result, State, Weights
from tests.support.stores import Suggestion, cells, propose, study, suggest

RESULT = Result(
    0.75,
    {"accuracy": 0.75, "loss": 0.5},
    {"loss": [2.0, 0.5], "accuracy": [0.5, 0.75]},
    seconds=12.0,
    seed=3,
    device="cpu",
    environment={"torch": "2"},
    weights=Weights("file:w", "ab" * 32, 8),
)


def finish(archive, name, result=RESULT, **how):
    claim = archive.proposals.claim("w", study=name)
    archive.proposals.complete(claim.id, claim.token, result, **how)
    return claim


@pytest.fixture
def source(archive):
    """A study with one evaluation, of the first cell."""
    propose(archive, cells(1), "source")
    return finish(archive, "source")


def known(archive, suggestions, **asked):
    return archive.answers.known(study("new", **asked), suggestions)


def test_an_answer_repeats_the_evaluation_and_points_to_it(archive, source):
    first, second = cells(2)
    archive.studies.create(study("new"))
    agent = archive.proposals.register_agent("random", {}, "1")
    suggestions = suggest([second, first])
    outcomes = known(archive, suggestions)
    assert outcomes[0] is None and outcomes[1].answered_from == source.id
    made = archive.proposals.create(
        "new", agent, suggestions, outcomes=outcomes, basis={"wanted": 2}, seconds=0.5
    )
    assert [each.id for each in made] == ["new#00000", "new#00001"]
    waiting, answered = archive.proposals.list("new")
    assert (waiting.state, answered.state, answered.reason) == (State.WAITING, State.COMPLETE, None)
    assert (answered.based_on, answered.seconds) == ({"wanted": 2}, 0.5)
    (seen,) = archive.studies.evaluations("new")
    (original,) = archive.studies.evaluations("source")
    same = replace(
        original, id=seen.id, study="new", number=1, created=seen.created, agent=seen.agent
    )
    assert seen == replace(same, seconds=0.0, answered_from=source.id)
    assert original.answered_from is None
    assert archive.weights.of_evaluation(seen.id) == RESULT.weights
    assert (archive.answers.count("new"), archive.answers.count("source")) == (1, 0)
    # A reused result is not reused: the third study refers to the original.
    assert known(archive, suggest([first]))[0].answered_from == source.id


def test_a_different_proposal_reuses_nothing(archive, source):
    cell = cells(1)[0]
    asked = suggest([cell])
    assert known(archive, asked)[0].value == 0.75
    assert known(archive, asked, task="diabetes") == [None]
    assert known(archive, asked, protocol="digits/2") == [None]
    assert known(archive, suggest([cells(2)[1]])) == [None]
    assert known(archive, [Suggestion(cell, hyperparameters={"learning_rate": 0.5})]) == [None]
    # A result is reused for another objective if that was measured, too.
    assert known(archive, asked, objective="loss")[0].value == 0.5
    assert known(archive, asked, objective="latency") == [None]
    assert known(archive, []) == []


def test_a_recipe_is_part_of_the_reuse_key_and_an_objective_is_not(archive, source):
    asked = suggest([cells(1)[0]])
    protocol = study().protocol
    assert known(archive, asked, protocol=f"{protocol}+recipe:mine") == [None]
    loss = {"protocol": f"{protocol}+objective:loss", "objective": "loss", "direction": "minimise"}
    assert known(archive, asked, **loss)[0].value == 0.5
    propose(archive, cells(2)[1:], "other", **loss)
    finish(archive, "other", replace(RESULT, value=0.5))
    assert known(archive, suggest([cells(2)[1]]))[0].value == 0.75
    assert known(archive, suggest([cells(2)[1]]), protocol=f"{protocol}+recipe:mine") == [None]


def test_a_choice_is_known_by_the_names_of_its_options(archive):
    def settings(activations):
        return {"space": "choices", "space_config": chosen(activations).config}

    def chosen(activations):
        return spaces.get(
            "choices", decisions={"act": activations, "width": ["64", "128"]}, form="set"
        )

    old = chosen(["relu", "gelu"])
    propose(archive, old.members()[:1], "source", **settings(["relu", "gelu"]))
    finish(archive, "source")
    asked = suggest(old.members()[:1])
    # An option may be added behind the others, and not before them: labels are numbers.
    assert known(archive, asked, **settings(["relu", "gelu", "elu"]))[0].value == 0.75
    assert known(archive, asked, **settings(["elu", "relu", "gelu"])) == [None]
    assert known(archive, asked, **settings(["relu", "gelu"]))[0].value == 0.75


def test_hyperparameters_are_part_of_the_reuse_key(archive):
    cell = cells(1)[0]
    archive.studies.create(study("source"))
    agent = archive.proposals.register_agent("arc", {}, "1")
    archive.proposals.create(
        "source", agent, [Suggestion(cell, hyperparameters={"b": 1, "a": [0.5]})]
    )
    finish(archive, "source")
    asked = [Suggestion(cell), Suggestion(cell, hyperparameters={"a": [0.5], "b": 1})]
    assert [answer is not None for answer in known(archive, asked)] == [False, True]


@pytest.mark.parametrize("how", ["pruned", "nan", "failed", "running"])
def test_partial_results_are_not_reused(archive, how):
    propose(archive, cells(1), "source")
    if how == "failed":
        claim = archive.proposals.claim("w", study="source")
        archive.proposals.fail(claim.id, claim.token, "no memory")
    elif how == "running":
        archive.proposals.claim("w", study="source")
    else:
        finish(
            archive,
            "source",
            replace(RESULT, value=float("nan") if how == "nan" else 0.5),
            pruned=how == "pruned",
        )

    assert known(archive, suggest(cells(1))) == [None]


def test_dead_layers_make_no_difference_but_to_the_weights(archive, source):
    # Both compute a chain of one convolution; one has a node without a path to the output, besides.
    chain = codec.from_nasbench201("|none~0|+|none~0|none~1|+|nor_conv_3x3~0|none~1|none~2|")
    other = codec.from_nasbench201(
        "|nor_conv_1x1~0|+|none~0|none~1|+|nor_conv_3x3~0|none~1|none~2|"
    )
    assert chain.functional_key == other.functional_key and chain.key != other.key
    propose(archive, [other], "dead")
    finish(archive, "dead", replace(RESULT, value=0.25))
    (answer,) = known(archive, suggest([chain]))
    assert (answer.value, answer.weights) == (0.25, None)
    assert known(archive, suggest([other]))[0].weights == RESULT.weights


def test_an_imported_evaluation_answers_by_its_metric(archive):
    from archive.store.evaluations import Evaluations

    cell = cells(1)[0]
    archive.architectures.add([cell])
    rows = [
        ("b", cell.key, Result(1.0, {"accuracy": 0.5})),
        ("a", cell.key, Result(2.0, {"accuracy": 0.25})),
    ]
    Evaluations(archive.connection, archive.architectures).add("digits", "digits/1", rows)
    (answer,) = known(archive, suggest([cell]))
    assert (answer.answered_from, answer.value) in {("a", 0.25), ("b", 0.5)}


def test_a_search_is_answered_and_trains_again_only_when_asked_to(archive):
    space = spaces.get("nasbench201")
    agent = agents.get("random", space)
    rng = np.random.default_rng(0)
    archive.studies.create(study("first", budget=6, seed=7))
    archive.studies.create(study("second", budget=6, seed=7))
    archive.studies.create(study("third", budget=6, seed=7))

    def search(name, **how):
        """Search, train waiting proposals, and return the number of trainings."""
        trained = 0
        for _ in loop.run(archive, archive.studies.get(name), agent, version="1", pause=0, **how):
            while claim := archive.proposals.claim("w", study=name):
                value = float(rng.random())
                archive.proposals.complete(
                    claim.id, claim.token, Result(value, {"accuracy": value})
                )
                trained += 1

        return trained

    assert search("first") == 6
    assert search("second") == 0
    assert search("third", retrain=True) == 6
    values = {
        name: [one.value for one in archive.studies.evaluations(name)]
        for name in ("first", "second", "third")
    }
    assert values["first"] == values["second"] != values["third"]
    assert [archive.answers.count(name) for name in values] == [0, 6, 0]
