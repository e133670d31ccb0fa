"""A decoder as the configuration of a class of `transformers`, where one has all of its parts.

| class                | decoders                                                                  |
|----------------------|---------------------------------------------------------------------------|
| `LlamaForCausalLM`   | equal blocks of full attention and `swiglu`, norms before each part       |
| `MistralForCausalLM` | the same with one window                                                  |
| `MinistralForCausalLM` | the same with windows in some blocks                                    |
| `MixtralForCausalLM` | equal blocks of attention and `moe`, with one window or none              |
| `Gemma2ForCausalLM`  | attention with windows in some blocks and `swiglu`, sandwich norms        |
"""

from __future__ import annotations

import json
from typing import Any

from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import Attention, MixtureOfExperts, SwiGlu
from archive.architecture.decoders.vocabulary import EPSILON
from archive.errors import InvalidArchitectureError

LLAMA = "LlamaForCausalLM"
MISTRAL = "MistralForCausalLM"
MINISTRAL = "MinistralForCausalLM"
MIXTRAL = "MixtralForCausalLM"
GEMMA2 = "Gemma2ForCausalLM"

_MODEL_TYPES = {
    LLAMA: "llama",
    MISTRAL: "mistral",
    MINISTRAL: "ministral",
    MIXTRAL: "mixtral",
    GEMMA2: "gemma2",
}
_LENGTH = 131_072
"""Positions that a written configuration allows; rotary positions need no table."""


def write_config(design: Design) -> dict[str, Any]:
    """Return the `config.json` of a decoder.

    Raises:
        InvalidArchitectureError: No class has all of its parts; the message names the part.
    """
    if further := design.further():
        raise _no_class(f"{further[0]}, which is written for members of the space alone")

    if not design.blocks:
        raise _no_class("no block")

    attention, feed_forward = _parts_of_all(design)
    windows = [block.mixer.window for block in design.blocks if isinstance(block.mixer, Attention)]
    name = _class_name(design, feed_forward, windows)
    sizes = [window for window in windows if window is not None]
    config: dict[str, Any] = {
        "architectures": [name],
        "model_type": _MODEL_TYPES[name],
        "attention_bias": False,
        "head_dim": attention.head_size,
        "hidden_act": "silu",
        "hidden_size": design.width,
        "intermediate_size": feed_forward.hidden,
        "max_position_embeddings": _LENGTH,
        "num_attention_heads": attention.heads,
        "num_hidden_layers": len(design.blocks),
        "num_key_value_heads": attention.kv_heads,
        "rms_norm_eps": EPSILON,
        "rope_theta": attention.rotary_base,
        "sliding_window": sizes[0] if sizes else None,
        "tie_word_embeddings": design.tied,
        "vocab_size": design.vocabulary,
    }
    # Ids of tokens with a meaning must be tokens.
    config |= {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    if isinstance(feed_forward, MixtureOfExperts):
        config["num_local_experts"] = feed_forward.experts
        config["num_experts_per_tok"] = feed_forward.active

    if name in (MINISTRAL, GEMMA2):
        config["layer_types"] = [
            "full_attention" if window is None else "sliding_attention" for window in windows
        ]

    if name == GEMMA2:
        config |= {"hidden_activation": "silu", "query_pre_attn_scalar": attention.head_size}
        config |= {"attn_logit_softcapping": None, "final_logit_softcapping": None}
        # The class makes the mask of a window, even if no layer has one.
        config["sliding_window"] = sizes[0] if sizes else _LENGTH

    return config


def config_text(config: dict[str, Any]) -> str:
    """Return a configuration as the text of a `config.json`."""
    return json.dumps(config, indent=2, sort_keys=True) + "\n"


def _parts_of_all(design: Design) -> tuple[Attention, SwiGlu | MixtureOfExperts]:
    """Return the attention and the feed-forward part that all blocks have, beside windows."""
    first = design.blocks[0]
    attention, feed_forward = _parts(first, 1)
    for number, block in enumerate(design.blocks, 1):
        mixer, other = _parts(block, number)
        if (mixer.heads, mixer.kv_heads, mixer.head_size) != (
            attention.heads,
            attention.kv_heads,
            attention.head_size,
        ):
            raise _no_class(f"other heads in block {number} than in block 1")

        if mixer.rotary_base != attention.rotary_base:
            raise _no_class(f"another rotary base in block {number} than in block 1")

        if other != feed_forward:
            raise _no_class(f"another feed-forward part in block {number} than in block 1")

        if block.norm != first.norm:
            raise _no_class(f"other norms in block {number} than in block 1")

    return attention, feed_forward


def _parts(block: Block, number: int) -> tuple[Attention, SwiGlu | MixtureOfExperts]:
    if block.parallel:
        raise _no_class(f"parallel parts (block {number})")

    if not isinstance(block.mixer, Attention):
        kind = "no mixer" if block.mixer is None else block.mixer.op
        raise _no_class(f"{kind} (block {number})")

    if not isinstance(block.feed_forward, SwiGlu | MixtureOfExperts):
        kind = "no feed-forward part" if block.feed_forward is None else block.feed_forward.op
        raise _no_class(f"{kind} with norms of the root mean square (block {number})")

    return block.mixer, block.feed_forward


def _class_name(
    design: Design, feed_forward: SwiGlu | MixtureOfExperts, windows: list[int | None]
) -> str:
    sizes = {window for window in windows if window is not None}
    if len(sizes) > 1:
        raise _no_class(f"windows of several sizes: {', '.join(map(str, sorted(sizes)))}")

    is_mixed = len(set(windows)) > 1
    if isinstance(feed_forward, MixtureOfExperts):
        if design.blocks[0].norm == "sandwich":
            raise _no_class("moe with sandwich norms")

        if is_mixed:
            raise _no_class("moe with windows in some blocks")

        return MIXTRAL

    if design.blocks[0].norm == "sandwich":
        return GEMMA2

    if is_mixed:
        return MINISTRAL

    return MISTRAL if sizes else LLAMA


def _no_class(part: str) -> InvalidArchitectureError:
    return InvalidArchitectureError(f"no class of transformers has {part}")
