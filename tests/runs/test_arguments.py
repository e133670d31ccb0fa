"""Arguments of commands as named values."""

import pytest

from archive.runs.arguments import read_command, split_seed


@pytest.mark.parametrize(
    ("command", "program", "values", "seed"),
    [
        ("python train.py --lr 3e-4", "train.py", {"lr": 3e-4}, None),
        ("python3.11 -u train.py --lr=3e-4 --fast", "train.py", {"lr": 3e-4, "fast": True}, None),
        ("/usr/bin/python -m pkg.train depth=4", "pkg.train", {"depth": 4}, None),
        ("./run.sh --model.num-layers 12", "run.sh", {"model_num_layers": 12}, None),
        (
            "bash run.sh data --width 8 out",
            "run.sh",
            {"width": 8, "arguments": ["data", "out"]},
            None,
        ),
        ("python t.py --momentum -0.5 --seed 3", "t.py", {"momentum": -0.5}, 3),
        ("python t.py --sizes [1,2] --name x=y", "t.py", {"sizes": [1, 2], "name": "x=y"}, None),
        ("python t.py --flag -- --lr 1", "t.py", {"flag": True, "lr": 1}, None),
        ("python t.py +optim.lr=0.1 use=False", "t.py", {"optim_lr": 0.1, "use": False}, None),
        (
            "python t.py --id 0123 --big 99999999999999999999",
            "t.py",
            {"id": 123, "big": 1e20},
            None,
        ),
        ("python", "python", {}, None),
        ("python -W ignore -X dev t.py", "t.py", {}, None),
        ("bash -c ls --lr 1", "-c ebfdec64", {"lr": 1}, None),
    ],
)
def test_a_command_has_a_program_values_and_a_seed(command, program, values, seed):
    invocation = read_command(command.split())
    assert (invocation.program, invocation.values, invocation.seed) == (program, values, seed)


def test_programs_that_are_written_in_the_command_are_told_apart():
    first = read_command(["python", "-c", "print(1)"])
    assert first.program != read_command(["python", "-c", "print(2)"]).program


def test_runs_that_differ_in_their_seeds_have_the_same_values():
    first = read_command(["python", "t.py", "--seed", "1", "--lr", "1"])
    second = read_command(["python", "t.py", "--random-seed=2", "--lr", "1"])
    assert first.values == second.values
    assert (first.seed, second.seed) == (1, 2)


@pytest.mark.parametrize(
    ("values", "kept", "seed"),
    [
        ({"seed": 3, "lr": 1}, {"lr": 1}, 3),
        ({"data_seed": 1, "seed": 2}, {}, 2),
        ({"train.Random_Seed": 4.0}, {}, 4),
        ({"seed": "auto", "random_seed": -7}, {"seed": "auto"}, -7),
        ({"reseed": True, "seeds": 5}, {"reseed": True, "seeds": 5}, None),
        ({"seed": True, "a_seed": 2**64, "b_seed": 0.5}, None, None),
        ({"seed": float("inf"), 7: 8}, None, None),
    ],
)
def test_seeds_are_no_values_of_a_configuration(values, kept, seed):
    assert split_seed(values) == (values if kept is None else kept, seed)
