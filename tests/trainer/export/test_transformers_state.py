"""Decoders as models of `transformers`: the class, and equal logits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import save_file

from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import (
    Attention,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.errors import InvalidArchitectureError
from archive.exchange.hugging_face.reading import read_config
from archive.exchange.hugging_face.writing import write_config
from archive.trainer.export.transformers_state import state_of
from archive.trainer.nn.decoders.network import DecoderNetwork

FULL = Attention(4, 2, 8, 10_000.0)
WINDOW = Attention(4, 2, 8, 10_000.0, 3)
GATED = SwiGlu(24)
EXPERTS = MixtureOfExperts(16, 4, 2)

CLASSES = {
    "LlamaForCausalLM": [Block(Attention(2, 1, 12, 500.0), GATED)] * 2,
    "MistralForCausalLM": [Block(WINDOW, GATED)] * 2,
    "MinistralForCausalLM": [Block(FULL, GATED), Block(WINDOW, GATED)],
    "MixtralForCausalLM": [Block(FULL, EXPERTS)] * 2,
    "Gemma2ForCausalLM": [Block(FULL, GATED, "sandwich"), Block(WINDOW, GATED, "sandwich")],
}
LOAD = """
import json, sys
import torch
from transformers import AutoModelForCausalLM

tokens = torch.arange(24).reshape(2, 12) % 50
for folder in sys.argv[1:]:
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, dtype=torch.float32
    )
    assert not any(info.values()), info
    torch.save((type(model).__name__, model.eval()(tokens).logits.detach()), folder + "/logits.pt")
"""


def decoder(blocks, tied=True, base_width=None):
    torch.manual_seed(0)
    network = DecoderNetwork(Design(50, 32, tuple(blocks), tied), base_width=base_width).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))

    return network


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_has_all_parts(name):
    design = decoder(CLASSES[name]).design
    config = write_config(design)
    assert config["architectures"] == [name]
    # Gemma scales its embedding, and Ministral has no reader.
    if name not in ("Gemma2ForCausalLM", "MinistralForCausalLM"):
        assert read_config(config, "config").design == design


def test_sandwich_norms_without_windows_have_the_size_of_one():
    # The class fails without it.
    config = write_config(Design(50, 32, (Block(FULL, GATED, "sandwich"),)))
    assert config["layer_types"] == ["full_attention"]
    assert config["sliding_window"] >= config["max_position_embeddings"]


@pytest.mark.parametrize(
    ("blocks", "part"),
    [
        ([Block(FULL, Gelu(24))], "gelu with norms of the root mean square"),
        ([Block(Mamba2(2, 8, 4), GATED)], "mamba2"),
        ([Block(FULL)], "no feed-forward part"),
        ([Block(None, GATED)], "no mixer"),
        ([Block(FULL, GATED, parallel=True)], "parallel parts"),
        ([Block(FULL, GATED), Block(FULL, SwiGlu(32))], "another feed-forward part in block 2"),
        ([Block(FULL, GATED), Block(FULL, GATED, "sandwich")], "other norms in block 2"),
        ([Block(FULL, EXPERTS, "sandwich")], "moe with sandwich norms"),
        ([Block(FULL, EXPERTS), Block(WINDOW, EXPERTS)], "moe with windows in some blocks"),
        ([], "no block"),
    ],
)
def test_parts_that_no_class_has_are_named(blocks, part):
    with pytest.raises(InvalidArchitectureError, match=f"no class of transformers has {part}"):
        write_config(Design(50, 32, tuple(blocks)))


@pytest.mark.lasts(20)
@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")
def test_loaded_weights_give_equal_logits(tmp_path):
    networks = {}
    for name, blocks in CLASSES.items():
        for tied in (True, False):
            # Tied ones are scaled by width, which classes have in their matrices.
            network = decoder(blocks, tied=tied, base_width=16 if tied else None)
            folder = tmp_path / f"{name}-{tied}"
            folder.mkdir()
            config, state = state_of(network)
            (folder / "config.json").write_text(json.dumps(config))
            save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
            networks[folder] = network

    done = subprocess.run(
        [sys.executable, "-c", LOAD, *map(str, networks)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tokens = torch.arange(24).reshape(2, 12) % 50
    for folder, network in networks.items():
        name, logits = torch.load(folder / "logits.pt")
        assert name == folder.name.partition("-")[0]
        torch.testing.assert_close(logits, network(tokens), rtol=1e-5, atol=2e-5)
