"""`archive init`: the project that it writes runs; `archive spaces FILE` shows its parameters."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from archive.cli.init import FILES
from archive.cli.main import archive as command
from archive.errors import SettingsError, UsageError
from archive.parameters.files import load
from archive.trainer.recipes.registry import RecipeAccess


def invoke(*words):
    """Type `archive …`. A command that is invoked without its group keeps other names of --help."""
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "mine"
    result = invoke("init", str(folder), "--json")
    return json.loads(result.stdout)


def test_the_files_are_those_of_a_search(project):
    folder = Path(project["folder"])
    assert sorted(project["files"]) == sorted(FILES)
    assert load(str(folder / "space.toml")).names[:2] == ("depth", "width")
    source = RecipeAccess(folder / "results").find("mine")
    assert source.name == "mine"
    assert len((folder / "README.md").read_text().splitlines()) == 5


def test_no_file_is_overwritten(project):
    with pytest.raises(UsageError, match="exists: name a new folder"):
        invoke("init", project["folder"])


@pytest.mark.whole
@pytest.mark.lasts(25)
def test_the_printed_command_searches(project):
    """With a server, a trainer and a home of its own; `tests/docs/test_projects.py` shares them."""
    archive = shlex.join([sys.executable, "-m", "archive.cli.main"])
    command = project["command"].replace("&& archive ", f"&& {archive} ")
    command = command.replace("--budget 12", "--budget 2 --json")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=300, check=True
    )
    result = json.loads(done.stdout)
    assert (result["study"], result["evaluations"], result["failed"]) == ("mine", 2, 0)


def test_a_file_of_parameters_is_shown(project):
    file = f"{project['folder']}/space.toml"
    shown = invoke("spaces", file).stdout
    assert "0.0001 to 0.1, log scale" in shown
    assert "depth >= 2" in shown
    assert "width * depth <= 512" in shown
    document = json.loads(invoke("spaces", file, "--json").stdout)
    assert document["combinations"] is None
    assert document["parameters"][4]["when"] == "depth >= 2"


def test_a_wrong_file_is_named_with_its_line(tmp_path):
    file = tmp_path / "space.toml"
    file.write_text("[parameters]\nwidth = [8, 16]\ndepth = {integer = [4, 1]}\n")
    with pytest.raises(SettingsError, match=r"space\.toml, line 3: depth"):
        invoke("spaces", str(file))

    with pytest.raises(UsageError, match="takes a file"):
        invoke("spaces", "cnn")
