"""Studies of Optuna: every finished trial once."""

from __future__ import annotations

import json
import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import optuna
import pytest

from archive import spaces
from archive.agents.encodings import decisions_of, from_choices
from archive.api import Archive
from archive.architecture import codec
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.exchange.dump import dump
from archive.exchange.importers import additions as importer_additions
from archive.exchange.importers.optuna import import_study, objective_names, open_study
from archive.exchange.importers.optuna import trials as optuna_trials
from archive.exchange.load import verify
from archive.store.ranking import pareto_front
from archive.store.records import Objective, State, Study
from tests.support.stores import Forgetful, cells, propose

EDGES = ("0-1", "0-2", "1-2", "0-3", "1-3", "2-3")
OPERATIONS = ("none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3", "skip_connect")
SPACE = spaces.get("nasbench201")
WANTED = Study("mine", "digits", "digits/own", "nasbench201", "accuracy", space_config=SPACE.config)


def read(parameters, attributes):
    return from_choices(decisions_of(SPACE, "tpe"), parameters)


@pytest.fixture
def url(tmp_path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def trials(url):
    """A user's study: trials that ended in every way, and one that still runs."""
    study = optuna.create_study(storage=url, study_name="theirs", direction="maximize")

    def objective(trial):
        for edge in EDGES:
            trial.suggest_categorical(f"edge {edge}", OPERATIONS)

        trial.set_user_attr("flops", 12.5)
        trial.set_user_attr("note", "by hand")
        for step in range(3):
            trial.report(0.1 * step + trial.suggest_float("rate", 0, 1), step)

        if trial.number == 1:
            raise optuna.TrialPruned

        if trial.number == 2:
            raise ValueError("diverged")

        return 0.5 + trial.number / 16

    study.optimize(objective, n_trials=5, catch=ValueError)
    study.ask()
    return study


def test_every_finished_trial_is_there_once(archive, url, trials):
    found = open_study(f"{url}#theirs")
    for _ in range(2):
        assert import_study(archive, found, WANTED, read) == {
            "evaluated": 3,
            "pruned": 1,
            "failed": 1,
            "left_out": 1,
        }

    evaluations = archive.studies.evaluations("mine")
    reported = found.trials[1].intermediate_values
    assert [each.value for each in evaluations] == [0.5, reported[2], 0.5 + 3 / 16, 0.75]
    proposals = archive.proposals.list("mine")
    assert [each.state for each in proposals] == [
        State(s) for s in ("COMPLETE PRUNED FAILED COMPLETE COMPLETE").split()
    ]
    pruned = evaluations[1]
    assert (pruned.partial, pruned.epochs) == (True, 3)
    assert pruned.curve == {"epoch": [0, 1, 2], "accuracy": [*reported.values()]}
    for trial, proposal in zip(found.trials, proposals, strict=False):
        ops = [trial.params[f"edge {edge}"] for edge in EDGES]
        a, b, c, d, e, f = ops
        assert (
            proposal.architecture_key
            == codec.from_nasbench201(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|").key
        )
        assert proposal.hyperparameters == {"rate": trial.params["rate"]}
        assert [proposal.created, proposal.started, proposal.finished] == [
            round(1000 * time.timestamp())
            for time in (trial.datetime_start, trial.datetime_start, trial.datetime_complete)
        ]

    first = evaluations[0]
    assert first.seconds == found.trials[0].duration.total_seconds()
    assert environment(archive, first.id) == {"optuna": 0, "user_attributes": {"note": "by hand"}}
    assert {each.provenance["source"] for each in evaluations} == {"Optuna study theirs"}
    assert first.metrics == {"accuracy": 0.5, "flops": 12.5}
    assert first.curve["epoch"] == [0, 1, 2]
    assert first.curve["accuracy"] == list(found.trials[0].intermediate_values.values())
    assert first.agent.startswith("optuna-")
    study = archive.studies.get("mine")
    assert (study.direction, study.budget) == ("maximise", 6)


class Counting:
    """A connection that counts its transactions."""

    def __init__(self, connection):
        self._connection = connection
        self.transactions = 0

    def read(self, work, **how):
        self.transactions += 1
        return self._connection.read(work, **how)

    def write(self, work, **how):
        self.transactions += 1
        return self._connection.write(work, **how)


@pytest.fixture
def long():
    """A study of sixty trials."""
    study = optuna.create_study(study_name="theirs", direction="maximize")
    for at, network in enumerate(cells(60)):
        attributes = {"architecture": codec.to_nasbench201(network)}
        study.add_trial(optuna.trial.create_trial(value=at / 60, user_attrs=attributes))

    return study


def environment(archive, id_):
    """Return the environment of an evaluation."""
    rows = archive.query("MATCH (e:Evaluation {id: $id}) RETURN e.environment", {"id": id_}).rows
    return json.loads(rows[0][0])


def by_attribute(parameters, attributes):
    return codec.from_nasbench201(attributes["architecture"]), parameters


def test_the_transactions_of_an_import_do_not_grow_with_every_trial(connection, long):
    counting = Counting(connection)
    assert import_study(Archive(counting), long, WANTED, by_attribute)["evaluated"] == 60
    assert counting.transactions < 20
    assert [each.value for each in Archive(connection).studies.evaluations("mine")] == [
        at / 60 for at in range(60)
    ]


@pytest.mark.parametrize("batch", [1, 25])
def test_an_import_whose_acknowledgements_are_lost_adds_every_trial_once(
    connection, long, monkeypatch, batch
):
    monkeypatch.setattr(importer_additions, "BATCH", batch)
    import_study(Archive(Forgetful(connection)), long, WANTED, by_attribute)
    assert [each.value for each in Archive(connection).studies.evaluations("mine")] == [
        at / 60 for at in range(60)
    ]


def test_two_imports_at_once_add_every_trial_once(archive, open_connection, long, monkeypatch):
    monkeypatch.setattr(importer_additions, "BATCH", 7)
    others = [Archive(open_connection()) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for counts in pool.map(
            lambda other: import_study(other, long, WANTED, by_attribute), others
        ):
            assert counts["evaluated"] == 60

    assert sorted(each.value for each in archive.studies.evaluations("mine")) == [
        at / 60 for at in range(60)
    ]


def test_a_study_without_room_says_so(archive, long, monkeypatch):
    archive.studies.create(replace(WANTED, budget=100))
    propose(
        archive,
        cells(70)[:50],
        "mine",
        task="digits",
        protocol="digits/own",
        space_config=SPACE.config,
    )
    with pytest.raises(UsageError, match="'mine' has no room for 10 trials"):
        import_study(archive, long, WANTED, by_attribute)


def test_trials_that_finish_later_come_with_the_next_import(archive, url, trials):
    import_study(archive, open_study(f"{url}#theirs"), WANTED, read)
    trials.add_trial(
        optuna.trial.create_trial(
            params=trials.trials[0].params, distributions=trials.trials[0].distributions, value=0.25
        )
    )
    counts = import_study(archive, open_study(f"{url}#theirs"), WANTED, read)
    assert counts["evaluated"] == 4
    # The same network is evaluated again.
    evaluations = archive.studies.evaluations("mine")
    assert [each.value for each in evaluations][-1] == 0.25
    assert evaluations[0].architecture.key == evaluations[-1].architecture.key
    archive.studies.create(Study("second", "digits", "digits/own", "nasbench201", "accuracy"))
    assert archive.studies.warm_start("second", ["mine"]) == ["mine"]


@pytest.mark.every_server
def test_trials_of_another_storage_are_not_taken_for_those_of_the_first(archive, long):
    import_study(archive, long, WANTED, by_attribute)
    other = optuna.create_study(study_name="theirs", direction="maximize")
    for trial in long.trials:
        other.add_trial(
            optuna.trial.create_trial(value=trial.value / 2, user_attrs=trial.user_attrs)
        )

    with pytest.raises(
        StudyConflictError,
        match=r"optuna/theirs/1 has the value 0\.01.* another "
        r"name with --study",
    ):
        import_study(archive, other, WANTED, by_attribute)

    assert (
        import_study(archive, other, replace(WANTED, name="second"), by_attribute)["evaluated"]
        == 60
    )
    assert [each.value for each in archive.studies.evaluations("second")] == [
        at / 120 for at in range(60)
    ]


def test_architectures_as_attributes_and_values_to_minimise(archive, url):
    study = optuna.create_study(storage=url, study_name="theirs")
    for value, network in zip((0.5, 0.25), cells(2), strict=True):
        trial = study.ask()
        trial.suggest_int("batch", 8, 8)
        trial.set_user_attr("architecture", codec.to_json(network))
        study.tell(trial, value)

    crashed = study.ask()
    study.tell(crashed, state=optuna.trial.TrialState.FAIL)
    counts = import_study(
        archive,
        open_study(f"{url}#theirs"),
        WANTED,
        lambda p, a: (codec.from_json(a.get("architecture", "")), p),
    )
    assert counts == {"evaluated": 2, "pruned": 0, "failed": 0, "left_out": 1}
    assert archive.studies.get("mine").direction == "minimise"
    assert archive.studies.snapshot("mine").incumbent.value == 0.25
    assert archive.proposals.list("mine")[0].hyperparameters == {"batch": 8}


def test_a_number_sign_in_the_name_of_a_study_or_a_file(tmp_path):
    urls = [f"sqlite:///{tmp_path / name}" for name in ("plain.db", "a#b.db")]
    for url in urls:
        optuna.create_study(storage=url, study_name="lr#2")
        optuna.create_study(storage=url, study_name="2")
        assert open_study(f"{url}#lr#2").study_name == "lr#2"
        assert open_study(f"{url}#2").study_name == "2"

    with pytest.raises(UsageError, match=r"there is no file .*none.db#lr$"):
        open_study(f"sqlite:///{tmp_path}/none.db#lr#2")


def test_mistakes(archive, url, trials, tmp_path):
    with pytest.raises(UsageError, match="URL#STUDY, got 'theirs'"):
        open_study("theirs")

    with pytest.raises(UsageError, match="no file"):
        open_study(f"sqlite:///{tmp_path}/none.db#theirs")

    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("no database at all, but a text of some length" * 10)
    with pytest.raises(UsageError, match="cannot read the storage"):
        open_study(f"sqlite:///{tmp_path}/text.db#theirs")

    another = sqlite3.connect(tmp_path / "another.db")
    another.execute("CREATE TABLE mine (number)")
    with pytest.raises(UsageError, match=r"cannot read the storage sqlite:.*another.db"):
        open_study(f"sqlite:///{tmp_path}/another.db#theirs")

    assert another.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    another.close()
    with pytest.raises(UnknownNameError, match="did you mean theirs"):
        open_study(f"{url}#their")

    with pytest.raises(UsageError) as refused:
        open_study("mysql://me:hunter2@nowhere.invalid/db#theirs")

    assert "hunter2" not in str(refused.value)
    found = open_study(f"{url}#theirs")
    with pytest.raises(
        UsageError,
        match=r"trial 0 holds no architecture: 'edge 0-1' must be one "
        r"of .*, got None",
    ):
        import_study(archive, found, WANTED, lambda p, a: read({"rate": 1}, a))

    assert archive.studies.names() == []
    import_study(archive, found, WANTED, read)
    with pytest.raises(StudyConflictError):
        import_study(
            archive, found, Study("mine", "mnist", "digits/own", "nasbench201", "accuracy"), read
        )

    several = optuna.create_study(
        storage=url, study_name="several", directions=["maximize", "minimize"]
    )
    with pytest.raises(UsageError, match="'several' has 2 objectives, got 1 name: accuracy"):
        import_study(archive, several, WANTED, read)

    five = optuna.create_study(storage=url, study_name="five", directions=["minimize"] * 5)
    names = objective_names(archive, five, "five")
    with pytest.raises(UsageError, match="at most 4 objectives, got 5: value_0, value_1"):
        import_study(
            archive,
            five,
            replace(WANTED, objective=names[0], further=tuple(map(Objective, names[1:]))),
            read,
        )


def imported(archive, trials, name="made", **settings):
    """Import trials, each for another network, as a study, twice; returns the lines about what is
    left out."""
    source = optuna.create_study(study_name=name, **settings)
    for network, trial in zip(cells(len(trials)), trials, strict=True):
        state = trial.pop("state", optuna.trial.TrialState.COMPLETE)
        attributes = {"architecture": codec.to_nasbench201(network), **trial.pop("user_attrs", {})}
        made = optuna.trial.create_trial(
            state=state, user_attrs=attributes, **trial.pop("values", {})
        )
        for at, value in trial.items():
            setattr(made, at, value)

        source.add_trial(made)

    first, *further = map(Objective, objective_names(archive, source, name))
    lines = []
    wanted = replace(WANTED, name=name, objective=first.name, further=tuple(further))
    for _ in range(2):
        lines.clear()
        import_study(archive, source, wanted, by_attribute, lines.append)

    return lines


PRUNED = optuna.trial.TrialState.PRUNED
FAILED = optuna.trial.TrialState.FAIL


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_no_infinite_and_no_infeasible_value_is_the_best(archive, direction):
    listed = [
        {"values": {"value": value, "system_attrs": {"constraints": bounds}}}
        for value, bounds in (
            (0.5, [2.0, -1.0]), (0.4, [0.0, -0.0]), (math.inf, [-1.0, -1.0]), (-math.inf, [-1.0]), (0.9, [math.inf]),
            (0.8, [1e-300]), (0.3, [math.nan]), (0.45, []), (0.42, [-1.0] * 3),
        )
    ]  # fmt: skip
    listed += [{"values": {"value": 0.99}}, {"values": {"value": 0.01}}]
    imported(archive, listed, direction=direction)
    feasible = {1: 0.4, 7: 0.45, 8: 0.42}
    best = (max if direction == "maximize" else min)(feasible, key=feasible.get)
    snapshot = archive.studies.snapshot("made")
    assert snapshot.incumbent.number == best
    assert {view.number for view in snapshot.best(20)} == feasible.keys()
    assert snapshot.proposals[0].metrics == {
        "value": 0.5, "constraint_0": 2.0, "constraint_1": -1.0, "constraint_violation": 2.0
    }  # fmt: skip
    reasons = [proposal.reason for proposal in archive.proposals.list("made")]
    assert [reasons[2], reasons[3]] == ["the value is inf", "the value is -inf"]
    assert archive.studies.list()[0].best == feasible[best]


def test_named_constraints_may_be_left_out(archive):
    system = [{"constraints:size": 0.5}, {"constraints:size": -0.5, "constraints:depth": 0.0}, {}]
    imported(
        archive,
        [{"values": {"value": 1.0 - at, "system_attrs": one}} for at, one in enumerate(system)],
    )
    snapshot = archive.studies.snapshot("made")
    assert [view.metrics["constraint_violation"] for view in snapshot.proposals] == [0.5, 0.0, 0.0]
    # The direction is minimise.
    assert snapshot.incumbent.number == 2


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_several_objectives_are_those_of_the_archive(archive):
    source = optuna.create_study(study_name="made", directions=["maximize", "minimize"])
    assert objective_names(archive, source, "made") == ["value_0", "value_1"]
    source.set_metric_names(["accuracy", "params"])
    values = [(0.9, 100.0), (0.8, 50.0), (0.7, 60.0), (0.95, math.inf), (math.nan, 1.0)]
    for pair, network in zip(values, cells(5), strict=True):
        made = optuna.trial.create_trial(
            values=[1.0, 1.0],
            user_attrs={"architecture": codec.to_nasbench201(network), "params": 7.0},
        )
        made._values = list(pair)
        source._storage.create_new_trial(source._study_id, template_trial=made)

    names = objective_names(archive, source, "made")
    wanted = replace(WANTED, name="made", objective=names[0], further=(Objective(names[1]),))
    for _ in range(2):
        counts = import_study(archive, source, wanted, by_attribute)
        assert counts == {"evaluated": 3, "pruned": 0, "failed": 2, "left_out": 0}

    stored = archive.studies.get("made")
    assert stored.objectives == (Objective("accuracy", "maximise"), Objective("params", "minimise"))
    assert [view.number for view in pareto_front(archive.studies.snapshot("made"))] == [0, 1]
    # A user attribute with the name of an objective is no metric, and not lost.
    assert environment(archive, "made#00000")["user_attributes"] == {"params": 7.0}
    reasons = [proposal.reason for proposal in archive.proposals.list("made")]
    assert reasons[3:] == ["the value of params is inf", "the value of accuracy is nan"]


def test_pruned_trials_have_their_last_finite_value(archive):
    reports = [{0: 0.1, 1: 0.2}, {3: 0.5, 7: math.nan}, {}, {0: math.inf}]
    listed = [{"state": PRUNED, "intermediate_values": reported} for reported in reports]
    imported(archive, [*listed, {"values": {"value": 0.05}}], direction="maximize")
    proposals = archive.proposals.list("made")
    states = [State.PRUNED, State.PRUNED, State.FAILED, State.FAILED, State.COMPLETE]
    assert [proposal.state for proposal in proposals] == states
    assert (
        proposals[2].reason
        == proposals[3].reason
        == ("pruned by Optuna before it reported a value")
    )
    evaluations = archive.studies.evaluations("made")
    assert [(one.value, one.epochs, one.partial) for one in evaluations] == [
        (0.2, 2, True), (0.5, 2, True), (0.05, None, False)
    ]  # fmt: skip
    assert evaluations[1].curve["epoch"] == [3, 7]
    # A whole training is the best, whatever shorter ones have reached.
    assert archive.studies.snapshot("made").incumbent.number == 4


def test_times_that_are_none_and_what_has_no_place_are_said(archive):
    begin = datetime(2026, 3, 1, 12, 0, 0, 250_000)
    ends = [begin + timedelta(seconds=90), begin - timedelta(seconds=3540), None]
    listed = [
        {"values": {"value": 0.5}, "datetime_start": begin, "datetime_complete": end}
        for end in ends[:2]
    ]
    listed += [
        {
            "state": FAILED,
            "datetime_start": begin,
            "datetime_complete": begin,
            "user_attrs": {"note": "x"},
        }
    ]
    lines = imported(archive, listed)
    assert lines == [
        (
            "the clock went back during 1 trial, the first of which is 1: their times and "
            "durations "
            "are left out"
        ),
        "the user attributes of 1 failed trial are left out: only results keep them",
    ]
    assert [one.seconds for one in archive.studies.evaluations("made")] == [90.0, None]
    first, second, _ = archive.proposals.list("made")
    assert (first.started, first.finished - first.started) == (
        round(1000 * begin.timestamp()),
        90_000,
    )
    assert second.started is None
    assert second.finished == second.created
    assert archive.named("cost").rows[0][4] == 90.0


def nested(depth):
    value = "core"
    for _ in range(depth):
        value = {"in": [value]}

    return value


ATTRIBUTES = {
    "text": "ünï\n\x01", "flag": True, "none": None, "list": [1, [2.5, "a"]], "map": {"a": {"b": math.nan}},
    "huge": 10**400, "exact": 2**60 + 1, " blank": 1.5, "": 2.5, "deep": nested(60), "constraint_0": 3.0,
}  # fmt: skip


def test_attributes_of_every_kind_are_kept(archive, tmp_path):
    imported(
        archive, [{"values": {"value": 0.5}, "user_attrs": {**ATTRIBUTES, "rate": 0.25, "n": 3}}]
    )
    (evaluation,) = archive.studies.evaluations("made")
    assert evaluation.metrics == {"value": 0.5, "rate": 0.25, "n": 3.0, "exact": float(2**60 + 1)}
    kept = environment(archive, "made#00000")["user_attributes"]
    assert kept.keys() == ATTRIBUTES.keys()
    assert json.loads(kept.pop("deep")) == ATTRIBUTES["deep"]
    assert kept.pop("map") == {"a": {"b": "nan"}}
    assert kept == {name: value for name, value in ATTRIBUTES.items() if name in kept}
    # An archive with all of them is dumped and loaded.
    dump(archive.connection, tmp_path / "all.gz")
    verify(tmp_path / "all.gz")


def test_attributes_of_the_study_are_in_its_configuration(archive):
    source = optuna.create_study(study_name="made")
    source.set_user_attr("owner", {"name": "ünï"})
    import_study(archive, source, replace(WANTED, name="made"), by_attribute)
    assert archive.studies.get("made").config == {
        "optuna": "made",
        "user_attributes": {"owner": {"name": "ünï"}},
    }


@pytest.mark.filterwarnings("ignore")
def test_constraints_are_found_where_samplers_of_the_installed_release_write_them():
    sampler = optuna.samplers.TPESampler(
        seed=0, constraints_func=lambda trial: (trial.number - 1.0,)
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert optuna_trials.is_constrained(study.trials) == (True, False)
