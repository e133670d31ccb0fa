"""The beginnings in the guide run as they stand there, one trial each, with one trainer for all."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archive.settings import environment
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


def test_each_beginning_runs(folder, archive, store_settings, tmp_path, monkeypatch):
    """A trainer looks recipes up when it starts: all of them are in its home by then."""
    home = archive.connection.settings.home
    recipes = []
    for path in PROJECTS.glob("*/recipes.toml"):
        shutil.copytree(path.parent, folder / path.parent.name, dirs_exist_ok=True)
        text = path.read_text("utf-8").replace("../", f"{folder / path.parent.name}/")
        recipes.append(text.replace("python3", sys.executable))

    home.mkdir(parents=True, exist_ok=True)
    (home / "recipes.toml").write_text("\n".join(recipes))
    (home / "recipes.toml").chmod(0o600)
    with shell(store_settings, tmp_path) as user, serving(archive):
        for section in SECTIONS[:-1]:
            run(user, section, folder, monkeypatch)


def run(user, section, folder, monkeypatch):
    """Type the commands of a section, with one evaluation each and without trainers of their own."""
    for number, command in enumerate(commands_of(section), 1):
        words = shlex.split(command.replace("archive --home results ", "archive "))[1:]
        study = words[words.index("--study") + 1]
        package = NEEDS.get(study)
        # Frameworks take seconds to import: their recipes run with the whole matrix.
        if package is not None and not (WHOLE and importlib.util.find_spec(package)):
            continue

        if "--budget" in words:
            place = words.index("--budget")
            del words[place : place + 2]

        project = "own-unit" if study == "forest" else study
        monkeypatch.chdir(folder / project if (PROJECTS / project).is_dir() else folder)
        budget = ["--budget", str(number), "--trainers", "0", "--json"]
        document = json.loads(user.types(*words, *budget).stdout)
        assert (document["evaluations"], document["failed"]) == (number, 0), study
        assert document["best"]["value"] is not None


def test_the_ported_objective_runs(archive, store_settings, tmp_path):
    text = (PROJECTS / "optuna" / "port.py").read_text("utf-8").replace("range(10)", "range(1)")
    script = tmp_path / "port.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**environment(store_settings), "OMP_NUM_THREADS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) <= 1
