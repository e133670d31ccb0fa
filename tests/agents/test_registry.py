"""The registry of agents, and the door for those of other packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from archive import agents, spaces
from archive.agents.base import Agent, Suggestion
from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.registry import Registry


class First(Agent):
    """Always suggests the first network of the pool."""

    kind = "first"

    def propose(self, history, n, rng):
        return [Suggestion(self.space.initial_pool()[0])]


class Entry:
    def __init__(self, found):
        self.found = found

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def installed(monkeypatch):
    ours = Registry(agents.registry.kind, agents.registry.group, agents.registry.built_in)
    ours.__dict__["_offered"] = found = {}
    monkeypatch.setattr(agents, "registry", ours)
    return found


def test_built_in():
    assert {"evolution", "nasbot", "rand", "random"} <= set(agents.names())
    assert agents.names() == tuple(sorted(agents.names()))
    assert agents.settings("nasbot") == {"n_initial": 10, "acquisition": "ei", "samples": 10}


def test_an_agent_of_another_package(installed):
    installed["first"] = Entry(First)
    assert "first" in agents.names()
    assert agents.get("first", spaces.get("mlp")).kind == "first"


def test_another_package_cannot_take_a_built_in_name(installed):
    installed["nasbot"] = Entry(First)
    assert agents.get("nasbot", spaces.get("mlp")).kind == "nasbot"


def test_an_agent_that_does_not_load(installed):
    installed["broken"] = Entry(ImportError("no module"))
    with pytest.raises(SettingsError, match="agent 'broken' of another package cannot be loaded: no module"):
        agents.get("broken", spaces.get("mlp"))


def test_something_that_is_no_agent(installed):
    installed["list"] = Entry(lambda space: [])
    with pytest.raises(SettingsError, match="must give an Agent, got list"):
        agents.get("list", spaces.get("mlp"))


def test_no_agent():
    with pytest.raises(UnknownNameError) as caught:
        agents.get("simulated-annealing", spaces.get("mlp"))
    assert caught.value.kind == "agent"


@pytest.mark.parametrize("kind", ["portfolio", "bananas", "tw", "nasbot"])
def test_a_value_of_the_wrong_type_is_named(kind):
    space = spaces.get("nasbench201")
    setting = "n_design" if kind == "portfolio" else "n_initial"
    with pytest.raises(UsageError, match=f"agent {kind} cannot be made with {setting}='x'"):
        agents.get(kind, space, **{setting: "x"})


def test_names_load_no_numerics():
    code = (
        "import sys; from archive import agents; agents.names(); print(*(m in sys.modules for m in ('numpy', 'scipy')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
