"""Recipes that run a command: its input, its messages, and its end."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from archive.architecture import codec
from archive.errors import SettingsError, TrainingError
from archive.trainer.recipes.command import CommandRecipe, flags_of
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.registry import RecipeAccess
from archive.trainer.recipes.run import Cancelled, run
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_MLP

TASK = registry.DIABETES
PROTOCOL = dataclasses.replace(TASK.protocol(), epochs=3)


def trial_of(**options) -> TrialContext:
    return TrialContext(TINY_MLP, TASK, PROTOCOL, **options)


def program(text: str) -> CommandRecipe:
    return CommandRecipe((sys.executable, "-c", "import json, sys, time\n" + textwrap.dedent(text)))


def shell(text: str) -> CommandRecipe:
    return CommandRecipe(("sh", "-c", text))


def test_a_command_learns_what_to_train(tmp_path):
    fit = program("""
        about = json.loads(sys.stdin.readline())
        open("about.json", "w").write(json.dumps(about))
        print(json.dumps({"step": 1, "metrics": {"valid_mse": 0.5}}))
        """)
    trial = trial_of(
        scratch=tmp_path, seed=3, hyperparameters={"a": [1]}, objective="valid_mse", epochs=2
    )
    assert run(fit, trial).value == 0.5
    about = json.loads((tmp_path / "about.json").read_text())
    assert codec.from_dict(about["architecture"]) == TINY_MLP.canonical
    assert (about["seed"], about["epochs"], about["reports"], about["data"]) == (3, 2, 0, None)
    assert (about["objective"], about["direction"], about["hyperparameters"]) == (
        "valid_mse",
        "minimise",
        {"a": [1]},
    )
    assert about["protocol"]["name"] == "diabetes/1"


def test_a_command_gets_the_data_where_it_is_configured(tmp_path):
    fit = dataclasses.replace(
        shell('echo "{\\"step\\": 1, \\"metrics\\": {\\"valid_mse\\": 1}}"'), data=True
    )
    run(fit, trial_of(scratch=tmp_path))
    with np.load(tmp_path / "data.npz") as data:
        assert np.array_equal(data["valid_inputs"], trial_of().data().valid.inputs)
        assert sorted(data) == sorted(
            f"{part}_{what}"
            for part in ("train", "valid", "test")
            for what in ("inputs", "targets")
        )


def test_the_result_of_a_command_has_metrics_and_weights(tmp_path):
    fit = program("""
        import numpy
        numpy.savez("model.npz", w=numpy.eye(2))
        print(json.dumps({}))
        print(json.dumps({"step": 1, "metrics": {"loss": 1}}))
        result = {"metrics": {"valid_mse": 0.25}, "weights": "model.npz", "ended": "enough", "environment": {"v": 1}}
        print(json.dumps({"result": result}))
        """)
    outcome = run(fit, trial_of(scratch=tmp_path))
    assert outcome.metrics == {"loss": 1.0, "valid_mse": 0.25}
    assert (outcome.ended, outcome.environment) == ("enough", {"v": 1})
    assert np.array_equal(outcome.weights["w"], np.eye(2))


def test_a_program_takes_flags_and_prints_metrics(tmp_path):
    lines = "print('starts: now'); print('Epoch 1/2 - loss: 0.5'); print('Epoch 1/2 mse=9 5 s')"
    lines += "; print('epoch=2 loss=.25, took: 3s'); print(sys.argv[1:]); print('mse: 1e-1')"
    fit = dataclasses.replace(program(lines), flags=True, prints=True)
    trial = trial_of(
        scratch=tmp_path, hyperparameters={"lr": 0.1, "act": "relu", "g": {"on": True, "n": [1]}}
    )
    outcome = run(fit, trial)
    assert outcome.metrics == {"loss": 0.25, "valid_mse": 0.1}
    assert outcome.curve["loss"] == [0.5, 0.25]
    assert flags_of({**trial.parameters, "stage": [{"k": 3}, {"k": 5}]}) == [
        "--lr=0.1",
        "--act=relu",
        "--g.on=true",
        "--g.n=[1]",
        "--stage.0.k=3",
        "--stage.1.k=5",
    ]


def test_a_number_alone_is_the_objective(tmp_path):
    fit = dataclasses.replace(shell("echo start; echo 0.75"), prints=True)
    assert run(fit, trial_of(scratch=tmp_path)).value == 0.75
    fit = dataclasses.replace(shell("echo 0.75; echo end"), prints=True)
    with pytest.raises(TrainingError, match="reports no metric 'valid_mse'"):
        run(fit, trial_of(scratch=tmp_path))


WITH_WEIGHTS = """echo '{"result": {"weights": "a.npz"}}'"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 3", "^the command ended with status 3; its log tells why$"),
        ("kill -9 $$", "^the command ended with signal SIGKILL; its log tells why$"),
        ("echo epoch 1", "^the command wrote a line that is not a JSON object: 'epoch 1'$"),
        ("echo 3", "^the command wrote a line that is not a JSON object: '3'$"),
        (r"printf '\377\000\n'", "^the command wrote a line that is not a JSON object: "),
        ("""echo '{"epoch": 1}'""", "^the command wrote an unknown key: 'epoch'$"),
        (
            """echo '{"step": 1, "metrics": 3}'""",
            "^metrics must be a mapping of names to numbers, got int$",
        ),
        (
            """echo '{"step": 1, "metrics": {"a": "x"}}'""",
            "^the metric 'a' must be a number, got str$",
        ),
        (
            """echo '{"step": 1, "metrics": {"a": NaN}}'""",
            "^training diverged: a is nan in step 1$",
        ),
        (
            """echo '{"metrics": {"a": 1}}'""",
            "^the step of a report must be a whole number, got None$",
        ),
        (
            """echo '{"checkpoint": true}'""",
            "^the checkpoint of a command must be a folder .*, got True$",
        ),
        (
            """echo '{"checkpoint": "gone"}'""",
            "^the checkpoint of a command must be a folder .*, got 'gone'$",
        ),
        (
            """echo '{"checkpoint": ".."}'""",
            "^the checkpoint of a command must be a folder .*, got '..'$",
        ),
        (
            """echo '{"result": 3}'""",
            "^the result of a command must be an object with metrics.* got 3$",
        ),
        (
            """echo '{"result": {"weights": "gone.npz"}}'""",
            "^the weights 'gone.npz' of the command cannot be read: ",
        ),
        (
            r"printf '\223NUMPY\001\000' > a.npz; " + WITH_WEIGHTS,
            "^the weights 'a.npz' of the command cannot be read: ",
        ),
        (
            "touch a.npz; " + WITH_WEIGHTS,
            "^the weights 'a.npz' of the command cannot be read: No data left in file$",
        ),
        (
            "echo PK > a.npz; " + WITH_WEIGHTS,
            "^the weights 'a.npz' of the command cannot be read: ",
        ),
        (
            r"printf 'PK\003\004' > a.npz; " + WITH_WEIGHTS,
            "^the weights 'a.npz' of the command .*: File is not a zip",
        ),
        (
            """echo '{"result": {"weights": "a.npy"}}'""",
            "^the weights of a command must be a file .npz or .safetensors, got 'a.npy'$",
        ),
        (
            """echo '{"result": {"weights": 5}}'""",
            r"^the weights of a command must be a file .*, "
            r"got 5$",
        ),
        (
            "head -c 100000 /dev/zero | tr '\\0' '['; echo",
            "^the command wrote a line that is not a JSON object: ",
        ),
        (
            """echo '{"result": {"environment": 3}}'""",
            "^the environment of a result must be an object, got 3$",
        ),
        (
            "true",
            "^the recipe reports no metric 'valid_mse', the study's objective; the training "
            "has none$",
        ),
    ],
)
def test_a_faulty_command_fails_with_its_reason(text, reason):
    with pytest.raises(TrainingError) as failed:
        run(shell(text), trial_of())

    assert re.search(reason, failed.value.reason)


def test_one_array_is_no_weights(tmp_path):
    fit = program("""
        import numpy
        numpy.save(open("a.npz", "wb"), numpy.eye(2))
        print(json.dumps({"result": {"weights": "a.npz"}}))
        """)
    with pytest.raises(
        TrainingError,
        match=r"'a\.npz' of the command cannot be read: it holds one array "
        r"without a name",
    ):
        run(fit, trial_of(scratch=tmp_path))


def test_a_line_is_bounded(monkeypatch):
    monkeypatch.setattr("archive.trainer.recipes.command.MOST_BYTES", 1 << 17)
    with pytest.raises(TrainingError, match="the command wrote a line of more than 131072 bytes"):
        run(shell("cat /dev/zero"), trial_of())


def test_a_command_that_is_not_here_is_left_to_others():
    with pytest.raises(
        SettingsError, match="the command /no/such/program cannot be started: No such file"
    ):
        run(CommandRecipe(("/no/such/program",)), trial_of())


def test_a_process_that_a_command_leaves_behind_does_not_hold_the_trial():
    began = time.monotonic()
    fit = shell("""sleep 60 & echo '{"step": 1, "metrics": {"valid_mse": 1}}'""")
    assert run(fit, trial_of()).value == 1.0
    assert time.monotonic() - began < 50


def test_the_last_lines_of_a_command_are_read_after_its_end(monkeypatch):
    poll = subprocess.Popen.poll

    def late(process):
        """Look after the end, as a machine that is busy does."""
        process.wait()
        return poll(process)

    monkeypatch.setattr(subprocess.Popen, "poll", late)
    said = """
        echo '{"step": 1, "metrics": {"valid_mse": 1}}'; sleep 0.6
        echo '{"result": {"metrics": {"valid_mse": 2}}}'
        """
    assert run(shell(said), trial_of()).value == 2.0
    assert run(shell("sleep 60 &" + said), trial_of()).value == 2.0


def test_the_last_line_of_a_command_may_be_without_an_end_where_a_process_holds_the_pipe():
    fit = shell("""sleep 60 & printf '{"step": 1, "metrics": {"valid_mse": 1}}'""")
    assert run(fit, trial_of()).value == 1.0


def test_a_command_that_does_not_read_its_input_is_no_error():
    assert (
        run(
            shell("""exec <&-; echo '{"step": 1, "metrics": {"valid_mse": 1}}'"""), trial_of()
        ).value
        == 1.0
    )


def test_silence_is_no_sign_of_life_and_a_line_is(monkeypatch):
    monkeypatch.setattr("archive.trainer.recipes.context.HEARTBEAT_SECONDS", -1.0)
    beats = []
    fit = shell("""sleep 0.6; echo '{}'; echo '{"step": 1, "metrics": {"valid_mse": 1}}'""")
    run(fit, trial_of(on_heartbeat=lambda: beats.append(time.monotonic())))
    # One for each line, one for the look after the report, and none for the silence.
    assert 2 <= len(beats) <= 5


def test_a_command_is_told_to_stop_and_its_files_are_kept(tmp_path):
    fit = program("""
        import os, signal
        about, told = json.loads(sys.stdin.readline()), []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
        file = os.path.join(about["checkpoint"], "epoch")
        assert os.listdir(about["checkpoint"]) == ["epoch"][: os.path.exists(file)]
        begin = int(open(file).read()) if os.path.exists(file) else 0
        assert begin == about["reports"]
        for epoch in range(begin + 1, about["epochs"] + 1):
            print(json.dumps({"step": epoch, "metrics": {"valid_mse": 1 / epoch}}), flush=True)
            while epoch == 2 and begin == 0 and not told:
                time.sleep(0.01)
            os.mkdir(f"state-{epoch}")
            open(f"state-{epoch}/epoch", "w").write(str(epoch))
            print(json.dumps({"checkpoint": f"state-{epoch}"}), flush=True)
            if told:
                sys.exit(1)
        """)
    path = tmp_path / "a.checkpoint"
    trial = trial_of(checkpoint=path, checkpoint_seconds=1e9)
    trial._on_report = lambda row, resumed: trial.cancel() if row["epoch"] == 2 else None
    with pytest.raises(Cancelled) as left:
        run(fit, trial)

    assert (left.value.saved, left.value.epoch) == (True, 2)
    resumed = run(fit, trial_of(checkpoint=path))
    assert (resumed.resumed, resumed.epochs, resumed.value) == (1, 3, 1 / 3)


def test_a_command_that_is_told_to_stop_after_its_last_epoch_has_finished():
    trial = trial_of(epochs=1, on_report=lambda *_: trial.cancel())
    outcome = run(
        shell("""echo '{"step": 1, "metrics": {"valid_mse": 1}}'; exec sleep 60"""), trial
    )
    assert (outcome.ended, outcome.value) == ("rung", 1.0)


def test_a_command_of_the_machine_runs_without_a_shell(tmp_path):
    path = tmp_path / "recipes.toml"
    path.touch(0o600)
    path.write_text('[mine]\ncommand = ["./train me", "$HOME; rm -rf /"]\ndata = true\n')
    source = RecipeAccess(tmp_path).find("mine")
    assert source.load() == CommandRecipe((f"{tmp_path}/train me", "$HOME; rm -rf /"), data=True)
    assert source.record() == {"recipe": "mine", "recipe_version": "recipes.toml"}
