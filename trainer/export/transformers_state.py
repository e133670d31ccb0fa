"""Weights of a decoder under the names of the class of `transformers` that has its form.

Classes have other scales in some places: Gemma's norms add one to their numbers, and its embedding
is multiplied by the root of the width. Query factors of a training that scales by width are part of
the matrices here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from archive.architecture.decoders.parts import MixtureOfExperts
from archive.errors import UsageError
from archive.exchange.hugging_face.writing import GEMMA2, write_config

if TYPE_CHECKING:
    from torch import Tensor

    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.trainer.nn.decoders.network import DecoderBlock, DecoderNetwork

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
_FEED_FORWARD = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
_EXPERT = {"gate": "w1", "down": "w2", "up": "w3"}


def state_of(module: DecoderNetwork) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the configuration of a decoder's class, and its weights by the names of a checkpoint.

    Args:
        module: The decoder.

    Raises:
        InvalidArchitectureError: No class has all of its parts.
    """
    design = module.design
    config = write_config(design)
    is_gemma = config["architectures"] == [GEMMA2]
    root = math.sqrt(design.width) if is_gemma else 1.0
    embedding = module.embedding.weight
    state = {"model.embed_tokens.weight": embedding / root}
    for index, block in enumerate(module.blocks):
        prefix = f"model.layers.{index}."
        for name, tensor in _block_state(cast("DecoderBlock", block), is_gemma).items():
            state[prefix + name] = tensor

    last = module.norm.weight * module.rate_factor
    if design.tied:
        # The head is the divided embedding.
        state["model.norm.weight"] = _norm(last * root, is_gemma)
    else:
        assert module.head is not None
        state["model.norm.weight"] = _norm(last, is_gemma)
        state["lm_head.weight"] = module.head.weight

    return config, {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}


def serialise(
    archive: Archive, evaluation: str, architecture: Architecture
) -> tuple[dict[str, Any], bytes]:
    """Return the configuration and the `model.safetensors` of an evaluation's trained decoder.

    Args:
        archive: The archive.
        evaluation: Id of the evaluation, `STUDY#NUMBER`.
        architecture: The architecture that it must have.

    Raises:
        UsageError: The evaluation is of another architecture, or has no weights.
        InvalidArchitectureError: No class has all parts of the decoder.
    """
    from safetensors.torch import save

    from archive.trainer.export import trained

    network = trained.network(archive, evaluation)
    key = network.evaluation.architecture.key
    if key != architecture.key:
        raise UsageError(f"{evaluation} has the architecture {key}, not {architecture.key}")

    config, state = state_of(cast("DecoderNetwork", network.module))
    return config, save(state, metadata={"format": "pt"})


def _norm(weight: Tensor, is_gemma: bool) -> Tensor:
    return weight - 1 if is_gemma else weight


def _block_state(block: DecoderBlock, is_gemma: bool) -> dict[str, Tensor]:
    """Return the weights of a block by their names within it."""
    mixer: Any = block.mixer
    state: dict[str, Tensor] = {}
    for name, other in _ATTENTION.items():
        factor = mixer.query_factor if name == "query" else 1.0
        state[f"self_attn.{other}.weight"] = getattr(mixer, name).weight * factor

    state |= _feed_forward_state(block)
    norms = [
        (block.mixer_norm, "input_layernorm"),
        (block.mixer_norm_behind, "post_attention_layernorm"),
        (block.feed_forward_norm_behind, "post_feedforward_layernorm"),
    ]
    before = "pre_feedforward_layernorm" if is_gemma else "post_attention_layernorm"
    norms.append((block.feed_forward_norm, before))
    for norm, name in norms:
        if norm is not None:
            state[f"{name}.weight"] = _norm(norm.weight, is_gemma)

    return state


def _feed_forward_state(block: DecoderBlock) -> dict[str, Tensor]:
    part: Any = block.feed_forward
    state: dict[str, Tensor] = {}
    if not isinstance(block.block.feed_forward, MixtureOfExperts):
        for name, other in _FEED_FORWARD.items():
            state[f"mlp.{other}.weight"] = getattr(part, name).weight

        return state

    state["block_sparse_moe.gate.weight"] = part.router.weight
    for index, expert in enumerate(part.experts):
        for name, other in _EXPERT.items():
            key = f"block_sparse_moe.experts.{index}.{other}.weight"
            state[key] = getattr(expert, name).weight

    return state
