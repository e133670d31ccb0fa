"""`archive init`: a small project with parameters and a training of the user."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from archive.cli.render import json_option, print_json, print_line
from archive.errors import UsageError
from archive.files import write_atomically

SPACE = """\
# What the search varies. Guide: docs/guides/spaces.md
constraints = ["width * depth <= 512"]

[parameters]
depth = {integer = [1, 4]}
width = [16, 32, 64, 128]
activation = ["relu", "gelu"]
lr = {real = [1e-4, 1e-1], log = true}
dropout = {real = [0, 0.5], when = "depth >= 2"}
"""

RECIPE = '''\
"""The training: a function of one trial, which reports after each epoch."""

import torch
from torch import nn

import archive

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


def build(parameters, inputs, outputs):
    layers = [nn.Flatten()]
    for _ in range(parameters["depth"]):
        layers.append(nn.Linear(inputs, parameters["width"]))
        layers.append(ACTIVATIONS[parameters["activation"]]())
        layers.append(nn.Dropout(parameters.get("dropout", 0)))
        inputs = parameters["width"]

    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


@archive.recipe(tasks="classification", spaces="parameters")
def fit(trial):
    data = trial.data()
    x = torch.as_tensor(data.train.inputs).float()
    y = torch.as_tensor(data.train.targets).long()
    valid_x = torch.as_tensor(data.valid.inputs).float()
    valid_y = torch.as_tensor(data.valid.targets).long()
    model = build(trial.parameters, x[0].numel(), int(y.max()) + 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=trial.parameters["lr"])
    for epoch in range(1, trial.epochs + 1):
        model.train()
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()

        model.eval()
        with torch.no_grad():
            right = (model(valid_x).argmax(1) == valid_y).float().mean().item()

        if trial.report(epoch, {"valid_accuracy": right}):
            break
'''

RECIPES = """\
[mine]
fit = "../train.py:fit"
"""

SEARCH = "archive --home results search --space space.toml --recipe mine --study mine --budget 12"
"""The command that searches, in the folder of the project."""

README = f"""\
# A search of your own
`space.toml` says what varies, `train.py` trains one configuration, `results/recipes.toml` names it.
Search: `{SEARCH}`
The best configuration: `archive --home results study best mine`
Any other task: `--task csv:PATH#TARGET`, `--task npz:PATH` (archive tasks).
"""

FILES: Mapping[str, str] = {
    "space.toml": SPACE,
    "train.py": RECIPE,
    "results/recipes.toml": RECIPES,
    "README.md": README,
}


@dataclass(frozen=True)
class NewProject:
    """A project that `archive init` has written.

    Attributes:
        folder: Its folder.
        files: Its files, relative to the folder.
        command: The command that searches.
    """

    folder: str
    files: list[str]
    command: str


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("."))
@json_option
def init(folder: Path, as_json: bool) -> None:
    """Write a small project to FOLDER: parameters, a training of them, and a command that searches.

    No file is overwritten. The archive of the project is in its folder results.
    """
    for name in FILES:
        if (folder / name).exists():
            raise UsageError(f"{folder / name} exists: name a new folder, archive init FOLDER")

    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)

    command = SEARCH
    if folder.resolve() != Path.cwd():
        command = f"cd {shlex.quote(str(folder))} && {SEARCH}"

    if as_json:
        print_json(NewProject(str(folder), list(FILES), command))
        return

    print_line(f"wrote {', '.join(str(folder / name) for name in FILES)}")
    print_line()
    print_line("next:")
    print_line(f"  {command}", wrap=False)
