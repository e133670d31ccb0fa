"""The beginnings in the guide run as they stand there, one trial each, with one trainer for all."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import shlex
import shutil
import sys
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from archive.cli.main import archive as root
from archive.settings import environment
from archive.trainer.trial import fork_server
from tests.support import ROOT, WHOLE
from tests.support.commands import serving, shell

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.lasts(60)]

PROJECTS = ROOT / "docs" / "examples" / "projects"
PAGE = (ROOT / "docs" / "guides" / "projects.md").read_text("utf-8")
SECTIONS = PAGE.split("\n## ")[1:]
BLOCK = re.compile(r'```(?:python|toml) title="([^"]+)"\n(.*?)```', re.DOTALL)
MOST_LINES = 30
NEEDS = {"lightning": "pytorch_lightning", "transformers": "transformers"}
"""Packages of the extra `frameworks`, by the study's name."""


def commands_of(section: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0].strip().splitlines()


def test_the_guide_shows_every_file_and_keeps_its_promise():
    shown = set()
    for section in SECTIONS:
        lines = 0
        for title, text in BLOCK.findall(section):
            shown.add((Path(title).name, text))
            lines += sum(1 for line in text.splitlines() if line.strip())

        assert lines <= MOST_LINES, section.splitlines()[0]
        # Growth is two searches after the first one.
        assert len(commands_of(section)) <= (3 if "growing" in section else 2)

    files = [path for path in PROJECTS.rglob("*.*") if path.suffix in (".py", ".toml")]
    assert shown == {(path.name, path.read_text("utf-8")) for path in files}
    assert len(SECTIONS) == 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with the data of the first sections."""
    pandas = pytest.importorskip("pandas")
    from PIL import Image

    folder = tmp_path_factory.mktemp("projects")
    rng = np.random.default_rng(0)
    for label in range(2):
        (folder / "shapes" / str(label)).mkdir(parents=True)
        for number in range(10):
            pixels = rng.integers(128 * label, 128 + 127 * label, (9, 8)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "shapes" / str(label) / f"{number}.png")

    rows = 40
    table = pandas.DataFrame(
        {
            "age": np.where(np.arange(rows) % 7 == 3, np.nan, rng.normal(5, 1, rows)),
            "colour": rng.choice(["black", "white"], rows),
            "species": ["cat", "dog"] * (rows // 2),
            "default": [True, False] * (rows // 2),
        }
    )
    table.drop(columns="default").to_csv(folder / "pets.csv", index=False)
    table.drop(columns="species").to_parquet(folder / "loans.parquet")
    return folder


@pytest.fixture
def preloaded(monkeypatch):
    """A fork server that has imported what the trials of several beginnings import."""
    forkserver._forkserver._stop()
    monkeypatch.setattr(
        fork_server, "_PRELOADED", [*fork_server._PRELOADED, "sklearn.neural_network"]
    )


@pytest.mark.usefixtures("preloaded")
def test_each_beginning_runs(folder, archive, store_settings, tmp_path, monkeypatch, request):
    """A trainer looks recipes up when it starts: all of them are in its home by then."""
    home = archive.connection.settings.home
    recipes = []
    for path in PROJECTS.glob("*/recipes.toml"):
        shutil.copytree(path.parent, folder / path.parent.name, dirs_exist_ok=True)
        recipes.append(recipes_of(path, folder / path.parent.name))

    # A plain loop is what `archive init` writes, with the command that it prints.
    words = ["init", str(folder / "mine"), "--json"]
    printed = json.loads(CliRunner().invoke(root, words, catch_exceptions=False).stdout)
    recipes.append(recipes_of(folder / "mine" / "results" / "recipes.toml", folder / "mine"))

    home.mkdir(parents=True, exist_ok=True)
    (home / "recipes.toml").write_text("\n".join(recipes))
    (home / "recipes.toml").chmod(0o600)
    # Other tests have the same home, and recipes of these names elsewhere.
    request.addfinalizer((home / "recipes.toml").unlink)
    # Every other one, unless everything is run: all take the same way through a trainer.
    sections = SECTIONS[:-1] if WHOLE else SECTIONS[:-1:2]
    with shell(store_settings, tmp_path) as user, serving(archive):
        for section in sections:
            run(user, section, folder, monkeypatch)

        moves, command = printed["command"].split(" && ")
        assert moves == shlex.join(["cd", str(folder / "mine")])
        monkeypatch.chdir(folder / "mine")
        evaluate(user, words_of(command), 1, "mine")


def recipes_of(path, project):
    """Return the recipes of a project for a home elsewhere."""
    return path.read_text("utf-8").replace("../", f"{project}/").replace("python3", sys.executable)


def words_of(command):
    """Return the words after `archive` of a command without a budget."""
    words = shlex.split(command.replace("archive --home results ", "archive "))[1:]
    if "--budget" in words:
        place = words.index("--budget")
        del words[place : place + 2]

    return words


def evaluate(user, words, number, study):
    """Type a search up to a number of evaluations."""
    budget = ["--budget", str(number), "--trainers", "0", "--json"]
    document = json.loads(user.types(*words, *budget).stdout)
    assert (document["study"], document["evaluations"], document["failed"]) == (study, number, 0)
    assert document["best"]["value"] is not None


def run(user, section, folder, monkeypatch):
    """Type the commands of a section, with one evaluation each and without trainers of their own."""
    for number, command in enumerate(commands_of(section), 1):
        words = words_of(command)
        study = words[words.index("--study") + 1]
        package = NEEDS.get(study)
        # Frameworks take seconds to import: their recipes run with the whole matrix.
        if package is not None and not (WHOLE and importlib.util.find_spec(package)):
            continue

        project = "own-unit" if study == "forest" else study
        monkeypatch.chdir(folder / project if (PROJECTS / project).is_dir() else folder)
        evaluate(user, words, number, study)


def test_the_ported_objective_runs(archive, store_settings, tmp_path, monkeypatch, capsys):
    text = (PROJECTS / "optuna" / "port.py").read_text("utf-8").replace("range(10)", "range(1)")
    script = tmp_path / "port.py"
    script.write_text(text)
    for name, value in environment(store_settings).items():
        monkeypatch.setenv(name, value)

    # In this process, which has imported what it needs.
    runpy.run_path(str(script), run_name="__main__")
    assert 0 < float(capsys.readouterr().out) <= 1
