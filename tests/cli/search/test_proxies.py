"""`archive search --proxies` as a user has it: trainers measure first, and the agent uses what they
have measured."""

from __future__ import annotations

import json

import pytest

from archive import spaces
from archive.agents import initial_design
from archive.agents.proxies import knowledge
from archive.agents.replay import recheck
from archive.trainer.proxies.measurement import SOURCE, sample_of
from tests.support.commands import parsed, shell, table

COUNT = 6
"""More than the least number with which the agent uses proxies, here."""


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.mark.whole
@pytest.mark.lasts(20)
def test_the_first_proposal_uses_what_the_trainers_measured(archive, user, monkeypatch):
    # Agents use proxies of twenty networks and more, which trainers measure for half a minute.
    for module in (knowledge, initial_design):
        monkeypatch.setattr(module, "LEAST", COUNT - 1)

    command = (
        "search",
        "--agent",
        "portfolio",
        "--task",
        "digits",
        "--space",
        "mlp",
        "--study",
        "s",
    )
    options = ("--trainers", "2", "--device", "cpu", "--proxies", str(COUNT), "--json")
    done = user.types(*command, "--budget", "2", *options)
    assert done.returncode == 0, done.stderr
    assert f"measure the proxies of {COUNT} networks before the first proposal" in done.stderr
    assert json.loads(done.stdout)["evaluations"] == 2
    proposals = archive.proposals.list("s")
    assert all(each.based_on["proxies"]["source"] == SOURCE for each in proposals)
    assert proposals[0].based_on["proxies"]["networks"] >= COUNT
    measured = {
        row[0] for row in archive.query("MATCH (a:Architecture)-[:MEASURED]->() RETURN a.key").rows
    }
    sample = {each.key for each in sample_of(spaces.get("mlp"), COUNT)}
    assert measured == sample | {each.architecture_key for each in proposals}
    assert len(recheck(archive, "s").same) == 2
    # The same command again waits for nothing.
    again = user.types(*command, "--budget", "2", *options)
    assert "measure the proxies" not in again.stderr


@pytest.mark.lasts(8)
def test_a_table_says_where_its_proxies_come_from(archive, user, tmp_path):
    command = (
        "search",
        "--agent",
        "random",
        "--task",
        table(tmp_path),
        "--budget",
        "2",
        "--proxies",
    )
    done = user.runs(*command)
    assert done.returncode == 0, done.stderr
    assert "archive import proxies reads published scores" in done.stderr


def test_the_number_may_be_left_out():
    for command in (("trainer", "start"), ("search",)):
        assert parsed(*command)["proxies"] is None
        assert parsed(*command, "--proxies")["proxies"] == 100
        assert parsed(*command, "--proxies", "--study", "s")["proxies"] == 100
        assert parsed(*command, "--proxies", "0")["proxies"] == 0
