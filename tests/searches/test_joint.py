"""Searches of networks with parameters beside them, trained by the built-in recipe."""

from __future__ import annotations

import pytest

import archive as package
from archive import space
from archive.errors import StudyConflictError, UsageError
from archive.store.records import Study
from tests.support.commands import serving, table

KNOBS = space.Space(
    learning_rate=space.real(1e-3, 1e-1, log=True),
    weight_decay=space.real(1e-6, 1e-2, log=True),
    batch_size=[64, 128],
)


def search(archive, **arguments):
    given = {"task": "diabetes", "space": "mlp", "study": "mine", "trainers": 0, **arguments}
    return package.search(archive=archive, **given)


SMALL = {"task": "digits", "protocol": "digits/small"}
"""Trainings of 28 steps."""


def test_a_training_uses_the_parameters_and_records_them(archive):
    with serving(archive):
        result = search(archive, agent="evolution", parameters=KNOBS, budget=2, **SMALL)

    assert result.evaluations == 2
    assert result.best.configuration.keys() == set(KNOBS.names)
    for evaluation in archive.studies.evaluations("mine"):
        assert evaluation.hyperparameters.keys() == set(KNOBS.names)

    # The same study goes on with a part of its parameters, the others as in its best pair.
    with serving(archive):
        again = search(
            archive, task=None, space=None, only="learning_rate", fix={"batch_size": 64}, budget=3
        )

    last = archive.studies.evaluations("mine")[-1].hyperparameters
    assert again.evaluations == 3
    assert last["batch_size"] == 64
    assert last["weight_decay"] == result.best.configuration["weight_decay"]


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        (
            space.Space(lr=space.real(0, 1)),
            {},
            "does not read the parameter lr, only learning_rate",
        ),
        (space.Space(weight_decay=["a"]), {}, "weight_decay must be >= 0, got 'a'"),
        (space.Space(learning_rate=space.real(0, 1)), {}, "learning_rate must be > 0, got 0.0"),
        (space.Space(batch_size=space.real(1, 8.5)), {}, "batch_size must be a whole number"),
        (KNOBS, {"space": KNOBS, "recipe": "mine"}, "has parameters already"),
        (KNOBS, {"agent": "nasbot"}, "nasbot searches networks alone"),
    ],
)
def test_what_nothing_reads_is_refused_before_a_study_is_made(
    archive, parameters, options, message
):
    with pytest.raises(UsageError, match=message):
        search(archive, parameters=parameters, **{"agent": "random", **options})

    assert archive.studies.names() == []


def test_a_table_has_no_parameters(archive, tmp_path):
    with pytest.raises(UsageError, match="are read by nothing, leave out --parameters"):
        search(archive, task=table(tmp_path), space=None, agent="random", parameters=KNOBS)


def test_a_study_of_networks_alone_gets_no_parameters(archive):
    archive.studies.create(Study("mine", "diabetes", "diabetes/1", "mlp", "valid_mse", "minimise"))
    with pytest.raises(StudyConflictError, match="exists with no parameters beside its networks"):
        search(archive, agent="random", parameters=KNOBS)
