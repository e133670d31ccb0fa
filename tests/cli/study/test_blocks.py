"""`archive study blocks`, as it is typed: scores in a study of their own, and runs that go on."""

from __future__ import annotations

import dataclasses
import json

import pytest

from archive import agents, spaces
from archive.architecture.decoders import costs
from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import Attention, SwiGlu
from archive.errors import TrainingError
from archive.searches.blocks import BlockReport, study_blocks
from archive.store.records import Result, Study
from archive.trainer.blocks.distillation import BlockDistiller
from archive.trainer.nn import builders
from archive.trainer.storage import weights_file
from archive.trainer.tasks import registry
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import suggest

SPACE = spaces.get(
    "decoder",
    widths=[16],
    max_blocks=2,
    heads=[2],
    kv_heads=[1, 2],
    windows=[8],
    mixers=["attention", "sliding_attention", "none"],
    feed_forwards=["swiglu", "none"],
    expansions=[1, 2],
)

pytestmark = pytest.mark.lasts(8)


@pytest.fixture
def parent(archive, store_settings):
    """A stored decoder with weights, `texts#00000`."""
    task = registry.get("pydoc-topics")
    protocol = task.protocol()
    blocks = (Block(Attention(2, 2, 8, 10_000.0), SwiGlu(16)), Block(None, SwiGlu(32)))
    network = Design(256, 16, blocks).graph()
    study = Study(
        "texts",
        task.name,
        protocol.name,
        "decoder",
        task.objective,
        task.direction,
        budget=9,
        space_config=SPACE.config,
    )
    archive.studies.create(study)
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("texts", agent, suggest([network]))
    form = task.form(protocol)
    module = builders.build(network.canonical, form, seed=0)
    saved = weights_file.save(
        store_settings.home / "weights",
        network.canonical,
        module.state_dict(),
        {"form": dataclasses.asdict(form)},
    )
    archive.proposals.complete("texts#00000", "token", Result(8.0, weights=saved))
    return network


def test_blocks_are_scored_once(archive, store_settings, tmp_path, parent):
    kinds = ("--part", "mixer", "--to", "attention", "--to", "none")
    command = ("study", "blocks", "texts", "--steps", "2", "--device", "cpu", *kinds)
    with shell(store_settings, tmp_path) as user:
        first = user.types(*command, "--limit", "2", "--json")
        document = json.loads(first.stdout)
        assert faults(document, BlockReport) == []
        assert document["parent"] == "texts#00000"
        assert document["study"] == "texts-blocks-0"
        assert {row["block"] for row in document["replacements"]} == {1, 2}
        assert len(document["replacements"]) == 2 and document["left"] > 0

        # The scores of the first run stay; the rest follows, and a third run measures nothing.
        second = json.loads(user.types(*command, "--json").stdout)
        assert second["left"] == 0
        kept = {row["architecture"]: row for row in second["replacements"]}
        for row in document["replacements"]:
            assert kept[row["architecture"]]["evaluations"] == row["evaluations"]

        third = user.types(*command)
        assert "block 1 mixer" not in third.stderr
        assert "none" in third.stdout and "study texts-blocks-0" in third.stdout
        refused = user.types("study", "blocks", "texts", "--to", "lstm", code=None)
        assert "got 'lstm'" in refused.stderr
        options = ("--name", "elsewhere", "--device", "cuda:99")
        refused = user.types("study", "blocks", "texts", *options, code=None)
        assert "cuda:99" in refused.stderr
        assert "elsewhere" not in archive.studies.names()

    for row in second["replacements"]:
        network = archive.architectures.get(row["architecture"])
        SPACE.validate(network)
        assert row["params"] == costs.params(network) - costs.params(parent)
        assert row["change"] == pytest.approx(row["value"] - second["value"])

    query = "MATCH (:Architecture {key: $key})-[m:MORPHED_INTO]->(a) RETURN count(a)"
    children = archive.query(query, {"key": parent.key}).rows[0][0]
    assert children == len(second["replacements"])
    scored = archive.studies.evaluations("texts-blocks-0")
    assert len(scored) == children + 1
    assert scored[0].architecture.key == parent.key

    # The scores are a warm start of the agent that adds them up.
    study = agents.study(archive, "sums", SPACE, warm_start="texts-blocks-0")
    (asked,) = study.ask("block-additive", 1)
    SPACE.validate(asked.architecture)


def test_a_distillation_that_diverges_leaves_the_others(archive, parent, monkeypatch):
    score = BlockDistiller.score

    def diverge(distiller, replacement, seed):
        if replacement.after == "none":
            raise TrainingError(f"{replacement}: the distillation diverged, the loss is nan")

        return score(distiller, replacement, seed)

    monkeypatch.setattr(BlockDistiller, "score", diverge)
    lines = []
    report = study_blocks(
        archive,
        "texts#00000",
        steps=1,
        parts=["mixer"],
        blocks=[1],
        device="cpu",
        notify=lines.append,
    )
    assert report.replacements and "none" not in {row.after for row in report.replacements}
    assert report.left == 1
    assert sum("the distillation diverged" in line for line in lines) == 1
