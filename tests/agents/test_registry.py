"""The registry of agents, with those of other packages."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import Agent, Suggestion
from archive.agents.registry import registry
from archive.agents.replay import recheck
from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.registry import Registry


class First(Agent):
    """Always suggests the first network of the pool."""

    kind = "first"

    def propose(self, history, n, rng):
        return [Suggestion(self.space.initial_pool()[0])]


class Renaming(First):
    """Keeps its settings under other names than those of its arguments, or under names of another
    meaning."""

    kind = "renaming"

    def __init__(self, space, alpha=0.5, layers=(1, 2), n=3, **others):
        super().__init__(space)
        self._weight = 2 * alpha
        self.n = n * n
        self._others = others


@dataclass(frozen=True)
class Generated(First):
    """A constructor that a decorator has made."""

    kind = "generated"

    space: spaces.Space
    alpha: float = 0.5


class Entry:
    def __init__(self, found):
        self.found = found

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found

        return self.found


@pytest.fixture
def installed(monkeypatch):
    ours = Registry(registry.kind, registry.group, registry.built_in)
    ours.__dict__["_offered"] = by_key = {}
    monkeypatch.setattr("archive.agents.registry.registry", ours)
    return by_key


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
    with pytest.raises(
        SettingsError,
        match="agent 'broken' of another package cannot be loaded: ImportError: no module",
    ):
        agents.get("broken", spaces.get("mlp"))


def test_something_that_is_no_agent(installed):
    installed["list"] = Entry(lambda space: [])
    with pytest.raises(
        SettingsError, match="the agent 'list' of another package must be an Agent, got list"
    ):
        agents.get("list", spaces.get("mlp"))

    installed["number"] = Entry(5)
    for use in (lambda: agents.settings("number"), lambda: agents.get("number", spaces.get("mlp"))):
        with pytest.raises(
            SettingsError,
            match="the agent 'number' of another package must be a class or a function",
        ):
            use()

    installed["helpless"] = Entry(lambda: None)
    with pytest.raises(
        SettingsError,
        match=r"'helpless' of another package cannot be made: "
        r"TypeError: .* takes 0 pos",
    ):
        agents.get("helpless", spaces.get("mlp"))


def test_no_agent():
    with pytest.raises(UnknownNameError) as caught:
        agents.get("simulated-annealing", spaces.get("mlp"))

    assert caught.value.kind == "agent"


@pytest.mark.parametrize(
    ("kind", "setting", "value", "words"),
    [
        ("portfolio", "n_design", "x", "a whole number, got 'x'"),
        ("portfolio", "proxies", "no", "true or false, got 'no'"),
        ("nasbot", "n_initial", math.nan, "a whole number, got nan"),
        ("tw", "kappa", "x", "a number or none, got 'x'"),
        ("tw", "kappa", True, "a number or none, got True"),
        ("bananas", "layers", 1.5, "a whole number or none, got 1.5"),
        ("bananas", "n_initial", None, "a whole number, got None"),
        ("hill-climbing", "children", 1.5, "a whole number, got 1.5"),
        ("morphism", "lam", "x", "a number, got 'x'"),
        ("tw", "acquisition", 3, "a text or none, got 3"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(kind, setting, value, words):
    with pytest.raises(UsageError, match=f"^{setting} of agent {kind} must be {words}$"):
        agents.get(kind, spaces.get("nasbench201"), **{setting: value})


def test_numbers_of_numpy_are_numbers():
    made = agents.get("tw", spaces.get("nasbench201"), kappa=np.float32(0.5), n_initial=np.int64(4))
    assert made.config["kappa"] == 0.5 and made.config["n_initial"] == 4
    assert agents.get("tw", spaces.get("nasbench201"), kappa=1).config["kappa"] == 1


def test_settings_are_recorded_as_they_were_given(installed):
    installed["renaming"] = Entry(Renaming)
    mlp = spaces.get("mlp")
    assert agents.settings("renaming") == {"alpha": 0.5, "layers": (1, 2), "n": 3}
    assert agents.get("renaming", mlp).config == {"alpha": 0.5, "layers": [1, 2], "n": 3}
    made = Renaming(mlp, 0.25, n=np.int64(4), path=Path("a/b"), deep={"x": (1,)})
    assert made.config == {
        "alpha": 0.25,
        "layers": [1, 2],
        "n": 4,
        "path": "a/b",
        "deep": {"x": [1]},
    }
    again = agents.get("renaming", mlp, **json.loads(json.dumps(made.config)))
    assert again.config == made.config
    assert again._weight == made._weight == 0.5
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.config == made.config
        assert other.n == 16


def test_what_is_recorded_does_not_change_with_what_was_given():
    layers = [1]
    made = Renaming(spaces.get("mlp"), layers=layers)
    layers.append(2)
    made.config["layers"].append(3)
    made.config["n"] = 0
    assert made.config == {"alpha": 0.5, "layers": [1], "n": 3}


def test_constructors_that_are_inherited_or_generated():
    mlp = spaces.get("mlp")
    assert First(mlp).config == {}
    assert Generated(mlp, alpha=1.0).config == {"alpha": 1.0}

    class Narrow(Renaming):
        def __init__(self, space, beta=1):
            super().__init__(space, alpha=beta / 2)

    assert Narrow(mlp).config == {"beta": 1}


@dataclass(frozen=True, kw_only=True)
class Options:
    beta: float = 1.0
    names: tuple[str, ...] = ()


class Grouped(First):
    """Takes some of its settings in one argument."""

    kind = "grouped"

    def __init__(self, space, options=Options(), alpha=0.5):
        super().__init__(space)
        self.options = options


def test_settings_in_a_dataclass_go_by_their_own_names(installed):
    installed["grouped"] = Entry(Grouped)
    mlp = spaces.get("mlp")
    assert agents.settings("grouped") == {"beta": 1.0, "names": (), "alpha": 0.5}
    made = agents.get("grouped", mlp, names=("a", "b"), alpha=2)
    assert made.options == Options(names=("a", "b"))
    assert made.config == {"beta": 1.0, "names": ["a", "b"], "alpha": 2}
    assert made.config == Grouped(mlp, Options(names=("a", "b")), 2).config
    assert agents.get("grouped", mlp, **json.loads(json.dumps(made.config))).config == made.config
    with pytest.raises(UnknownNameError, match="unknown setting of agent grouped 'options'"):
        agents.get("grouped", mlp, options=Options())


def test_a_setting_that_json_has_not_is_named():
    made = Renaming(spaces.get("mlp"), alpha=1, callback=len)
    with pytest.raises(
        UsageError,
        match=r"agent renaming cannot be recorded: its setting "
        r"callback .* got <built-in",
    ):
        _ = made.config


def test_settings_without_names_are_refused():
    class Positional(First):
        def __init__(self, space, *layers):
            super().__init__(space)

    mlp = spaces.get("mlp")
    assert Positional(mlp).config == {}
    with pytest.raises(UsageError, match=r"settings need names, got \[1, 2\] by position"):
        _ = Positional(mlp, 1, 2).config


def test_a_study_of_another_package_s_agent_can_be_opened_again(archive, installed):
    installed["renaming"] = Entry(Renaming)
    study = agents.study(archive, "mine", "mlp", seed=1)
    (asked,) = study.ask(agents.get("renaming", spaces.get("mlp"), alpha=2, layers=[7]))
    (row,) = archive.query("MATCH (a:Agent {kind: 'renaming'}) RETURN a.config AS config").rows
    assert json.loads(row[0]) == {"alpha": 2, "layers": [7], "n": 3}
    assert study.tell(asked, 0.5)
    assert recheck(archive, "mine").same == (asked.id,)


def test_names_load_no_numerics():
    code = (
        "import sys; from archive import agents; agents.names(); print(*(m in sys.modules for m "
        "in ('numpy', 'scipy')))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == ["False", "False"]
