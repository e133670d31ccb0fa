"""Replays of proposals whose record is damaged or differs."""

from __future__ import annotations

import pytest

from archive import agents
from archive.agents.replay import recheck
from archive.errors import UsageError
from tests.support.stores import cells, evaluate


def test_a_basis_that_names_what_cannot_be_there_is_refused_at_once(archive):
    evaluate(archive, [0.5, 0.25], "one")
    lie = '{"observations": {"one": "0-999999999"}, "pending": "", "failed": "", "wanted": 1}'
    change = "MATCH (p:Proposal {number: 0}) SET p.based_on = $text"
    for text in (
        lie,
        lie.replace("0-999999999", "0").replace('"failed": ""', '"failed": "0-999999999"'),
    ):
        archive.query(change, {"text": text}, write=True)
        with pytest.raises(UsageError, match="proposal of the study 'one' was based on"):
            recheck(archive, "one")

    archive.query(change, {"text": '{"wanted": 1}'}, write=True)
    assert recheck(archive, "one").unexplained == ("one#00000", "one#00001")


def test_one_network_that_would_not_be_proposed_says_nothing_of_the_others(archive):
    agents.study(archive, "mine", "nasbench201", seed=3).ask("random", 4)
    other = cells(1)[0].key
    archive.query(
        "MATCH (p:Proposal {number: 1}) SET p.architecture = $key", {"key": other}, write=True
    )
    replayed = recheck(archive, "mine")
    assert replayed.differing == ("mine#00001",)
    assert replayed.same == ("mine#00000", "mine#00002", "mine#00003")
