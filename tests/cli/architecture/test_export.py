"""`archive arch export`, typed as a user types it."""

from __future__ import annotations

import dataclasses
import json

import torch
from safetensors.torch import load_file

from archive.architecture.codec import to_json
from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import Attention, Mamba2, SwiGlu
from archive.cli.architecture.export import ExportedDecoder
from archive.store.records import Result, Study
from archive.trainer.nn import builders
from archive.trainer.storage import weights_file
from archive.trainer.tasks import registry
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import suggest

BLOCK = Block(Attention(2, 1, 4, 10_000.0), SwiGlu(8))


def record(archive, network, folder):
    """Store an evaluation with the weights of a network, and return the module."""
    task = registry.get("pydoc-topics")
    protocol = task.protocol(None)
    study = Study(
        "text", task.name, protocol.name, "decoder", task.objective, task.direction, budget=3
    )
    archive.studies.create(study)
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("text", agent, suggest([network]))
    claim = archive.proposals.claim("worker", study="text")
    form = task.form(protocol)
    module = builders.build(claim.architecture.canonical, form, 0)
    metadata = {"form": dataclasses.asdict(form)}
    saved = weights_file.save(
        folder / "weights", claim.architecture.canonical, module.state_dict(), metadata
    )
    archive.proposals.complete(claim.id, claim.token, Result(0.5, weights=saved))
    return claim.id, module


def test_a_decoder_and_its_weights_as_a_folder(archive, store_settings, tmp_path):
    network = Design(256, 8, (BLOCK, BLOCK)).graph()
    evaluation, module = record(archive, network, store_settings.home)
    folder = tmp_path / "model"
    with shell(store_settings, tmp_path) as user:
        arguments = ("arch", "export", network.key[:10], "--to", str(folder))
        done = user.types(*arguments, "--weights", evaluation, "--json")
        document = json.loads(done.stdout)
        assert not faults(document, ExportedDecoder)
        assert document["causal_class"] == "LlamaForCausalLM"
        config = json.loads((folder / "config.json").read_text())
        assert (config["hidden_size"], config["num_hidden_layers"]) == (8, 2)
        state = load_file(folder / "model.safetensors")
        torch.testing.assert_close(state["model.embed_tokens.weight"], module.embedding.weight)
        assert len(state) == 1 + 2 * 9 + 1
        # Nothing is replaced without a word.
        assert "--force" in user.types(*arguments, code=2).stderr

        other = tmp_path / "other.json"
        other.write_text(to_json(Design(256, 8, (Block(Mamba2(2, 8, 4), SwiGlu(8)),)).graph()))
        refused = user.types("arch", "export", str(other), "--to", str(tmp_path / "b"), code=2)
        assert "no class of transformers has mamba2 (block 1)" in refused.stderr
        assert not (tmp_path / "b").exists()
