"""Warm starts from published networks: the stored source, its replay, and refusals."""

from __future__ import annotations

from functools import cache

import pytest
from torch import nn

from archive import agents, space, spaces
from archive.agents.loop import history_of, run
from archive.agents.replay import recheck
from archive.agents.study_setup import open_study
from archive.agents.transfer import zoo_source
from archive.agents.transfer.zoo_source import PREDICTED, published_results
from archive.errors import UsageError
from archive.queries.results_by_task import results_by_task
from archive.store.evaluations import Evaluations
from archive.store.records import Result, Study
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.zoo.sketching import sketch_of

COUNT = 24


@pytest.fixture(autouse=True)
def few_networks(monkeypatch):
    monkeypatch.setattr(zoo_source, "MOST", 20)
    monkeypatch.setattr(zoo_source, "FORM", NetworkForm((3, 16, 16), 10, "classification"))


@cache
def network_of(width):
    layers = [nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)]
    return sketch_of(nn.Sequential(*layers, *head), (3, 64, 64)).architecture


def publish(archive, widths, protocol="timm/in1k@64"):
    """Store networks whose result grows with their width."""
    archive.architectures.add(list(map(network_of, widths)))
    rows = []
    for width in widths:
        network = network_of(width)
        origin = {"source": "timm", "family": f"family {width % 5}"}
        rows.append((f"{protocol}/{width}", network.key, Result(60.0 + width, provenance=origin)))

    writer = Evaluations(archive.connection, archive.architectures)
    writer.add("imagenet-1k", protocol, rows, direction="maximise")


def cnn(name="warm", space="cnn", **changes):
    return Study(name, "t", "t/1", space, "accuracy", **changes)


def test_predictions_are_a_source_that_is_kept_and_replayed(archive):
    publish(archive, range(2, 2 + COUNT))
    publish(archive, range(2, 8), "timm/other_in1k@64")
    publish(archive, range(2, 3 + COUNT), "timm/sw_in12k_ft_in1k@64")
    agent = agents.get("source-best", spaces.get("cnn"))
    study = open_study(archive, cnn(), budget=3, sources=["zoo"], agent=agent)
    (name,) = archive.studies.sources("warm")
    (source,) = history_of(archive, study).sources
    assert (source.study, source.task, source.protocol) == (name, PREDICTED, "timm/in1k")
    assert len(source.observations) == 20
    assert len({observed.score for observed in source.observations}) > 10

    # More results are published, and the study keeps its source.
    before = len(published_results(archive))
    publish(archive, [40])
    open_study(archive, cnn(), sources=["zoo"])
    assert archive.studies.sources("warm") == [name]
    assert len(published_results(archive)) == before + 1

    def serve(_):
        while (claim := archive.proposals.claim("worker", study="warm")) is not None:
            archive.proposals.complete(claim.id, claim.token, Result(value=1.0))

    list(run(archive, study, agent, version="0", wait=serve))
    proposals = archive.proposals.list("warm")
    assert all(name in proposal.based_on["observations"] for proposal in proposals)
    assert recheck(archive, "warm").differing == ()

    # A prediction is no result.
    assert [group.rows for group in results_by_task(archive.connection, PREDICTED, None)] in (
        [],
        [()],
    )


def test_what_published_networks_cannot_tell_is_refused_in_one_line(archive):
    with pytest.raises(UsageError, match="the archive has 0: archive import zoo timm"):
        open_study(archive, cnn(), sources=["zoo"])

    publish(archive, range(2, 2 + COUNT))
    listed = spaces.get("choices", decisions={"act": ["relu", "gelu"]}, form="set")
    parameters = space.Space(width=space.integer(1, 8))
    for study, agent, words in (
        (cnn(space="mlp"), None, "mlp have linear layers alone, .*: leave the source 'zoo' out"),
        (cnn(space="choices", space_config=listed.config), None, "choices cannot be built"),
        (
            cnn(),
            agents.get("evolution", spaces.get("cnn")),
            "the agent evolution learns from its own task",
        ),
        (
            cnn(space="parameters", space_config=parameters.json()),
            None,
            "without a model has no networks",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            open_study(archive, study, sources=["zoo"], agent=agent)

    assert not archive.studies.names()
