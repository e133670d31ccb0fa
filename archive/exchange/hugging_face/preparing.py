"""Values of a family's configuration under the usual names, and settings around its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from archive.exchange.hugging_face.config import Config

_GPT_OSS_SCALING = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
    "rope_type": "yarn",
    "truncate": False,
}
"""Scaling of a configuration of gpt-oss without one."""


def experts_of(
    config: Config,
    *,
    count: str = "num_experts",
    size: str = "intermediate_size",
    normalised: bool | str = True,
    **settings: Any,
) -> dict[str, Any]:
    """Return the values of experts under usual names.

    Args:
        config: The configuration.
        count: Name of the number of experts.
        size: Name of the hidden neurons of one.
        normalised: Whether the weights of a token's experts sum to one.
        **settings: Further settings of the layer; those that are None are left out.
    """
    return {
        "experts": config.get(count),
        "active_experts": config.get("num_experts_per_tok"),
        "expert_size": config.get(size),
        "normalised_experts": config.flag(normalised),
        "expert_settings": {name: value for name, value in settings.items() if value is not None},
    }


def gpt2(config: Config) -> Mapping[str, Any]:
    """Return GPT-2's values."""
    for name in ("add_cross_attention", "scale_attn_by_inverse_layer_idx"):
        if config.flag(name):
            raise config.refuse(f"{name} has no form in the decoders")

    width = config.whole("n_embd")
    is_scaled = config.flag("scale_attn_weights")
    return {
        "hidden_size": width,
        "num_hidden_layers": config.whole("n_layer"),
        "num_attention_heads": config.whole("n_head"),
        "intermediate_size": config.whole_or("n_inner", 4 * width),
        "hidden_act": config.get("activation_function"),
        "attention_scale": None if is_scaled else 1.0,
        "positions": "none",
    }


def learned_positions(config: Config) -> dict[str, Any]:
    """Return the number of GPT-2's learned positions."""
    return {"positions": config.whole("n_positions")}


def neox(config: Config) -> Mapping[str, Any]:
    """Return the rotary values of GPT-NeoX."""
    base = config.get("rotary_emb_base")
    return {
        "rope_theta": config.get("rope_theta") if base is None else base,
        "partial_rotary_factor": config.get("rotary_pct"),
    }


def falcon(config: Config) -> Mapping[str, Any]:
    """Return Falcon's values, of both its architectures."""
    heads = config.whole("num_attention_heads")
    is_new = config.flag("new_decoder_architecture")
    kv_heads = heads
    if is_new:
        kv_heads = config.whole_or("num_kv_heads", heads)
    elif config.flag("multi_query"):
        kv_heads = 1

    width = config.whole("hidden_size")
    count = config.count("num_ln_in_parallel_attn") or (2 if is_new else 1)
    parallel = is_new or config.flag("parallel_attn")
    return {
        "num_key_value_heads": kv_heads,
        "intermediate_size": config.whole_or("ffn_hidden_size", 4 * width),
        "hidden_act": config.get("activation"),
        "positions": "alibi" if config.flag("alibi") else None,
        "parallel": parallel,
        "norms": "separate" if parallel and count == 2 else "pre",
    }


def gemma(config: Config) -> Mapping[str, Any]:
    """Return Gemma's values."""
    if config.get("use_bidirectional_attention"):
        raise config.refuse("it reads both directions (use_bidirectional_attention)")

    # Its first configurations said gelu, and meant the approximation.
    activation = config.get("hidden_activation") or config.get("hidden_act")
    return {"hidden_act": "gelu_pytorch_tanh" if activation == "gelu" else activation}


def gemma2(config: Config) -> Mapping[str, Any]:
    """Return Gemma 2's values."""
    scale = config.real("query_pre_attn_scalar") ** -0.5
    return {**gemma(config), "attention_scale": scale}


def root_of_width(config: Config) -> dict[str, Any]:
    """Return the factor of Gemma's embedding."""
    return {"scale": math.sqrt(config.whole("hidden_size"))}


def soft_cap(config: Config) -> dict[str, Any]:
    """Return the cap of Gemma's logits."""
    if config.get("final_logit_softcapping") is None:
        return {}

    return {"soft_cap": config.real("final_logit_softcapping")}


def granite(config: Config) -> Mapping[str, Any]:
    """Return Granite's values."""
    return {"attention_scale": config.real("attention_multiplier")}


def multiplier(config: Config, name: str) -> dict[str, Any]:
    """Return a factor of Granite; nothing for 1."""
    factor = config.real(name)
    return {} if factor == 1 else {"scale": factor}


def divided_logits(config: Config) -> dict[str, Any]:
    """Return the factor of Granite's logits; nothing for 1."""
    divisor = config.real("logits_scaling")
    return {} if divisor == 1 else {"scale": 1 / divisor}


def mixtral(config: Config) -> Mapping[str, Any]:
    """Return Mixtral's experts."""
    return experts_of(config, count="num_local_experts")


def gpt_oss(config: Config) -> Mapping[str, Any]:
    """Return the experts of gpt-oss, and the scaling of its angles."""
    experts = experts_of(
        config,
        count="num_local_experts",
        bias=True,
        router_bias=True,
        limit=config.real("swiglu_limit"),
    )
    is_scaled = config.get("rope_parameters") is None and config.get("rope_scaling") is None
    return {**experts, "rope_scaling": _GPT_OSS_SCALING} if is_scaled else experts


def qwen3_moe(config: Config) -> Mapping[str, Any]:
    """Return Qwen 3's experts."""
    count = "num_experts" if config.get("num_experts") else "num_local_experts"
    experts = experts_of(
        config, count=count, size="moe_intermediate_size", normalised="norm_topk_prob"
    )
    # The class uses windows in all layers or in none.
    return {**experts, "max_window_layers": 0}


def qwen2_moe(config: Config) -> Mapping[str, Any]:
    """Return the experts of Qwen 2, and its layers where windows are used."""
    experts = qwen_shared(config)
    if config.get("layer_types") is not None or not config.flag("use_sliding_window"):
        return experts

    last = config.count("max_window_layers")
    kinds = []
    for index in range(config.whole("num_hidden_layers")):
        has_window = index % 2 == 0 and index < last
        kinds.append("sliding_attention" if has_window else "full_attention")

    return {**experts, "layer_types": kinds}


def qwen_shared(config: Config) -> Mapping[str, Any]:
    """Return Qwen's experts with a shared one."""
    return experts_of(
        config,
        size="moe_intermediate_size",
        normalised="norm_topk_prob",
        shared=config.whole("shared_expert_intermediate_size"),
        shared_gate=True,
    )


def olmoe(config: Config) -> Mapping[str, Any]:
    """Return OLMoE's experts."""
    if config.get("clip_qkv") is not None:
        raise config.refuse("clip_qkv has no form in the decoders")

    return experts_of(config, normalised="norm_topk_prob")


def olmo(config: Config) -> Mapping[str, Any]:
    """Return nothing, after a check."""
    if config.get("clip_qkv") is not None:
        raise config.refuse("clip_qkv has no form in the decoders")

    return {}


def jamba(config: Config) -> Mapping[str, Any]:
    """Return Jamba's values."""
    return {
        **experts_of(config, normalised=False),
        "positions": "none",
        "expand": config.get("mamba_expand"),
        "state_size": config.get("mamba_d_state"),
        "conv_kernel": config.get("mamba_d_conv"),
        "time_step_rank": config.get("mamba_dt_rank"),
        "use_bias": config.get("mamba_proj_bias"),
        "use_conv_bias": config.get("mamba_conv_bias"),
    }


def mamba2(config: Config) -> Mapping[str, Any]:
    """Return the size of Mamba-2's heads."""
    return {"channels_of_head": config.get("head_dim")}


def bamba(config: Config) -> Mapping[str, Any]:
    """Return Bamba's values."""
    return {
        "expand": config.get("mamba_expand"),
        "state_size": config.get("mamba_d_state"),
        "conv_kernel": config.get("mamba_d_conv"),
        "num_heads": config.get("mamba_n_heads"),
        "channels_of_head": config.get("mamba_d_head"),
        "n_groups": config.get("mamba_n_groups"),
        "use_bias": config.get("mamba_proj_bias"),
        "use_conv_bias": config.get("mamba_conv_bias"),
    }


def deepseek(config: Config, *, routing: str | None) -> Mapping[str, Any]:
    """Return DeepSeek's experts."""
    scale = config.real("routed_scaling_factor")
    # The third version has one method, with groups.
    is_limited = routing is not None or config.get("topk_method") == "group_limited_greedy"
    has_groups = is_limited and config.count("n_group") > 1
    return experts_of(
        config,
        count="n_routed_experts",
        size="moe_intermediate_size",
        normalised="norm_topk_prob",
        shared=config.whole("n_shared_experts") * config.whole("moe_intermediate_size"),
        shared_bias=True if config.flag("mlp_bias") else None,
        scale=None if scale == 1 else scale,
        routing=routing,
        groups=config.whole("n_group") if has_groups else None,
        active_groups=config.whole("topk_group") if has_groups else None,
    )


def stablelm(config: Config) -> Mapping[str, Any]:
    """Return nothing, after a check."""
    if config.flag("qk_layernorm"):
        raise config.refuse("qk_layernorm, a norm of each head, has no form in the decoders")

    return {}


def phi(config: Config) -> Mapping[str, Any]:
    """Return nothing, after a check."""
    if config.flag("qk_layernorm"):
        raise config.refuse("qk_layernorm has no form in the decoders")

    return {}
