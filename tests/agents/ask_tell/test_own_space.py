"""Ask and tell with parameters of the caller: values in, values out, by name."""

from __future__ import annotations

import sys

import pytest

from archive import agents, space
from archive.errors import StudyConflictError, UsageError
from archive.trainer.recipes import model_process
from tests.support.networks.model_processes import InProcess

SEARCH = space.Space(
    depth=space.integer(1, 4),
    width=[16, 32, 64],
    lr=space.real(1e-4, 1e-1, log=True, default=1e-3),
    dropout=space.real(0, 0.5, when="depth >= 2"),
    stage=space.repeat({"op": ["conv", "skip"]}, "depth"),
    constraints=["width * depth <= 128"],
)
"""Every kind of parameter that ask and tell treats differently."""


@pytest.fixture
def study(archive):
    return agents.study(archive, "mine", SEARCH)


def test_ask_returns_parameters_as_a_tree(study):
    for trial in study.ask("random", 5):
        depth = trial.parameters["depth"]
        assert len(trial.parameters["stage"]) == depth
        assert ("dropout" in trial.parameters) == (depth >= 2)
        assert study.tell(trial, 0.5)


def test_enqueue_completes_the_values(study):
    study.enqueue(depth=2, lr=0.01, motivation="by hand")
    (trial,) = study.ask("random")
    assert trial.proposal.motivation == "by hand"
    assert (trial.parameters["depth"], trial.parameters["lr"]) == (2, 0.01)
    assert trial.parameters["width"] == 16
    assert trial.parameters["dropout"] == 0.25
    study.enqueue({"depth": 1, "stage": [{"op": "skip"}]})
    (trial,) = study.ask("random")
    assert trial.parameters["stage"] == [{"op": "skip"}]


def test_tell_takes_values_by_name(study):
    values = {"depth": 1, "width": 32, "lr": 0.01, "stage_1_op": "skip"}
    assert study.tell(values, 0.93)
    assert study.tell({**values, "stage": [{"op": "skip"}]}, 0.93)
    assert study.best().value == 0.93
    assert len(study.evaluations()) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"depth": 9}, "depth must be a whole number from 1 to 4, got 9"),
        ({"detph": 3}, "unknown parameter 'detph': did you mean depth"),
        ({"width": 48}, "width must be one of 16, 32, 64, got 48"),
        ({"depth": 4, "width": 64}, "does not meet 'width * depth <= 128': width=64, depth=4"),
    ],
)
def test_wrong_values_are_one_line(study, values, message):
    with pytest.raises(UsageError) as raised:
        study.enqueue(**values)

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_told_configuration_is_whole(study):
    with pytest.raises(UsageError, match="width exists in this configuration and needs a value"):
        study.tell({"depth": 1, "lr": 0.01}, 0.5)

    (suggestion,) = study.ask("random")
    study.tell(suggestion, 0.5)
    assert f"value 0.5, depth={suggestion.parameters['depth']} " in str(study.best())


def test_other_forms_of_a_space(archive, tmp_path):
    file = tmp_path / "space.toml"
    file.write_text('[parameters]\nlr = {real = [0, 1]}\nact = ["relu", "gelu"]\n')
    first = agents.study(archive, "file", file)
    assert first.ask("random")[0].parameters.keys() == {"lr", "act"}
    assert agents.study(archive, "file", str(file)).space == first.space
    with pytest.raises(StudyConflictError):
        agents.study(archive, "file", SEARCH)

    with pytest.raises(UsageError, match=r"a space is space\.Space"):
        agents.study(archive, "other", 3)


def test_a_protocol_that_trainers_cannot_train_is_refused(archive):
    with pytest.raises(UsageError, match="the built-in training makes no network of parameters"):
        agents.study(archive, "other", SEARCH, task="digits", protocol="digits/1")

    assert "other" not in archive.studies.names()


def test_networks_are_built_where_the_model_is_named(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(model_process, "ModelProcess", InProcess)
    (tmp_path / "asked_nets.py").write_text(
        "from torch import nn\ndef build(width):\n    return nn.Linear(4, width)\n"
    )
    declared = space.Space(width=[2, 3, 4], lr=[0.1, 0.2], model="asked_nets.py:build", example=[4])
    declared.model = declared.model.within(tmp_path)
    study = agents.study(archive, "mine", declared)
    keys = [study.enqueue(width=2, lr=rate).architecture_key for rate in (0.1, 0.2)]
    # Told results answer no other configuration: all are asked for.
    trials = study.ask("random", 6)
    assert len(trials) == 6
    keys += [trial.architecture.key for trial in trials]
    networks = {row.network for row in archive.builds.of(keys).values()}
    assert (len(archive.builds.of(keys)), len(networks)) == (6, 3)


def test_decisions_of_choices_have_names(archive):
    from archive import spaces

    chosen = spaces.get("choices", decisions={"op": ["a", "b"], "size": ["1", "2"]})
    study = agents.study(archive, "choices", chosen)
    study.enqueue(op="b", size="1")
    assert study.ask("random")[0].parameters == {"op": "b", "size": "1"}


def test_networks_without_names_take_no_values(archive):
    study = agents.study(archive, "cells", "nasbench201")
    with pytest.raises(UsageError, match="have no parameters with names"):
        study.enqueue(lr=0.1)

    with pytest.raises(UsageError, match="got both, lr"):
        study.enqueue("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|", lr=0.1)


def test_a_grown_space_keeps_its_history(archive):
    first = agents.study(archive, "grows", space.Space(depth=space.integer(1, 4), act=["relu"]))
    for value, trial in enumerate(first.ask("random", 3)):
        first.tell(trial, value / 10)

    grown = space.Space(
        depth=space.integer(1, 6),
        act=["relu", "gelu"],
        dropout=space.real(0, 0.5, default=0.0),
    )
    again = agents.study(archive, "grows", grown)
    assert len(again.evaluations()) == 3
    assert again.space.parameters == grown
    assert archive.studies.get("grows").space_config == again.space.config
    best = archive.architectures.get(again.best().architecture.key)
    assert again.space.named(best)["dropout"] == 0.0
    # Views and queries have the default too.
    for view in archive.studies.snapshot("grows").proposals:
        assert list(view.configuration) == ["depth", "act", "dropout"]

    earlier = "MATCH (p:Proposal {study: 'grows'}) WHERE p.parameter_dropout = 0.0 RETURN p.number"
    assert len(archive.query(earlier).rows) == 3
    for trial in again.ask("evolution", 4):
        assert "dropout" in trial.parameters
        again.tell(trial, 0.5)

    known = {tuple(again.space.named(seen.architecture).items()) for seen in again.evaluations()}
    assert len(known) == 7
    # Opened without a space, and by an older file.
    assert agents.study(archive, "grows").space.parameters == grown
    with pytest.raises(StudyConflictError, match="depth has narrower bounds: 1 to 6, got 1 to 4"):
        agents.study(archive, "grows", first.space)


def test_a_part_of_a_space_is_searched(archive):
    study = agents.study(archive, "part", SEARCH)
    (trial,) = study.ask("random")
    study.tell(trial, 0.1)
    from archive.agents import get
    from archive.spaces.parameters import part_of

    part = part_of(study.space, {"width": "64"}, ["lr"], {"depth": 2})
    agent = get("evolution", part)
    assert part.parameters.fixed["width"] == 64
    assert agent.space == part


def test_a_value_that_cannot_exist_is_not_dropped(archive):
    search = space.Space(
        depth=space.integer(0, 3),
        drop=space.real(0, 0.5, when="depth >= 2"),
        stage=space.repeat({"op": ["a", "b"]}, "depth"),
    )
    study = agents.study(archive, "conditional", search)
    with pytest.raises(UsageError, match=r"drop exists only where depth >= 2"):
        study.enqueue(depth=1, drop=0.3)

    with pytest.raises(UsageError, match=r"stage_2_op exists only where depth >= 2"):
        study.enqueue(depth=1, stage=[{"op": "b"}, {"op": "b"}])

    study.enqueue(depth=2, stage=[{"op": "b"}, {"op": "a"}])
    (trial,) = study.ask("random")
    assert trial.parameters["stage"] == [{"op": "b"}, {"op": "a"}]
