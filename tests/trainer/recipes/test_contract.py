"""Contract of recipes: each reports, has one result for one seed, stops when told, and resumes.

It runs over the built-in recipe, the examples of the documentation, and those of installed
packages. The examples with large frameworks run with ARCHIVE_TEST_WHOLE=1: importing these takes
longer than all other tests of recipes together.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys

import numpy as np
import pytest

from archive.trainer.recipes.command import CommandRecipe
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.registry import RecipeAccess
from archive.trainer.recipes.run import Cancelled, Outcome, run
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from tests.support import ROOT
from tests.support.networks.nets import TINY_MLP

# Other packages warn of changes to come.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.lasts(10)]

EXAMPLES = ROOT / "docs" / "examples" / "recipes"
FRAMEWORKS = ("lightning_training", "hugging_face")
"""They need `pip install -e '.[frameworks]'`."""
COMMAND = CommandRecipe((sys.executable, str(EXAMPLES / "by_command.py")), data=True)
SOURCES = {
    **RecipeAccess(ROOT / "no-home").sources,
    **{
        name: RecipeSource(name, f"{EXAMPLES / name}.py:fit")
        for name in ("plain_pytorch", "data_parallel", "scikit_mlp", *FRAMEWORKS)
    },
    "by_command": RecipeSource("by_command", "by_command.py", command=COMMAND),
}
DIGITS = registry.DIGITS
PROTOCOL = dataclasses.replace(DIGITS.protocol("digits/1"), epochs=3)


def trial_of(seed: int = 1, **options) -> TrialContext:
    return TrialContext(TINY_MLP, DIGITS, PROTOCOL, seed=seed, **options)


@functools.cache
def fit_of(name: str):
    return SOURCES[name].load()


@functools.cache
def whole(name: str, seed: int = 1) -> Outcome:
    return run(fit_of(name), trial_of(seed))


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are equal in all but time."""
    curves = [
        {key: column for key, column in each.curve.items() if key != "seconds"}
        for each in (one, other)
    ]
    return (
        curves[0].keys() == curves[1].keys()
        and all(np.array_equal(curves[0][key], curves[1][key], equal_nan=True) for key in curves[0])
        and (one.value, one.metrics, one.ended) == (other.value, other.metrics, other.ended)
        and one.weights.keys() == other.weights.keys()
        and all(np.array_equal(one.weights[key], other.weights[key]) for key in one.weights)
    )


def case(name: str):
    return pytest.param(name, marks=pytest.mark.whole) if name in FRAMEWORKS else name


every_recipe = pytest.mark.parametrize("name", [case(name) for name in SOURCES])


@pytest.mark.parametrize(
    "path",
    [
        *EXAMPLES.glob("*.py"),
        *ROOT.glob("docs/examples/archive-example/*/recipe.py"),
        *ROOT.glob("trainer/fit/*.py"),
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_recipe_needs_nothing_but_the_public_context(path):
    """The default recipe has no privilege, and examples use members that exist."""
    members = {name for name in dir(trial_of()) if not name.startswith("_")}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value).rpartition(".")[2] == "trial"
        ):
            assert node.attr in members, f"line {node.lineno}: trial.{node.attr}"


@every_recipe
def test_a_recipe_reports_each_epoch_and_the_objective(name):
    outcome = whole(name)
    assert (outcome.epochs, outcome.ended) == (PROTOCOL.epochs, "epochs")
    assert outcome.curve["epoch"] == [1.0, 2.0, 3.0]
    assert outcome.metrics["valid_accuracy"] == outcome.value
    # Guessing is right once in ten.
    assert 0.2 < outcome.value <= 1.0
    assert outcome.weights


@every_recipe
def test_one_seed_has_one_result(name):
    assert same(run(fit_of(name), trial_of()), whole(name))
    assert not same(run(fit_of(name), trial_of(seed=2)), whole(name))


@every_recipe
def test_an_interrupted_trial_saves_and_resumes_to_the_same_result(name, tmp_path):
    path = tmp_path / "a.checkpoint"
    rows = []

    def on_report(row, resumed):
        rows.append((row["epoch"], resumed))
        if len(rows) == 1:
            first.cancel()

    first = trial_of(checkpoint=path, checkpoint_seconds=1e9, on_report=on_report)
    try:
        finished = run(fit_of(name), first)
    except Cancelled as left:
        assert left.saved and left.epoch < PROTOCOL.epochs
    else:
        # A program learns of it beside its training, and may have ended by then.
        assert SOURCES[name].command and same(finished, whole(name))
        return

    before = [epoch for epoch, _ in rows]
    resumed = run(
        fit_of(name),
        trial_of(checkpoint=path, on_report=lambda row, old: rows.append((row["epoch"], old))),
    )
    assert rows[len(before) :] == [(float(at), at <= len(before)) for at in (1, 2, 3)]
    assert resumed.resumed == 1
    assert same(resumed, whole(name))


@every_recipe
def test_a_trial_pauses_at_a_rung_and_continues_to_the_same_result(name, tmp_path):
    path = tmp_path / "a.checkpoint"
    rung = run(fit_of(name), trial_of(epochs=1, checkpoint=path, checkpoint_seconds=1e9))
    assert (rung.ended, rung.epochs) == ("rung", 1)
    assert rung.curve["valid_accuracy"] == whole(name).curve["valid_accuracy"][:1]
    promoted = run(fit_of(name), trial_of(checkpoint=path))
    assert promoted.resumed == 1
    assert same(promoted, whole(name))
