"""Configurations of published models: exact parameters, blocks, and families that do not fit."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from archive import kernels, spaces
from archive.architecture.codec import from_json, to_json
from archive.architecture.decoders import costs
from archive.architecture.decoders.design import design_of
from archive.architecture.decoders.parts import Attention, Linear, Mamba2, SwiGlu
from archive.errors import InvalidArchitectureError, UsageError
from archive.exchange.hugging_face.families import FAMILIES
from archive.exchange.hugging_face.reading import read_config
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from tests.support.networks.published import CONFIGS, PARAMS, VARIANTS
from tests.support.strategies import relabelled

COUNT = """
import json, sys
import torch, transformers

def count(name, values):
    settings = {key: value for key, value in values.items() if key != "model_type"}
    model = getattr(transformers, name)
    with torch.device("meta"):
        parameters = model(model.config_class(**settings)).parameters()
    return sum({id(parameter): parameter.numel() for parameter in parameters}.values())

print(json.dumps([count(*item) for item in json.load(sys.stdin)]))
"""

SMALL = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}
ATTENTION = {"no_op": False, "replace_with_linear": False, "n_heads_in_group": 2}
FFN = {"no_op": False, "replace_with_linear": False, "ffn_mult": 2.0}
SKIPPED = {"no_op": True}
MATRIX = {"no_op": False, "replace_with_linear": True}


def design(name, **changed):
    return read_config({**CONFIGS[name], **changed}, name).design


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_and_graphs_of_published_models(name):
    network = design(name).graph()
    assert costs.params(network) == PARAMS[name]
    assert design_of(relabelled(network, 3)) == design(name)
    assert from_json(to_json(network)).key == network.key


def test_each_family_with_a_class_has_a_published_model():
    covered = {config["model_type"] for config in CONFIGS.values()}
    assert covered == {family for family in FAMILIES if FAMILIES[family].causal_class}


@pytest.mark.whole
@pytest.mark.lasts(60)
@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")
def test_parameters_are_those_of_the_classes():
    configs = [CONFIGS[name] for name in CONFIGS]
    configs += [{**CONFIGS[name], **changed} for name, changed in VARIANTS]
    items = []
    expected = []
    for config in configs:
        model = read_config(config, "config")
        items.append((model.causal_class, config))
        expected.append(costs.params(model.design.graph()))

    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        input=json.dumps(items),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == expected
    assert expected[: len(PARAMS)] == list(PARAMS.values())


def test_variants_change_the_parameters():
    for name, changed in VARIANTS:
        assert costs.params(design(name, **changed).graph()) != PARAMS[name]


def test_blocks_of_published_models():
    gemma = design("gemma-3-1b-pt").blocks
    windows = [block.mixer.window for block in gemma]
    assert windows[:6] == [512] * 5 + [None]
    assert [block.mixer.rotary_base for block in gemma[4:6]] == [10_000.0, 1_000_000.0]
    assert {block.norm for block in gemma} == {"sandwich"}
    # The factor of the scores is the usual one.
    assert "scale" not in gemma[0].mixer.extras

    smollm = design("SmolLM3-3B").blocks
    assert [block.mixer.rotary_base for block in smollm[:4]] == [5_000_000.0] * 3 + [0.0]
    bamba = design("Bamba-9B").blocks
    assert [type(block.mixer) for block in bamba[8:10]] == [Mamba2, Attention]
    deepseek = design("DeepSeek-V2-Lite").blocks
    assert [block.feed_forward.op for block in deepseek[:2]] == ["swiglu", "moe"]
    assert deepseek[1].feed_forward.extras["shared"] == 2 * 1408
    assert {block.norm for block in design("OLMo-2-7B").blocks} == {"post"}
    assert {block.parallel for block in design("pythia-160m").blocks} == {True}
    assert design("granite-3.1-2b").stream.head["scale"] == 1 / 8


def test_both_forms_of_rotary_settings_are_one_network():
    config = CONFIGS["Llama-3.2-1B"]
    rotary = {**config["rope_scaling"], "rope_theta": config["rope_theta"]}
    newer = {**config, "rope_parameters": rotary}
    del newer["rope_theta"], newer["rope_scaling"]
    assert read_config(newer, "newer").design == design("Llama-3.2-1B")
    assert (
        design("Llama-3.2-1B", rope_scaling=None).graph().key != design("Llama-3.2-1B").graph().key
    )


def test_costs_at_a_length_by_hand():
    network = design("Llama-3.2-1B").graph()
    # Keys and values of 8 heads of 64 numbers, in 16 layers, at two bytes.
    assert costs.kv_cache_bytes(network, 1000) == 2 * 16 * 2 * 8 * 64 * 1000
    matrices = 16 * (2 * 2048 * (2048 + 512) + 3 * 2048 * 8192) + 2048 * 128256
    assert costs.flops_per_token(network, 1000) == matrices + 16 * 2 * 2048 * 1001 / 2
    # The compressed keys and values, and the part of the keys that turns.
    latent = design("DeepSeek-V3").graph()
    assert costs.kv_cache_bytes(latent, 1000) == 2 * 61 * (512 + 64) * 1000


def test_heterogeneous_blocks():
    blocks = [
        {"attention": ATTENTION, "ffn": FFN},
        {"attention": SKIPPED, "ffn": {**FFN, "ffn_mult": 1.0}},
        {"attention": MATRIX, "ffn": SKIPPED},
        {"attention": {**ATTENTION, "n_heads_in_group": 4, "window_length": 8}, "ffn": MATRIX},
    ]
    values = {**SMALL, "model_type": "nemotron-nas", "block_configs": blocks}
    read = read_config(values, "config").design
    parts = [part for block in read.blocks for part in block.parts]
    assert [part.op for part in parts] == [
        "attention",
        "swiglu",
        "swiglu",
        "linear",
        "sliding_attention",
        "linear",
    ]
    assert [part.kv_heads for part in parts if isinstance(part, Attention)] == [2, 1]
    # Two thirds of a multiple of the width, in steps of 256.
    assert {part.hidden for part in parts if isinstance(part, SwiGlu)} == {256}
    assert parts[3] == Linear(32)
    # A part that is skipped has no norm either.
    assert sum(layer.op == "norm" for layer in read.graph().layers) == len(parts) + 1
    uniform = [{"attention": {"n_heads_in_group": 2}, "ffn": {"intermediate_size": 64}}] * 4
    same = read_config({**values, "block_configs": uniform}, "config").design
    assert same == read_config(SMALL, "config").design


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "rwkv"}, "rwkv does not fit: its time mixing has no word"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "t5 has an encoder"),
        ({"model_type": "mystery"}, "'mystery' is none of the families bamba, deepseek_v2"),
        ({"hidden_act": "relu2"}, "the activation 'relu2' of llama has no word"),
        ({"hidden_size": "wide"}, "hidden_size must be a whole number >= 1, got 'wide'"),
        ({"vocab_size": None}, "config has no vocab_size: give the whole config.json"),
        ({"num_key_value_heads": 3}, "num_key_value_heads must be a divisor of the 4 heads, got 3"),
        ({"layer_types": ["mamba"] * 4}, "layers of the type 'mamba' have no form in llama"),
        ({"layer_types": ["full_attention"]}, "one text for each of the 4 layers"),
        ({"model_type": "olmo", "clip_qkv": 8.0}, "clip_qkv has no form in the decoders"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 1000, got 1000000000"),
        ({"num_hidden_layers": 900}, "layers must be at most 1000, got"),
        ({"hidden_size": 10**40}, "hidden_size must be at most 2147483647"),
        ({"num_attention_heads": 64}, "num_attention_heads must be at most the width 32, got 64"),
        ({"head_dim": 5}, "rotary positions need heads of an even size, got 5"),
        ({"rope_scaling": {"full_attention": 3}}, "full_attention must be values by name, got 3"),
        ({"rope_scaling": "yarn"}, "rope_scaling must be values by name, got 'yarn'"),
        ({"rope_scaling": {"rope_type": ["a"]}}, "rope_type must be a word"),
        ({"partial_rotary_factor": 2}, "partial_rotary_factor must be at most 1, got 2"),
        ({"model_type": "gpt_neox", "rope_parameters": [1]}, "rope_parameters must be values by"),
        (
            {"model_type": "deepseek_v3", "moe_intermediate_size": 8, "n_group": "8"},
            "n_group must be a whole number >= 0, got '8'",
        ),
        ({"model_type": "gemma", "use_bidirectional_attention": True}, "it reads both directions"),
        (
            {"model_type": "x", "text_config": {"model_type": "llama4_text"}},
            "llama4_text does not fit",
        ),
        (
            {"model_type": "nemotron-nas", "block_configs": [{}] * 4},
            "block 1 of block_configs has no attention",
        ),
        (
            {
                "model_type": "nemotron-nas",
                "block_configs": [{"attention": {"sparsify": [1]}, "ffn": FFN}] * 4,
            },
            "attention of block 1: sparsify has no form here",
        ),
    ],
)
def test_configurations_that_do_not_fit_are_named(changed, message):
    with pytest.raises(UsageError, match=message.replace("[", r"\[")) as caught:
        read_config({**SMALL, **changed}, "config")

    assert "\n" not in str(caught.value)


LEFT_OUT = [
    ("Mistral-7B-v0.1", "num_key_value_heads", 8),
    ("Mistral-7B-v0.1", "sliding_window", 4096),
    ("Mixtral-8x7B-v0.1", "num_key_value_heads", 8),
    ("Qwen3-30B-A3B", "num_key_value_heads", 4),
    ("Qwen3-Next-80B-A3B", "norm_topk_prob", True),
    ("gemma-2-2b", "num_key_value_heads", 4),
    ("starcoder2-3b", "num_key_value_heads", 2),
    ("gpt-oss-20b", "num_key_value_heads", 8),
    ("gpt-oss-20b", "rope_scaling", CONFIGS["gpt-oss-20b"]["rope_scaling"]),
    ("DeepSeek-V2-Lite", "q_lora_rank", 1536),
    ("DeepSeek-V3", "q_lora_rank", 1536),
    ("DeepSeek-V3", "n_group", 8),
    ("Jamba-v0.1", "attn_layer_offset", 4),
    ("Bamba-9B", "num_key_value_heads", 8),
]
"""A model, a value that its configuration may leave out, and the class's value."""


@pytest.mark.parametrize(("name", "left_out", "default"), LEFT_OUT)
def test_a_value_that_is_left_out_is_the_one_of_the_class(name, left_out, default):
    values = {key: value for key, value in CONFIGS[name].items() if key != left_out}
    assert read_config(values, name).design == design(name, **{left_out: default})


LONG = {"rope_type": "longrope", "short_factor": [1.0] * 48}
DIFFERENT = [
    ("Phi-3-mini-4k", {"rope_scaling": {**LONG, "long_factor": [1.0] * 48}}),
    ("Phi-3-mini-4k", {"rope_scaling": {**LONG, "long_factor": [2.0] * 48}}),
    ("gpt2", {"scale_attn_weights": False}),
    ("DeepSeek-V3", {"norm_topk_prob": False}),
    ("Qwen1.5-MoE-A2.7B", {"qkv_bias": False}),
    ("Qwen1.5-MoE-A2.7B", {"use_sliding_window": True}),
]


def test_settings_that_change_a_network_change_its_key():
    keys = [design(name, **changed).graph().key for name, changed in DIFFERENT]
    keys += [design(name).graph().key for name in {name for name, _ in DIFFERENT}]
    assert len(set(keys)) == len(keys)


def test_settings_that_the_class_ignores_change_nothing():
    assert design("Llama-3.2-1B", sliding_window=8) == design("Llama-3.2-1B")
    greedy = {"topk_method": "greedy", "n_group": 8}
    assert design("DeepSeek-V2-Lite", **greedy) == design("DeepSeek-V2-Lite")
    # Angles of layers with windows are not scaled.
    scaled = design("OLMo-3-7B", rope_scaling={"rope_type": "yarn", "factor": 8.0}).blocks
    assert ["rotary_scaling" in block.mixer.extras for block in scaled[:4]] == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B"),
        ("/home/alice/models/llama", ""),
        ("../alice", ""),
        ("C:\\Users\\alice", ""),
        ("a\nb", ""),
        (3, ""),
    ],
)
def test_the_path_of_a_user_is_no_name(stored, name):
    assert read_config({**SMALL, "_name_or_path": stored}, "config").name == name


def test_the_edit_distance_tells_published_settings_apart():
    plain = design("Qwen3-0.6B")
    changed = [
        design("Qwen3-0.6B", rms_norm_eps=1e-5),
        design("Qwen3-0.6B", model_type="qwen2"),
        design("Qwen3-0.6B", model_type="olmo2"),
    ]
    edit = kernels.get("edit")
    stack = edit.distances([plain.graph()], [other.graph() for other in changed]).stack
    assert (stack > 0.05).all()


def test_the_part_of_language_of_a_model_of_images():
    text = {key: value for key, value in CONFIGS["gemma-3-1b-pt"].items() if key != "model_type"}
    read = read_config({"model_type": "gemma3", "text_config": text, "vision_config": {}}, "x")
    assert read.design == design("gemma-3-1b-pt")
    assert read.notes == ("the part of language alone, of a gemma3",)


def test_members_of_the_space_keep_their_identity():
    space = spaces.get("decoder")
    rng = np.random.default_rng(0)
    members = [*space.initial_pool(), *(space.sample(rng) for _ in range(30))]
    keys = " ".join(member.functional_key for member in members)
    assert hashlib.blake2b(keys.encode(), digest_size=8).hexdigest() == "502361a36fe04560"
    assert all(not design_of(member).further() for member in members)


def test_published_settings_are_no_members_and_have_no_modules():
    network = design("Qwen3-0.6B").graph()
    with pytest.raises(InvalidArchitectureError, match="no module of decoders has attention with"):
        builders.build(network, NetworkForm((8,), 151936, "language"), 0)

    settings = {"vocabulary": 100, "widths": [32], "heads": [4], "expansions": [2]}
    space = spaces.get("decoder", **settings)
    # A Llama without settings of its own is a member, and is built.
    plain = read_config({**SMALL, "tie_word_embeddings": True}, "config").design.graph()
    space.validate(plain)
    builders.build(plain, NetworkForm((8,), 100, "language"), 0)
    biased = read_config({**SMALL, "model_type": "qwen2"}, "config").design.graph()
    with pytest.raises(InvalidArchitectureError, match="no mixer of the space"):
        space.validate(biased)
