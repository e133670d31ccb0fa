"""Rungs in real trainings, on each server: a promoted trial continues from its pause, also after
kills."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from archive.agents import provenance, study_setup
from archive.agents.replay import StudyReplay
from archive.errors import StudyConflictError
from archive.rungs import Rungs
from archive.store.records import State, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry
from tests.support import repeatable, serve, wait_until
from tests.support.networks.nets import TINY_MLP, net

RUNGS = Rungs((2, 6, 40), 3)
NETS = [
    TINY_MLP,
    net("mlp", "relu/32 linear"),
    net("mlp", "elu/12 tanh/8 linear"),
    *(net("mlp", f"relu/{width} linear") for width in (2, 4, 8, 12, 16, 24)),
]


@dataclass
class Suggestion:
    architecture: object


def propose(archive, architectures, name="study", rungs=RUNGS):
    serve.know(serve.LONGER)
    known = registry.get("longer")
    config = {} if rungs is None else {"rungs": rungs.as_config()}
    archive.studies.create(
        Study(
            name,
            "longer",
            "longer/1",
            "mlp",
            known.objective,
            known.direction,
            budget=100,
            seed=3,
            config=config,
        )
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, [Suggestion(each) for each in architectures])


@pytest.fixture
def run(archive, tmp_path):
    """Lets a daemon work until there is nothing to do."""
    given = {"threads": 1, "device": "cpu", "idle_seconds": 0.3}
    return lambda **options: Trainer(
        archive, TrainerOptions(**given, **options), home=tmp_path / "trainer"
    ).run()


def found(archive, name="study"):
    return {one.architecture.key: one for one in archive.studies.evaluations(name)}


def check_equal_to_those_that_never_paused(archive):
    """What a study with rungs found is the beginning of what one without found, to the last bit."""
    paused = found(archive)
    whole = found(archive, "whole")
    assert paused.keys() == whole.keys()
    for key, one in paused.items():
        curve = {name: values for name, values in one.curve.items() if name != "seconds"}
        other = whole[key]
        assert curve == {name: other.curve[name][: one.epochs] for name in curve}
        assert one.value == min(other.curve["valid_mse"][: one.epochs])
        if not one.partial:
            assert (one.value, repeatable(one.metrics)) == (other.value, repeatable(other.metrics))

    return paused


def test_promoted_trials_resume_from_their_rung(archive, run, tmp_path):
    propose(archive, NETS)
    propose(archive, NETS, "whole", None)
    assert run(slots=2).failed == 0
    paused = check_equal_to_those_that_never_paused(archive)
    epochs = sorted(one.epochs for one in paused.values())
    (top,) = {one.id for one in paused.values() if not one.partial}
    assert (epochs[:5], epochs[-1]) == ([2] * 5, 40)
    counts = archive.studies.snapshot("study").counts
    assert (counts[State.COMPLETE], counts[State.PRUNED]) == (1, 8)
    # Only what is whole has weights; only what may yet go on has a state.
    assert [one.id for one in paused.values() if archive.weights.of_evaluation(one.id)] == [top]
    left = {path.name for path in (tmp_path / "trainer" / "checkpoints").iterdir()}
    assert left == {
        checkpoints.path_of(tmp_path, one.id).name for one in paused.values() if one.partial
    }
    environments = dict(archive.query("MATCH (e:Evaluation) RETURN e.id, e.environment").rows)
    assert json.loads(environments[top])["resumed"] == 2
    assert archive.studies.snapshot("study").incumbent.id == top


@pytest.mark.whole
def test_killed_worker_loses_and_doubles_no_rung(archive, run, start):
    propose(archive, NETS)
    daemons = {daemon.pid: daemon for daemon in (start(checkpoint_seconds=0.05) for _ in range(2))}

    def proposals(*wanted):
        return archive.proposals.list("study", wanted)

    # One that goes on from its rung.
    promoted = wait_until(
        lambda: [one for one in proposals(State.RUNNING) if one.rung], 120, "a promotion"
    )[0]
    killed = daemons[int(promoted.worker.split("-")[-2])]
    killed.kill()
    killed.wait()
    wait_until(lambda: len(proposals(State.COMPLETE, State.PRUNED)) == len(NETS), 240, "the end")
    assert archive.proposals.get(promoted.id).state.evaluated
    for daemon in daemons.values():
        daemon.terminate()
        daemon.wait(60)

    propose(archive, NETS, "whole", None)
    run(slots=2)
    paused = check_equal_to_those_that_never_paused(archive)
    rows = archive.query(
        "MATCH (p:Proposal {study: 'study'}) RETURN p.id, p.state, p.rung, p.rung_values, p.reason"
    )
    for id_, state, rung, values, reason in rows.rows:
        (one,) = [each for each in paused.values() if each.id == id_]
        assert (state == State.COMPLETE) == (not one.partial)
        assert values == [
            min(one.curve["valid_mse"][:epochs]) for epochs in RUNGS.epochs[: len(values)]
        ]
        assert len(values) == (rung or 0) + 1 and reason is None

    at = [sum(len(row[3]) > rung for row in rows.rows) for rung in range(3)]
    assert at[0] == len(NETS) and at[1] >= 3 and at[2] >= at[1] // 3


def test_agents_receive_one_scale_and_replay_agrees(archive, run):
    propose(archive, NETS[:3], rungs=Rungs((2, 40), 3))
    study = archive.studies.get("study")
    run(once=True)
    early = provenance.history_of(archive, study)
    run()
    late = provenance.history_of(archive, study)
    assert early[1]["partial"] == {"study": {"2": "0"}}
    assert len(list(provenance.numbers_in(late[1]["partial"]["study"]["2"]))) == 2
    # Beside the one that was trained to the end, none is told as if its two epochs were all.
    (whole,) = [one for one in found(archive).values() if not one.partial]
    assert max(late[0].observations, key=lambda one: one.score).id == whole.id
    told = {one.id: one.score for one in late[0].observations}
    assert all(told[one.id] > one.score for one in found(archive).values() if one.partial)
    past = StudyReplay(archive, "study")
    # else those that a proposal names as its basis
    past._evaluations = archive.studies.evaluations("study")
    for history, known in (early, late):
        assert past.history(known).observations == history.observations


def test_other_rungs_are_another_study(archive):
    propose(archive, [])
    stored = archive.studies.get("study")
    assert study_setup.open_study(archive, stored).config == stored.config
    plain = Study(**{**vars(stored), "config": {}})
    assert study_setup.open_study(archive, plain).config == stored.config
    other = Study(**{**vars(stored), "config": {"rungs": Rungs((2, 40)).as_config()}})
    with pytest.raises(
        StudyConflictError,
        match="exists with rungs at 2, 6, 40 epochs, one of 3 continues, got 2, 40",
    ):
        study_setup.open_study(archive, other)
