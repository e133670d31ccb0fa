"""The catalogue of agents: metadata of every agent, and the command `archive agents`."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from click.testing import CliRunner

from archive import agents, spaces
from archive.agents.base import Agent, AgentInfo
from archive.agents.catalogue import copy_text, info, infos
from archive.agents.registry import registry
from archive.cli.main import archive as command
from archive.errors import UnknownNameError, UsageError
from archive.registry import Registry

BUILT_IN = tuple(registry.built_in)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_built_in_agents_say_what_they_are(kind):
    metadata = info(kind)
    assert all((metadata.summary, metadata.paper, metadata.cost, metadata.when))
    assert registry.load(kind).kind == kind
    assert set(metadata.spaces) <= set(spaces.names())


def test_the_copy_for_lists_is_that_of_the_classes():
    copied = (files("archive.agents") / "catalogue.json").read_text(encoding="utf-8")
    assert copied == copy_text(), "run: python -m archive.agents.catalogue agents/catalogue.json"


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if "preset" in agents.settings(kind)])
def test_agents_with_presets_tell_both(kind):
    # The metadata of `gp` describe the preset for all gp-*.
    if kind.startswith("gp-"):
        return

    assert info(kind).preset


def test_agents_of_one_space_refuse_the_others():
    for kind in BUILT_IN:
        for space in ("cnn", "mlp") if info(kind).spaces else ():
            if space in info(kind).spaces:
                agents.get(kind, spaces.get(space))
            else:
                with pytest.raises(UsageError, match=space):
                    agents.get(kind, spaces.get(space))


class Plain(Agent):
    """Suggests nothing. Never."""

    def propose(self, history, n, rng):
        return []


class Entry:
    def __init__(self, load):
        self.load = load


def test_agents_of_other_packages(monkeypatch):
    ours = Registry(registry.kind, registry.group, registry.built_in)
    ours.__dict__["_offered"] = {"plain": Entry(lambda: Plain), "broken": Entry(lambda: 1 / 0)}
    monkeypatch.setattr("archive.agents.registry.registry", ours)
    catalogue = infos()
    assert list(catalogue) == list(agents.names())
    assert catalogue["plain"] == AgentInfo(summary="Suggests nothing. Never")
    assert (
        "the agent 'broken' of another package cannot be loaded: ZeroDivisionError: division by "
        "zero"
    ) in catalogue["broken"].summary
    table = CliRunner().invoke(command, ["agents", "--json"])
    assert {row["agent"] for row in json.loads(table.output)["agents"]} >= {"plain", "broken", "tw"}


def test_the_command_lists_all():
    shown = json.loads(CliRunner().invoke(command, ["agents", "--json"]).output)
    assert [row["agent"] for row in shown["agents"]] == list(agents.names())
    table = CliRunner().invoke(command, ["agents"])
    assert table.exit_code == 0
    assert info("nasbot").when in table.output
    assert "Kandasamy" in CliRunner().invoke(command, ["agents", "nasbot"]).output


def test_the_command_shows_one_with_its_settings():
    shown = json.loads(CliRunner().invoke(command, ["agents", "nasbot", "--json"]).output)
    assert shown["settings"] == agents.settings("nasbot")
    assert shown["paper"] == info("nasbot").paper
    text = CliRunner().invoke(command, ["agents", "nasbot"]).output
    assert "n_initial" in text
    with pytest.raises(UnknownNameError):
        CliRunner().invoke(command, ["agents", "nasbott"], catch_exceptions=False)
