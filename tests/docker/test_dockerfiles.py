"""The Dockerfiles: linted, pinned, and every command that they run is run, without a container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from archive import __version__
from tests.support import ROOT
from tests.support.docker_files import (
    DOCKER,
    DOCKERFILES,
    copy_context,
    health,
    ignored,
    instructions,
    last,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
each_file = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)


def commands(path: Path) -> list[str]:
    """Return the commands of the RUN instructions, cut at `&&`."""
    runs = [each.value for each in instructions(path) if each.name == "RUN"]
    return [re.sub(r"\s+", " ", part).strip() for run in runs for part in run.split("&&")]


def sh(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    given = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | variables
    done = subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def test_there_is_an_image_for_trainers_and_one_for_agents():
    assert [path.stem for path in DOCKERFILES] == ["agent", "trainer"]


@each_file
def test_the_linter_finds_nothing(path):
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if linter is None:
        pytest.skip("hadolint is not installed: pip install -e '.[dev]'")

    done = subprocess.run(
        [linter, "--no-color", str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@each_file
def test_every_base_is_pinned_to_a_whole_release(path):
    bases = [each.value.split()[0] for each in instructions(path) if each.name == "FROM"]
    assert all(re.search(r":\d+\.\d+\.\d+-", base) for base in bases), bases


@each_file
def test_the_image_runs_as_a_user_who_is_nobody_on_the_host(path):
    user, group = last(path, "USER").value.split(":")
    assert int(user) >= 10_000 and int(group) >= 10_000
    made = next(command for command in commands(path) if command.startswith("useradd "))
    assert f"--uid {user}" in made
    home = last(path, "VOLUME").value
    assert f"--home-dir {home} " in made
    assert f"ARCHIVE_HOME={home}" in last(path, "ENV").value
    assert last(path, "WORKDIR").value == home


@each_file
def test_nothing_secret_is_built_in(path):
    text = path.read_text("utf-8").upper()
    assert not any(word in text for word in ("PASSWORD", "SECRET", "TOKEN", "ADD HTTP"))
    assert not [each for each in instructions(path) if each.name == "ARG"]


def test_every_command_of_the_images_is_one_that_a_test_here_runs():
    known = (
        "python -m pip wheel ",
        "pip install ",
        "python3 -m venv ",
        "useradd ",
        "apt-get ",
        "rm -rf /var/lib/apt/",
    )
    for path in DOCKERFILES:
        assert [command for command in commands(path) if not command.startswith(known)] == []


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """The wheel, built by the images' own command from what .dockerignore lets through."""
    folder = tmp_path_factory.mktemp("build")
    copy_context(folder / "source")
    (command,) = {
        command for path in DOCKERFILES for command in commands(path) if " pip wheel " in command
    }
    # The environment of the tests has setuptools; without isolation, nothing is downloaded.
    sh(
        command.replace("--wheel-dir /wheels", "--no-build-isolation --wheel-dir ../wheels"),
        folder / "source",
    )
    return folder / "wheels"


@pytest.mark.whole
def test_the_wheel_that_is_built_has_all_parts(wheels):
    (wheel,) = wheels.glob("*.whl")
    assert wheel.name.startswith(f"nas_archive-{__version__}-")
    names = set(zipfile.ZipFile(wheel).namelist())
    built = {
        path.relative_to(ROOT)
        for top in ("agents", "kernels", "trainer", "cli")
        for path in ROOT.glob(f"{top}/**/*.py")
    }
    assert {f"archive/{path}" for path in built} <= names
    assert not [
        name for name in names if name.startswith(("tests/", "docker/")) or "__pycache__" in name
    ]


@pytest.mark.whole
@each_file
def test_the_wheel_is_installed_as_the_image_installs_it(path, wheels):
    (command,) = (command for command in commands(path) if command.startswith("pip install"))
    assert "--constraint /opt/archive/constraints.txt" in command
    here = command.replace("/wheels/", f"{wheels}/").replace("/opt/archive/", f"{DOCKER}/")
    # Dependencies are left out: they are hundreds of megabytes, and the pins have a test of their
    # own.
    done = sh(f"python -m {here} --dry-run --no-deps --no-index --force-reinstall", wheels)
    assert f"nas-archive-{__version__}" in done.stdout


def test_the_pins_are_whole_and_within_the_bounds_of_the_project():
    lines = (DOCKER / "constraints.txt").read_text("utf-8").splitlines()
    pins = {
        found[1].lower(): found[2]
        for line in lines
        if (found := re.fullmatch(r"([\w-]+)==([\w.]+)", line))
    }
    assert len(pins) == sum(not line.startswith("#") for line in lines)
    bounds = {
        each.name.lower(): each.specifier for each in map(Requirement, PROJECT["dependencies"])
    }
    assert [name for name in bounds if name not in pins] == []
    assert [name for name, bound in bounds.items() if not bound.contains(pins[name])] == []


@each_file
def test_the_environment_is_made_where_the_path_looks_for_it(path, tmp_path):
    (command,) = (command for command in commands(path) if " -m venv " in command)
    place = command.split()[-1]
    assert last(path, "ENV").value.split()[0].startswith(f"PATH={place}/bin:")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(tmp_path / "with-the-module")
    sh(command.replace(place, f"--without-pip {tmp_path}{place}"), tmp_path)
    assert (tmp_path / place.lstrip("/") / "bin" / "python3").exists()


@each_file
def test_the_user_can_be_made(path, tmp_path):
    (command,) = (command for command in commands(path) if command.startswith("useradd "))
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("only root makes users, where there is useradd")

    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group", "shadow", "gshadow"):
        (tmp_path / "etc" / name).touch()

    sh(command.replace("useradd ", f"useradd --prefix {tmp_path} "), tmp_path)
    (line,) = (tmp_path / "etc" / "passwd").read_text().splitlines()
    name, _, user, _, _, home, shell = line.split(":")
    assert (name, user, home) == (
        "archive",
        last(path, "USER").value.split(":")[0],
        last(path, "VOLUME").value,
    )
    assert shell == "/usr/sbin/nologin"


@each_file
def test_the_systems_packages_are_there(path, tmp_path):
    wanted = [command for command in commands(path) if command.startswith("apt-get install")]
    if wanted and (
        shutil.which("apt-get") is None or not any(Path("/var/lib/apt/lists").glob("*Packages*"))
    ):
        pytest.skip("apt has no lists of packages here")

    for command in wanted:
        done = sh(command.replace("apt-get ", "apt-get --simulate ", 1), tmp_path)
        assert "Inst " in done.stdout or "already the newest" in done.stdout


def test_the_context_holds_what_is_built_and_nothing_else():
    for name in ("secrets/password", "compose.yaml", "trainer.Dockerfile"):
        assert ignored(Path("docker") / name)

    for name in (
        ".git/config",
        "tests/conftest.py",
        ".env",
        "archive/__pycache__/graph.pyc",
        "trainer/a/__pycache__/b",
    ):
        assert ignored(Path(name))

    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "archive/architecture/graph.py",
        "archive/queries/a.cypher",
        "cli/main.py",
    ):
        assert not ignored(Path(name))

    copied = [
        value
        for path in DOCKERFILES
        for each in instructions(path)
        if each.name == "COPY"
        for value in [each.value]
    ]
    sources = {value.split()[0] for value in copied if not value.startswith("--from")}
    assert not [source for source in sources if source != "." and ignored(Path(source))]


@each_file
def test_entry_point_and_health_check_are_commands_of_the_archive(path):
    entry = last(path, "ENTRYPOINT").arguments
    assert entry == ["archive"]
    for arguments in (entry + last(path, "CMD").arguments, health(path)):
        assert arguments[0] in PROJECT["scripts"]
        # --help parses all that stands before it, and does nothing.
        done = sh(" ".join([*arguments, "--help"]), ROOT)
        assert done.stdout.startswith("Usage: archive ")
