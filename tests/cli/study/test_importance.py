"""`archive study importance`, as it is typed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from archive import space
from archive.plots.data.importance import ImportanceReport
from archive.spaces.parameters import Parameters
from archive.store.records import Result
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import study, suggest

SEARCH = space.Space(lr=space.real(1e-3, 1.0, log=True), act=space.choice(["relu", "gelu", "elu"]))


@pytest.fixture
def user(archive, store_settings, tmp_path):
    whole = Parameters(SEARCH)
    rng = np.random.default_rng(0)
    drawn = [SEARCH.sample(rng) for _ in range(40)]
    archive.studies.create(study(space="parameters", space_config=whole.config))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [Result(float(np.log10(values["lr"]))) for values in drawn]
    networks = map(whole.network_of, drawn)
    archive.proposals.create("study", agent, suggest(networks), outcomes=outcomes)
    archive.studies.create(study("empty"))
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_importance_is_a_table_and_a_document(user):
    shown = user.types("study", "importance", "study").stdout
    first, second = (line for line in shown.splitlines() if " to " in line and "×" not in line)
    assert first.split()[0] == "lr" and second.split()[0] == "act"
    assert "lr × act" in shown
    assert "of the variance of unseen results" in shown
    assert "×" not in user.types("study", "importance", "study", "--pairs", "0").stdout
    document = json.loads(user.types("study", "importance", "study", "--json").stdout)
    assert faults(document, ImportanceReport) == []
    assert document["parameters"][0]["variance"]["share"] > 0.9
    refused = user.types("study", "importance", "empty", code=2).stderr
    assert "the study 'empty' has 0 whole results, and an analysis needs 10" in refused
