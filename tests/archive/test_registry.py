"""Plug-ins of installed packages: which are used, and what a message says of those that are not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from archive import doctor
from archive.cli.main import archive as command
from archive.errors import SettingsError
from archive.registry import Registry


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install packages, each with one module and entry points of agents."""

    def install(package: str, code: str, *points: str) -> None:
        site = tmp_path / package
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / package).mkdir()
        (site / package / "agent.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}.agent:Mine\n" for name in points]
        (info / "entry_points.txt").write_text("[archive.agents]\n" + "".join(lines))
        monkeypatch.syspath_prepend(site)

    return install


def agents() -> Registry:
    return Registry(
        "agent",
        "archive.agents",
        {"tw": "archive.agents.bayesopt.tree_wasserstein:TreeWasserstein"},
    )


@pytest.mark.parametrize(
    ("package", "code", "reason"),
    [
        (
            "r_raises",
            "def ready():\n    return {}['data']\n\nready()",
            r"KeyError: 'data' "
            r"\(agent.py, line 2\)",
        ),
        ("r_typo", "def ready(:", r"SyntaxError: .* \(agent.py, line 1\)"),
        (
            "r_import",
            "import json\nimport no_such_package",
            r"ModuleNotFoundError: .*no_such_p.* "
            r"\(agent.py, line 2\)",
        ),
        ("r_library", "import json\njson.loads('{')", r"JSONDecodeError: .* \(agent.py, line 2\)"),
        ("r_other", "Yours = 3", "AttributeError: module 'r_other.agent' has no attribute 'Mine'"),
    ],
)
def test_the_message_names_the_package_the_exception_and_the_line(install, package, code, reason):
    install(package, code, "mine")
    with pytest.raises(
        SettingsError, match=f"^the agent 'mine' of {package} 1.0 cannot be loaded: {reason}$"
    ):
        agents().load("mine")


def test_a_taken_name_is_reported(install):
    install("r_taker", "Mine = 3", "tw", "mine")
    sentences = ["the agent 'tw' of r_taker 1.0 is not used: a built-in agent has this name"]
    assert list(agents().unused()) == sentences
    assert agents().plug_ins() == ("mine",)
    assert agents().load("tw").__name__ == "TreeWasserstein"


def test_a_name_of_two_packages_is_refused(install):
    install("r_one", "Mine = 1", "mine")
    install("r_two", "Mine = 2", "mine", "yours")
    reason = (
        "the agent 'mine' is not used: r_one 1.0 and r_two 1.0 both have it, uninstall one of them"
    )
    assert list(agents().unused()) == [reason]
    with pytest.raises(SettingsError, match=f"^{reason}$"):
        agents().load("mine")

    assert agents().load("yours") == 2


def test_a_package_found_twice_counts_once(install, monkeypatch, tmp_path):
    install("r_twice", "Mine = 1", "mine")
    monkeypatch.syspath_prepend(tmp_path / "r_twice")
    assert not list(agents().unused())
    assert agents().load("mine") == 1


def test_the_doctor_examines_plug_ins(install):
    install("r_good", "Mine = 1", "mine", "tw")
    install("r_bad", "1 / 0", "broken")
    bad, good, taken = doctor.plug_ins([agents()])
    assert (bad.name, bad.state) == ("agent broken", "bad")
    assert bad.found.endswith(
        "cannot be loaded: ZeroDivisionError: division by zero (agent.py, line 1)"
    )
    assert (good.name, good.state, good.found) == ("agent mine", "ok", "r_good 1.0")
    assert (taken.state, taken.found) == ("note", *agents().unused())


def test_the_list_reports_a_taken_name_and_a_class_that_is_no_agent(install, monkeypatch):
    install("r_wrong", "class Mine:\n    pass", "nasbot", "wrong")
    from archive.agents import registry

    ours = Registry(registry.registry.kind, registry.registry.group, registry.registry.built_in)
    monkeypatch.setattr(registry, "registry", ours)
    shown = CliRunner().invoke(command, ["agents", "--json"])
    assert "'nasbot' of r_wrong 1.0 is not used: a built-in agent has this name" in shown.stderr
    rows = {row["agent"]: row for row in json.loads(shown.stdout)["agents"]}
    assert "the agent 'wrong' of r_wrong 1.0 must be an Agent, got" in rows["wrong"]["summary"]


WITHOUT_EXTRAS = """
import sys
for name in sys.argv[1].split():
    sys.modules[name] = None

import click
from click.testing import CliRunner

from archive import agents, kernels, spaces
from archive.cli.main import archive
from archive.errors import ArchiveError

space = spaces.get("nasbench201")
for name in agents.names():
    try:
        agents.get(name, space)
    except ArchiveError as error:
        print(name, error)

for name in kernels.names():
    kernels.get(name)


def helps(command, words):
    result = CliRunner().invoke(archive, [*words, "--help"])
    assert result.exit_code == 0, (words, result.exception)
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                helps(command.get_command(context, name), [*words, name])


helps(archive, [])
"""
EXTRAS = (
    "ConfigSpace accelerate lightning matplotlib mcp mlflow onnx onnxscript optuna pandas py2neo "
    "pytorch_lightning ray resvg_py smac starlette tensorboard timm transformers uvicorn wandb yaml"
)


def test_without_the_extras_agents_and_commands_load_or_name_their_extra() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, EXTRAS], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    refused = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    for name in ("tpe", "gp-optuna"):
        assert "pip install 'nas-archive[bench]'" in refused.pop(name)

    assert "pip install 'nas-archive[smac]'" in refused.pop("smac")
    assert all("space" in message for message in refused.values()), refused
