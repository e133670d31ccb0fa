"""The catalogue knows every built-in agent, and `archive agents` shows it."""

from __future__ import annotations

import json
from dataclasses import astuple

import pytest
from click.testing import CliRunner

from archive import agents
from archive.agents.catalogue import CARDS
from archive.cli.main import archive as command
from archive.errors import UnknownNameError


def test_every_built_in_agent_has_a_card():
    assert set(agents.registry.built_in) <= set(CARDS)


def test_cards_are_complete_and_sorted():
    assert list(CARDS) == sorted(CARDS)
    for card in CARDS.values():
        assert all(part for part in astuple(card) if isinstance(part, str))


def test_cards_of_presets_tell_both():
    with_presets = {name for name in CARDS if "preset" in agents.settings(name)}
    # The card of `gp` speaks for all of its kind.
    for name in with_presets - {name for name in CARDS if name.startswith("gp-")}:
        default, paper = CARDS[name].summary.split("preset=paper")
        assert default.rstrip().endswith(";")
        assert paper


def test_the_command_lists_all():
    shown = json.loads(CliRunner().invoke(command, ["agents", "--json"]).output)
    assert [row["agent"] for row in shown] == list(agents.names())
    table = CliRunner().invoke(command, ["agents"])
    assert table.exit_code == 0
    assert "Kandasamy" in table.output


def test_the_command_shows_one_with_its_settings():
    shown = json.loads(CliRunner().invoke(command, ["agents", "nasbot", "--json"]).output)
    assert shown["settings"] == agents.settings("nasbot")
    assert shown["paper"] == CARDS["nasbot"].paper
    text = CliRunner().invoke(command, ["agents", "nasbot"]).output
    assert "n_initial" in text
    with pytest.raises(UnknownNameError):
        CliRunner().invoke(command, ["agents", "nasbott"], catch_exceptions=False)
