"""`archive study show|best` of several objectives with noise: means over replicates, and the
recommended set."""

from __future__ import annotations

import json

import pytest

from archive.cli.study.best import BestList
from archive.cli.study.command import StudyDocument
from archive.store.records import Objective, Result
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import Repeat, Suggestion, cells, study


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as opened:
        yield opened


def told(archive, accuracies, seeds):
    """Two evaluations of each network, with a loss that is the same in both."""
    archive.studies.create(study(objective="accuracy", further=(Objective("loss", "minimise"),)))
    agent = archive.proposals.register_agent("random", {}, "1")
    pairs = [(network, at) for network in cells(len(accuracies) // 2) for at in range(2)]
    outcomes = [
        Result(value, {"accuracy": value, "loss": float(at // 2)}, seed=at if seeds else None)
        for at, value in enumerate(accuracies)
    ]
    suggestions = [(Repeat if at else Suggestion)(network) for network, at in pairs]
    archive.proposals.create("study", agent, suggestions, outcomes=outcomes)


def test_noisy_objectives_have_a_recommended_set_beside_the_measured_one(archive, user):
    # The second network is lucky once; its mean is that of the first one, which has the smaller
    # loss.
    told(archive, [0.5, 0.5, 0.9, 0.1, 0.8, 0.6], seeds=True)
    document = json.loads(user.types("study", "best", "study", "--json").stdout)
    assert faults(document, BestList) == []
    assert [(one["number"], one["evaluations"]) for one in document["pareto"]["proposals"]] == [
        (4, 2),
        (0, 2),
    ]
    assert document["pareto"]["proposals"][0]["values"] == {
        "accuracy": pytest.approx(0.7),
        "loss": 2.0,
    }
    recommended = document["recommended"]
    # Three networks are too few for a model: they have their means.
    assert recommended["noise"] == {"accuracy": None, "loss": 0.0}
    assert [one["number"] for one in recommended["proposals"]] == [4, 0]
    expected = recommended["proposals"][0]["expected"]
    assert expected["accuracy"] == {
        "mean": pytest.approx(0.7),
        "low": None,
        "high": None,
        "evaluations": 2,
    }
    assert expected["loss"] == {"mean": 2.0, "low": 2.0, "high": 2.0, "evaluations": 2}
    text = user.types("study", "best", "study").stdout
    assert text.index("Pareto set") < text.index("Recommended Pareto set") and "evaluations" in text
    shown = json.loads(user.types("study", "show", "study", "--json").stdout)
    assert faults(shown, StudyDocument) == [] and shown["pareto"] == document["pareto"]
    archive.query(
        "MATCH (s:Space) SET s.config = $config",
        {"config": '{"table": "/elsewhere/t.csv"}'},
        write=True,
    )
    done = user.types("study", "best", "study")
    assert "without estimates: the table /elsewhere/t.csv" in " ".join(done.stderr.split())


def test_without_noise_the_measured_set_is_alone(archive, user):
    told(archive, [0.5, 0.5, 0.7, 0.7], seeds=True)
    document = json.loads(user.types("study", "best", "study", "--json").stdout)
    assert document["recommended"] is None
    assert [one["number"] for one in document["pareto"]["proposals"]] == [2, 0]
    assert "Recommended" not in user.types("study", "best", "study").stdout
