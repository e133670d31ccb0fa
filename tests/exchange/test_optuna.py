"""Studies of Optuna: every finished trial once."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import optuna
import pytest

from archive import spaces
from archive.agents.encodings.decisions import decisions_of, from_choices
from archive.api import Archive
from archive.architecture import codec
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.exchange.importers import optuna as load_optuna
from archive.exchange.importers.optuna import import_study, open_study
from archive.store.records import State, Study
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
        assert import_study(archive, found, WANTED, read) == {"evaluated": 3, "failed": 2, "left_out": 1}
    evaluations = archive.studies.evaluations("mine")
    assert [each.value for each in evaluations] == [0.5, 0.5 + 3 / 16, 0.75]
    proposals = archive.proposals.list("mine")
    assert [each.state for each in proposals] == [State(s) for s in "COMPLETE FAILED FAILED COMPLETE COMPLETE".split()]
    assert "pruned by Optuna after step 2" in proposals[1].reason
    for trial, proposal in zip(found.trials, proposals, strict=False):
        ops = [trial.params[f"edge {edge}"] for edge in EDGES]
        a, b, c, d, e, f = ops
        assert proposal.architecture_key == codec.from_nasbench201(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|").key
        assert proposal.hyperparameters == {"rate": trial.params["rate"]}
    first = evaluations[0]
    assert first.metrics == {"accuracy": 0.5, "flops": 12.5}
    assert first.curve["epoch"] == [0, 1, 2]
    assert first.curve["accuracy"] == list(found.trials[0].intermediate_values.values())
    assert first.agent.startswith("optuna-")
    study = archive.studies.get("mine")
    assert (study.direction, study.budget) == ("maximise", 6)


class Counting:
    """A connection that counts its transactions."""

    def __init__(self, connection):
        self._connection, self.transactions = connection, 0

    def read(self, work, **how):
        self.transactions += 1
        return self._connection.read(work, **how)

    def write(self, work, **how):
        self.transactions += 1
        return self._connection.write(work, **how)


@pytest.fixture
def long(url):
    """A study of sixty trials."""
    study = optuna.create_study(storage=url, study_name="theirs", direction="maximize")
    for at, network in enumerate(cells(60)):
        attributes = {"architecture": codec.to_nasbench201(network)}
        study.add_trial(optuna.trial.create_trial(value=at / 60, user_attrs=attributes))
    return open_study(f"{url}#theirs")


def by_attribute(parameters, attributes):
    return codec.from_nasbench201(attributes["architecture"]), parameters


def test_the_transactions_of_an_import_do_not_grow_with_every_trial(connection, long):
    counting = Counting(connection)
    assert import_study(Archive(counting), long, WANTED, by_attribute)["evaluated"] == 60
    assert counting.transactions < 20
    assert [each.value for each in Archive(connection).studies.evaluations("mine")] == [at / 60 for at in range(60)]


@pytest.mark.parametrize("batch", [1, 25])
def test_an_import_whose_acknowledgements_are_lost_adds_every_trial_once(connection, long, monkeypatch, batch):
    monkeypatch.setattr(load_optuna, "BATCH", batch)
    import_study(Archive(Forgetful(connection)), long, WANTED, by_attribute)
    assert [each.value for each in Archive(connection).studies.evaluations("mine")] == [at / 60 for at in range(60)]


def test_two_imports_at_once_add_every_trial_once(archive, open_connection, long, monkeypatch):
    monkeypatch.setattr(load_optuna, "BATCH", 7)
    others = [Archive(open_connection()) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for counts in pool.map(lambda other: import_study(other, long, WANTED, by_attribute), others):
            assert counts["evaluated"] == 60
    assert sorted(each.value for each in archive.studies.evaluations("mine")) == [at / 60 for at in range(60)]


def test_a_study_without_room_says_so(archive, long, monkeypatch):
    archive.studies.create(replace(WANTED, budget=100))
    propose(archive, cells(70)[:50], "mine", task="digits", protocol="digits/own", space_config=SPACE.config)
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
def test_trials_of_another_storage_are_not_taken_for_those_of_the_first(archive, long, tmp_path):
    import_study(archive, long, WANTED, by_attribute)
    other = optuna.create_study(storage=f"sqlite:///{tmp_path}/other.db", study_name="theirs", direction="maximize")
    for trial in long.trials:
        other.add_trial(optuna.trial.create_trial(value=trial.value / 2, user_attrs=trial.user_attrs))
    with pytest.raises(StudyConflictError, match=r"optuna/theirs/1 has the value 0\.01.* another name with --study"):
        import_study(archive, other, WANTED, by_attribute)
    assert import_study(archive, other, replace(WANTED, name="second"), by_attribute)["evaluated"] == 60
    assert [each.value for each in archive.studies.evaluations("second")] == [at / 120 for at in range(60)]


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
        archive, open_study(f"{url}#theirs"), WANTED, lambda p, a: (codec.from_json(a.get("architecture", "")), p)
    )
    assert counts == {"evaluated": 2, "failed": 0, "left_out": 1}
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
    with pytest.raises(UsageError, match=r"trial 0 holds no architecture: 'edge 0-1' must be one of .*, got None"):
        import_study(archive, found, WANTED, lambda p, a: read({"rate": 1}, a))
    assert archive.studies.names() == []
    import_study(archive, found, WANTED, read)
    with pytest.raises(StudyConflictError):
        import_study(archive, found, Study("mine", "mnist", "digits/own", "nasbench201", "accuracy"), read)
    several = optuna.create_study(storage=url, study_name="several", directions=["maximize", "minimize"])
    with pytest.raises(UsageError, match="2 objectives"):
        import_study(archive, several, WANTED, read)
