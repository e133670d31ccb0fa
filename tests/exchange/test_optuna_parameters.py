"""Studies of Optuna as studies on a space of parameters, and back."""

from __future__ import annotations

import math
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import agents, space
from archive.errors import UsageError
from archive.exchange.importers.optuna import find_space, import_study, open_study
from archive.exchange.importers.optuna.parameters import space_of_trials
from archive.exchange.optuna_file import to_optuna
from archive.parameters.domains import Choice, json_text
from archive.parameters.ranges import Integer, Real
from archive.store.records import State, Study
from tests.support import examples


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Optuna warns about options that are no scalars.
        warnings.simplefilter("ignore")
        yield


def objective(trial):
    """A user's function with parameters of every kind, of which some are conditional."""
    kind = trial.suggest_categorical("kind", ["svm", "forest", "net"])
    rate = trial.suggest_float("learning rate", 1e-4, 1e-1, log=True)
    trial.suggest_float("momentum", 0, 1, step=0.1)
    trial.suggest_int("batch", 16, 256, log=True)
    trial.suggest_categorical("lambda", [None, True, 1, "a", [1, 2], {"b": 2.5}])
    if kind == "forest":
        trial.suggest_int("leaves", 2, 32, step=2)
    elif kind == "net":
        for layer in range(trial.suggest_int("depth", 1, 4)):
            trial.suggest_int(f"units_{layer}", 4, 128, log=True)

    if rate > 0.01:
        trial.suggest_float("warmup", 0, 5)

    return rate


def run(function, count=60, name="theirs", **settings):
    study = optuna.create_study(
        study_name=name, sampler=optuna.samplers.RandomSampler(seed=0), **settings
    )
    study.optimize(function, n_trials=count)
    return study


def add(archive, source, name="mine", **settings):
    """Import a study with its parameters; returns the space and the numbers of trials."""
    content = find_space(archive, source, name)
    study = Study(
        name,
        name,
        f"{name}/own",
        "parameters",
        "value",
        space_config=content.search_space.config,
        **settings,
    )
    counts = import_study(archive, source, study, content.read, None, content.renamed)
    return content, counts


def test_distributions_become_parameters_and_trials_their_configurations(archive):
    source = run(objective)
    content, counts = add(archive, source)
    assert counts == {"evaluated": 60, "pruned": 0, "failed": 0, "left_out": 0}
    domains = {parameter.name: parameter.domain for parameter in content.space.parameters}
    assert domains["kind"] == Choice(("svm", "forest", "net"))
    assert domains["learning_rate"] == Real(1e-4, 1e-1, log=True)
    assert domains["momentum"] == Real(0, 1, step=0.1)
    assert domains["batch"] == Integer(16, 256, log=True)
    assert domains["lambda_"] == Choice((None, True, 1, "a", [1, 2], {"b": 2.5}))
    assert domains["leaves"] == Integer(2, 32, step=2)
    conditions = {}
    for parameter in content.space.parameters:
        if parameter.conditions:
            conditions[parameter.name] = parameter.conditions[0].text

    assert conditions == {
        "leaves": "kind == 'forest'",
        "depth": "kind == 'net'",
        "units_0": "kind == 'net'",
        "units_1": "depth >= 2",
        "units_2": "depth >= 3",
        "units_3": "depth >= 4",
        "warmup": "has_warmup",
    }
    lines = list(content.describe())
    assert "'learning rate' is learning_rate, 'lambda' is lambda_" in lines[0]
    assert "units_1 where depth >= 2" in lines[1]
    assert "which trials have warmup: has_warmup" in lines[2]

    views = archive.studies.snapshot("mine").proposals
    for view, trial in zip(views, source.trials, strict=True):
        values = dict(view.configuration)
        assert values.pop("has_warmup") == ("warmup" in trial.params)
        expected = {content.names[name]: value for name, value in trial.params.items()}
        assert values.pop("momentum") == pytest.approx(expected.pop("momentum"))
        assert values == expected
        assert view.value == trial.value

    # Agents continue the study, and results of their own are no trials of another import.
    study = agents.study(archive, "mine", budget=61)
    (trial,) = study.ask("portfolio")
    content.space.check(trial.parameters)
    study.tell(trial, 0.5)


def test_trials_that_finish_later_extend_the_space(archive):
    source = run(lambda trial: trial.suggest_float("x", 0, 1), count=3)
    first, _ = add(archive, source)

    def wider(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        if kind == "a":
            trial.suggest_int("n", 1, 3)

        return trial.suggest_float("x", -1, 2)

    source.optimize(wider, n_trials=12)
    second, counts = add(archive, source)
    assert counts["evaluated"] == 15
    assert second.space["x"].domain == Real(-1, 2)
    # The first trials lack `kind`: nothing but a switch explains it.
    assert second.space["kind"].conditions[0].text == "has_kind"
    assert second.space["n"].conditions[0].text == "kind == 'a'"
    rows = [dict(view.configuration) for view in archive.studies.snapshot("mine").proposals]
    assert rows[0].keys() == {"x", "has_kind"}
    assert (rows[0]["has_kind"], rows[3]["has_kind"]) == (False, True)

    third, _ = add(archive, source)
    assert third.space == second.space != first.space


def test_a_condition_that_later_trials_contradict_is_one_line(archive):
    def conditional(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            trial.suggest_int("n", 1, 3)

        return 1.0

    source = run(conditional, count=10)
    add(archive, source)

    def other(trial):
        trial.suggest_categorical("kind", ["a", "b"])
        trial.suggest_int("n", 1, 3)
        return 1.0

    source.optimize(other, n_trials=10)
    with pytest.raises(UsageError, match="n exists only where kind == 'a'") as refused:
        add(archive, source)

    assert "\n" not in str(refused.value)
    assert add(archive, source, "second")[1]["evaluated"] == 20


def test_ranges_that_change_and_values_outside_of_them_are_kept():
    source = optuna.create_study()
    floats = optuna.distributions.FloatDistribution
    integers = optuna.distributions.IntDistribution
    for number, (x, n) in enumerate([(0.5, 4), (3.0, 20), (2.2, 7)]):
        trial = optuna.trial.create_trial(
            params={"x": x, "n": n},
            distributions={
                "x": floats(0, 1 + number * 2, step=0.5 if number < 2 else None),
                "n": integers(2, 10 * (number + 1), step=2 if number < 2 else 1),
            },
            value=0.0,
        )
        source.add_trial(trial)

    read = space_of_trials(source.trials).space
    assert read["x"].domain == Real(0, 5)
    assert read["n"].domain == Integer(2, 30)
    outside = source.get_trials(deepcopy=False)
    outside[0]._params["x"] = -7.25
    assert space_of_trials(outside).space["x"].domain == Real(-7.25, 5)


def test_wrong_studies_are_one_line(archive):
    empty = optuna.create_study()
    empty.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(UsageError, match="no finished trial has parameters"):
        add(archive, empty)

    mixed = optuna.create_study()
    for distribution, value in (
        (optuna.distributions.FloatDistribution(0, 1), 0.5),
        (optuna.distributions.CategoricalDistribution(["a"]), "a"),
    ):
        mixed.add_trial(
            optuna.trial.create_trial(
                params={"x": value}, distributions={"x": distribution}, value=0.0
            )
        )

    with pytest.raises(UsageError, match="'x' is a number in one trial and a choice in another"):
        add(archive, mixed)

    strange = run(lambda trial: float(trial.suggest_categorical("x", [object]) is object), count=1)
    with pytest.raises(UsageError, match=r"the parameter 'x' has the choice .* no JSON value"):
        add(archive, strange)

    huge = run(lambda trial: trial.suggest_int("x", 0, 2**60), count=1)
    with pytest.raises(UsageError, match=r"'x' an integer lies within 2\^53"):
        add(archive, huge)

    assert archive.studies.names() == []


def test_a_requested_space_must_have_the_trials(archive):
    source = run(lambda trial: trial.suggest_float("x", 0, 1), count=5)
    wide = space.Space(x=space.real(-1, 1), y=space.integer(1, 3, default=2))
    assert find_space(archive, source, "mine", wide).values({"x": 0.5}) == {"x": 0.5, "y": 2}
    with pytest.raises(UsageError, match=r"trial \d does not fit the space of the study: x must"):
        find_space(archive, source, "mine", space.Space(x=space.real(5, 6)))


def test_trials_without_all_parameters_are_pruned_or_failed_ones(archive):
    def ends(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            raise optuna.TrialPruned

        trial.report(x, 0)
        y = trial.suggest_float("y", 0, 1)
        if trial.number == 2:
            raise optuna.TrialPruned

        return y

    content, counts = add(archive, run(ends, count=6))
    # A parameter that all complete trials have exists always.
    assert not content.space["y"].conditions
    assert counts == {"evaluated": 4, "pruned": 1, "failed": 0, "left_out": 1}
    states = [proposal.state for proposal in archive.proposals.list("mine")]
    assert states.count(State.PRUNED) == 1


@given(data=st.data())
@examples(0.5)
def test_every_trial_of_any_study_fits_its_space(data):
    """Parameters appear for any reason; the space has each trial, with its parameters alone."""
    source = optuna.create_study()
    distributions = {
        "n": optuna.distributions.IntDistribution(1, 4),
        "c": optuna.distributions.CategoricalDistribution(["a", "it's", '"', None, 2]),
        "x y": optuna.distributions.FloatDistribution(0, 1, step=0.25),
        "x_y": optuna.distributions.FloatDistribution(1e-3, 1, log=True),
        "é": optuna.distributions.CategoricalDistribution([True, False]),
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    for _ in range(data.draw(st.integers(1, 8))):
        names = data.draw(st.sets(st.sampled_from(sorted(distributions)), min_size=1))
        params = {}
        for name in sorted(names):
            distribution = distributions[name]
            if hasattr(distribution, "choices"):
                params[name] = distribution.choices[int(rng.integers(len(distribution.choices)))]
            else:
                params[name] = distribution.low

        used = {name: distributions[name] for name in params}
        source.add_trial(optuna.trial.create_trial(params=params, distributions=used, value=0.0))

    content = space_of_trials(source.trials)
    assert len(set(content.names.values())) == len(content.names)
    for trial in source.trials:
        values = content.values(trial.params)
        for switch in content.switches:
            values.pop(switch)

        expected = {content.names[name]: value for name, value in trial.params.items()}
        assert {name: json_text(value) for name, value in values.items()} == {
            name: json_text(value) for name, value in expected.items()
        }


SEARCH = space.Space(
    depth=space.integer(1, 4),
    width=space.integer(8, 64, log=True),
    rate=space.real(1e-4, 1e-1, log=True, prior=1e-3),
    dropout=space.real(0, 0.5, step=0.1, when="depth >= 2"),
    size=space.ordinal(["s", "m", "l"], default="m"),
    odd=[None, True, 1, "1", [1, 2], {"a": 1}],
    seed=3,
    optimiser=space.group(
        {"kind": ["sgd", "adam"], "beta": space.real(0, 1, when="kind == 'adam'")}
    ),
    stage=space.repeat({"op": ["conv", "skip"]}, "depth"),
    constraints=["width * depth <= 128"],
)


def test_a_study_goes_to_optuna_and_back(archive, tmp_path):
    study = agents.study(
        archive, "ours", SEARCH, objective="loss:minimise", constraints="params<=100", seed=1
    )
    trials = study.ask("random", 12)
    for number, trial in enumerate(trials[:9]):
        study.report(trial, 1, {"loss": number / 5})
        study.report(trial, 2, {"loss": number / 10})
        study.tell(trial, {"loss": number / 10, "params": 96.0 + number})

    study.tell(trials[9], math.nan)
    made = to_optuna(archive, "ours")
    assert (made.trials, made.left_out) == (10, 2)
    path = tmp_path / "ours.db"
    path.write_bytes(made.content)
    loaded = open_study(f"sqlite:///{path}#ours")
    assert loaded.metric_names == ["loss"]
    assert loaded.best_trial.number == 0
    assert loaded.trials[3].user_attrs == {"params": 99.0}
    assert [trial.system_attrs["constraints"] for trial in loaded.trials[3:6]] == [
        [-1.0], [0.0], [1.0],
    ]  # fmt: skip
    assert loaded.trials[9].system_attrs["fail_reason"] == "the value is nan"
    for trial in loaded.trials:
        # TPE and the importances of Optuna read the distributions.
        assert trial.params.keys() == trial.distributions.keys()
        assert ("dropout" in trial.params) == (trial.params["depth"] >= 2)

    content = find_space(archive, loaded, "theirs")
    assert content.space == SEARCH
    assert list(content.describe()) == []
    target = Study(
        "theirs", "theirs", "theirs/own", "parameters", "loss", space_config=SEARCH.json()
    )
    counts = import_study(archive, loaded, target, content.read)
    assert counts == {"evaluated": 9, "pruned": 0, "failed": 1, "left_out": 0}
    ours = archive.studies.snapshot("ours").proposals
    theirs = archive.studies.snapshot("theirs").proposals
    for before, after in zip(ours, theirs, strict=False):
        assert after.configuration == before.configuration
        assert (after.state, after.value) == (before.state, before.value)

    first, second = (archive.studies.evaluations(name) for name in ("ours", "theirs"))
    assert [one.architecture.key for one in first] == [one.architecture.key for one in second]
    assert [one.curve["loss"] for one in first] == [one.curve["loss"] for one in second]
    config = archive.studies.get("theirs").config
    assert config == {"optuna": "ours"}


def test_an_imported_study_keeps_its_names_in_an_export(archive, tmp_path):
    source = run(objective, count=12)
    add(archive, source)
    path = tmp_path / "mine.db"
    path.write_bytes(to_optuna(archive, "mine").content)
    back = open_study(f"sqlite:///{path}#mine")
    for before, after in zip(source.trials, back.trials, strict=True):
        params = dict(after.params)
        assert params.pop("has_warmup", False) == ("warmup" in before.params)
        assert params.keys() == before.params.keys()
        assert params["learning rate"] == before.params["learning rate"]
        assert after.value == before.value

    assert find_space(archive, back, "again").space == find_space(archive, source, "mine").space


def test_only_parameters_go_to_optuna(archive):
    agents.study(archive, "cells", "nasbench201")
    with pytest.raises(UsageError, match="'cells' is on the space nasbench201: export csv"):
        to_optuna(archive, "cells")
